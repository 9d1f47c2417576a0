package tsdb

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// ReadOption is an option of one read: an Order, a Limit, a Concurrency, a Hedge or a MaxStale. If one kind is given
// twice, the last one applies.
//
// Every call with options accepts Concurrency, Hedge and MaxStale, and ignores those that it cannot use. Concurrency
// and Hedge never change the result; MaxStale only allows an older one. A call without an order or a limit refuses an
// Order or a Limit with ErrInvalid.
type ReadOption interface{ readOption() }

// Order is a ReadOption of Range, Page, Merged and the buckets of rollups and windows: the direction in time.
type Order uint8

const (
	// NewestFirst is the default.
	NewestFirst Order = iota
	// OldestFirst reads from the oldest point to the newest. Bigtable reads in reverse for it, which costs more.
	OldestFirst
)

// Limit is a ReadOption of Range and Merged: the maximum number of points. Limit(0) reads nothing. A negative limit is
// refused with ErrInvalid.
type Limit int

const (
	defaultConcurrency = 128
	maxConcurrency     = 1000
)

// Concurrency is a ReadOption of calls that read many entities: the maximum number of requests that the call has under
// way. 0 means the default: 128, or 16 in packages rollup and window. Values below 0 and above 1000 are refused with
// ErrInvalid.
//
// A request reads one or a few rows and mostly waits for the network. The official client uses ten connections, each
// with up to a hundred requests.
type Concurrency int

// Hedge is a ReadOption of calls that read one point or the newest points. If a read takes long, it sends a second
// request, uses the response that arrives first, and cancels the other. This shortens the slowest reads of a service
// that is occasionally slow; it does not help if the service is always slow. The zero Hedge is off, the default.
type Hedge struct {
	// After is how long to wait before the second request; the 95th to 99th percentile of the latency is a good value.
	// It must be above 0.
	After time.Duration
	// MaxRatio is the maximum share of reads that are sent twice, above 0 and up to 1. It keeps a service in trouble
	// from getting twice the load. It is counted over all calls of the store; unused shares accumulate up to 100
	// requests.
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

// optionSet lists the options that not every call accepts.
type optionSet uint8

const (
	orderOption optionSet = 1 << iota
	limitOption
)

// refuse returns the error for an option that the call does not accept.
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

// readOptionsOf resolves the options of a call that accepts those in takes. A Width of 0 means the call's default.
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
			if v < 0 || v > maxConcurrency {
				return o, invalid.New(ErrInvalid, "Concurrency", strconv.Itoa(int(v)), "0 for the default, or 1 to "+strconv.Itoa(maxConcurrency))
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
		o.Width = defaultConcurrency
	}
	return o.Options, err
}

// hedged runs a read of one request, and hedges it if the option is on.
func hedged[R any](ctx context.Context, rows *points.Rows, h points.Hedge, read func(context.Context) (R, error)) (R, error) {
	rows.Hedges.Earn(h, 1)
	return points.Once(ctx, rows.Table, h, read)
}
