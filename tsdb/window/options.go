package window

import (
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// DefaultMaxFilled is how many buckets gaps may hold unless Options say otherwise: a year has 8,760 hours.
const DefaultMaxFilled = 10_000

// Options of [New] and [Fill]. The zero value means the documented defaults.
type Options struct {
	// Gaps says what stands where a bucket holds nothing. The zero value is [LeaveOut].
	Gaps Gaps

	// MaxFilled is how many buckets without a point one run of a sequence may put into gaps, and how many it may hold back
	// at a time (see [Fill]), so that a narrow grid over a long silence cannot run away. One more ends the sequence with
	// [ErrTooManyFilled]. Zero means [DefaultMaxFilled]. [LeaveOut] has no use for it.
	MaxFilled int
}

func (o Options) maxFilled() int {
	if o.MaxFilled == 0 {
		return DefaultMaxFilled
	}
	return o.MaxFilled
}

func (o Options) check() error {
	if int(o.Gaps) >= len(gapNames) {
		return o.Gaps.invalid()
	}
	if o.MaxFilled < 0 {
		return invalid.New(ErrInvalid, "MaxFilled", strconv.Itoa(o.MaxFilled), "0 or more")
	}
	return nil
}
