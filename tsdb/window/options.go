package window

import (
	"cmp"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// defaultMaxFilled is the default of Options.MaxFilled. For comparison: a year has 8,760 hours.
const defaultMaxFilled = 10_000

// Options configure [New]. The zero value means the documented defaults.
type Options struct {
	// Gaps says how to represent empty buckets. The zero value is [LeaveOut].
	Gaps Gaps

	// MaxGap is the longest gap that is filled. [Linear] fills none of the buckets between two numbers that are further
	// apart, and [Previous] no bucket that starts later than MaxGap after the number that it would carry. A measure
	// without [Ends], and a group, has no times of numbers: the edges of their buckets count. Zero fills all gaps. The
	// other Gaps ignore it.
	MaxGap time.Duration

	// MaxFilled bounds the empty buckets that one run of a sequence inserts, and the buckets that it holds back at a
	// time (see [Aggregator.Read]). It protects against a narrow grid over a long gap. One bucket more ends the
	// sequence with [ErrTooManyFilled], unless all held buckets wait for [Delta], [Increase], [Integral] or
	// [Durations] only. Zero means 10,000.
	MaxFilled int

	// FromPoints reads points only. Without it, [Aggregator.Read] takes stored buckets of a rollup where they answer.
	FromPoints bool
}

func (o Options) maxFilled() int { return cmp.Or(o.MaxFilled, defaultMaxFilled) }

func (o Options) check() error {
	if int(o.Gaps) >= len(gapNames) {
		return o.Gaps.invalid()
	}
	if o.MaxGap < 0 {
		return invalid.New(tsdb.ErrInvalid, "MaxGap", o.MaxGap.String(), "0 for none, or more")
	}
	if o.MaxFilled < 0 {
		return invalid.New(tsdb.ErrInvalid, "MaxFilled", strconv.Itoa(o.MaxFilled), "0 or more")
	}
	return nil
}
