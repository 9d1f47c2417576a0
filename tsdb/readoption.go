package tsdb

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// ReadOption is an option of one call that reads: an [Order], a [Limit], a [Concurrency], a [Hedge] or a [MaxStale]. Of two of
// one kind the last counts.
//
// Every call that takes options takes all of the last three, which do not change what is found, and ignores those that it has
// no use for. A call that has no order or no limit refuses an Order or a Limit with ErrInvalid.
type ReadOption interface{ readOption() }

// Order is a ReadOption of Range, Page and the buckets of rollups and windows: the direction of a read in time.
type Order uint8

const (
	// NewestFirst is the default.
	NewestFirst Order = iota
	// OldestFirst reads from the oldest to the newest. Bigtable reads in reverse for it, which costs more.
	OldestFirst
)

// Limit is a ReadOption of Range: the read ends after that many points. Limit(0) reads nothing; below 0 is refused with
// ErrInvalid.
type Limit int

const (
	defaultWidth = 128
	maxWidth     = 1000
)

// Concurrency is a ReadOption of calls that read many entities: how many requests a call has under way at once, at most. 0 is
// the default: 128, or 16 in package rollup. Below 0 and above 1000 are refused with ErrInvalid.
//
// A request is a read of a row or a few, which waits for the network far longer than it works. The official client spreads
// the requests over ten connections, and each connection takes a hundred.
type Concurrency int

// Hedge is a ReadOption of calls that read the newest points or one point: it sends a second request for a read that takes
// long, takes the answer that comes first, and cancels the other. It cuts the tail of a service that is slow now and then. It
// does not help against one that is always slow. The zero Hedge is off, the default.
type Hedge struct {
	// After is how long a read may take until the second request is sent: about what all but a few in a hundred take. Above 0.
	After time.Duration
	// MaxRatio is the share of reads that may be sent twice, above 0 and up to 1, so that a service in trouble does not get
	// twice the load. It counts all calls of the store: a share that was not used is kept for later, up to 100 requests.
	MaxRatio float64
}

func (Order) readOption()       {}
func (Limit) readOption()       {}
func (Concurrency) readOption() {}
func (Hedge) readOption()       {}
func (MaxStale) readOption()    {}

// readOptions are the resolved options of a call.
type readOptions struct {
	points.Options
	order   Order
	limit   int
	limited bool
}

// optionSet names the options that change what a call finds.
type optionSet uint8

const (
	orderOption optionSet = 1 << iota
	limitOption
)

// refuse returns the error for an option that a call does not take.
func (s optionSet) refuse(i int, opt ReadOption) error {
	want := "Concurrency, Hedge or MaxStale"
	if s&limitOption != 0 {
		want = "Limit, " + want
	}
	if s&orderOption != 0 {
		want = "Order, " + want
	}
	value := "nil"
	if opt != nil {
		value = fmt.Sprintf("%T(%v)", opt, opt)
	}
	return invalid.New(ErrInvalid, "read option "+strconv.Itoa(i), value, want)
}

// readOptionsOf resolves the options of a call, which takes those of a set. A Width of 0 means the call's default.
func readOptionsOf(takes optionSet, opts []ReadOption) (o readOptions, err error) {
	for i, opt := range opts {
		switch v := opt.(type) {
		case Order:
			if takes&orderOption == 0 {
				return o, takes.refuse(i, opt)
			}
			if v > OldestFirst {
				return o, invalid.New(ErrInvalid, "order", strconv.Itoa(int(v)), "NewestFirst or OldestFirst")
			}
			o.order = v
		case Limit:
			if takes&limitOption == 0 {
				return o, takes.refuse(i, opt)
			}
			if v < 0 {
				return o, invalid.New(ErrInvalid, "limit", strconv.Itoa(int(v)), "0 or more")
			}
			o.limit, o.limited = int(v), true
		case Concurrency:
			if v < 0 || v > maxWidth {
				return o, invalid.New(ErrInvalid, "Concurrency", strconv.Itoa(int(v)), "0 for the default, or 1 to "+strconv.Itoa(maxWidth))
			}
			o.Width = int(v)
		case Hedge:
			o.Hedge = points.Hedge(v)
		case MaxStale:
			if v < 0 {
				return o, invalid.New(ErrInvalid, "MaxStale", time.Duration(v).String(), "0 for the table, or more")
			}
			o.Stale = time.Duration(v)
		default:
			return o, takes.refuse(i, opt)
		}
	}
	switch h := o.Hedge; {
	case !h.On():
	case h.After <= 0:
		return o, invalid.New(ErrInvalid, "Hedge.After", h.After.String(), "more than 0")
	case !(h.MaxRatio > 0 && h.MaxRatio <= 1):
		return o, invalid.New(ErrInvalid, "Hedge.MaxRatio", strconv.FormatFloat(h.MaxRatio, 'g', -1, 64), "above 0, up to 1")
	}
	return o, nil
}

// wideOptionsOf resolves the options of a call that reads many entities.
func wideOptionsOf(opts []ReadOption) (points.Options, error) {
	o, err := readOptionsOf(0, opts)
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	return o.Options, err
}

// hedged runs a read of one request, and a second time where the hedge says so.
func hedged[T, R any](ctx context.Context, r *Repository[T], h points.Hedge, read func(context.Context) (R, error)) (R, error) {
	if !h.On() {
		return read(ctx)
	}
	r.rows.Hedges.Earn(1, h.MaxRatio)
	return points.Once(ctx, r.rows.Table, h, read)
}

// bucketOptions implements inside.ReadOptions.
func bucketOptions(opts any) (inside.BucketOptions, error) {
	o, err := readOptionsOf(orderOption, opts.([]ReadOption))
	return inside.BucketOptions{Order: uint8(o.order), Concurrency: o.Width}, err
}
