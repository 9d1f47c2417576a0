package window

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxSeries is how many series can be aligned at once. Each has a request under way.
const maxSeries = 100

// Series is one column of aligned rows: a value of each point of an entity. [NewSeries] makes one. The entities of
// several series may be of different datasets and types; only V is the same, such as float64. A Series is a value and
// safe for concurrent use.
type Series[V any] struct {
	read func(ctx context.Context, in tsdb.Interval, order tsdb.Order) iter.Seq2[Sample[V], error]
	// before returns the last value before an interval.
	before func(ctx context.Context, in tsdb.Interval) (Sample[V], error)
}

// NewSeries returns the series of an entity. of returns the value of a point, and false if the point has none; such a
// point changes nothing. It should return false for a NaN, too.
func NewSeries[T, V any](from Ranger[T], e tsdb.Entity, of func(T) (V, bool)) Series[V] {
	if from == nil || of == nil {
		return Series[V]{}
	}
	return Series[V]{
		read: func(ctx context.Context, in tsdb.Interval, order tsdb.Order) iter.Seq2[Sample[V], error] {
			return func(yield func(Sample[V], error) bool) {
				for p, err := range from.Range(ctx, e, in, order) {
					s := Sample[V]{Time: p.Time}
					if err == nil {
						s.Value, s.OK = of(p.Value)
					}
					if (err != nil || s.OK) && !yield(s, err) {
						return
					}
				}
			}
		},
		before: func(ctx context.Context, in tsdb.Interval) (s Sample[V], err error) {
			err = nearest(ctx, from, e, in, true, func(p tsdb.Point[T]) bool {
				s.Time = p.Time
				s.Value, s.OK = of(p.Value)
				return s.OK
			})
			return s, err
		},
	}
}

// Sample is the value of one series in a row. In JSON a missing one is null.
type Sample[V any] struct {
	// Value is the newest value at the time of the row or before it.
	Value V
	// Time is when it was measured.
	Time time.Time
	// OK is false if the value is missing: there is none, or it is older than AlignOptions.MaxAge. Then the others are
	// zero.
	OK bool
}

// MarshalJSON implements json.Marshaler.
func (s Sample[V]) MarshalJSON() ([]byte, error) {
	if !s.OK {
		return []byte("null"), nil
	}
	return json.Marshal(struct {
		Value V            `json:"value"`
		Time  instant.Time `json:"time"`
	}{s.Value, instant.Time{Time: s.Time}})
}

// Row holds the values of all series at one time. The caller may keep it.
type Row[V any] struct {
	Time time.Time `json:"time"`
	// Values has one sample for each series, in their order.
	Values []Sample[V] `json:"values"`
}

// MarshalJSON implements json.Marshaler.
func (r Row[V]) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time   instant.Time `json:"time"`
		Values []Sample[V]  `json:"values"`
	}{instant.Time{Time: r.Time}, r.Values})
}

// AlignOptions configure [Align]. The zero value means the documented defaults.
type AlignOptions struct {
	// MaxAge is how old a value may be. An older one is missing. Zero is no limit.
	MaxAge time.Duration
	// Order is the order of the rows. The zero value is tsdb.NewestFirst.
	Order tsdb.Order
}

// Align returns a row for each start of a bucket of the grid in an interval, with the value that each series has
// then: its newest one at that time or before it, also from before the interval. The interval has a start and an end.
//
// With the zero Grid, it returns a row for each time in the interval at which at least one of the series has a value,
// and the interval may be open. A series has a point at the time of a row if its sample has the row's Time; so the
// values as of the points of one series are the rows with such a sample. Of several points of a series at one time,
// the last one counts.
//
// It reads all series at the same time, each once and as a stream, and holds two values of each in memory. So the loop
// must not take longer than the scan timeout. Each series costs as much as Range of its repository and counts as a read
// of its own. With the oldest first, it also costs a read of one point before the interval, and a second one of up to
// 1,000 points if that point has no value; with the newest first, only if the rows get there. A value that is even
// further away counts as missing. These reads do not count towards the tenant's limits.
//
// A *tsdb.PointError is yielded with an empty row when its point is read, and the sequence continues. Any other error
// is the last pair: an error of a series, one for a series that is out of order, or tsdb.ErrInvalid for arguments,
// such as more than 100 series.
func Align[V any](ctx context.Context, grid Grid, in tsdb.Interval, series []Series[V], opts AlignOptions) iter.Seq2[Row[V], error] {
	return func(yield func(Row[V], error) bool) {
		if err := checkAlign(grid, in, opts); err != nil {
			yield(Row[V]{}, err)
			return
		}
		align(ctx, in, series, opts, yield, func(a *alignment[V]) {
			start, _ := in.Start()
			end, _ := in.End()
			switch {
			case grid == Grid{}:
				for at, ok := a.first(); ok && a.row(at); {
					at, ok = a.after(at)
				}
			case opts.Order == tsdb.OldestFirst:
				at := grid.Start(start)
				if at.Before(start) {
					at = grid.Next(at)
				}
				for at.Before(end) && a.row(at) {
					at = grid.Next(at)
				}
			default:
				for at := grid.Start(end.Add(-1)); !at.Before(start) && a.row(at); {
					at = grid.prev(at)
				}
			}
		})
	}
}

// checkAlign refuses a bad grid, interval or order.
func checkAlign(grid Grid, in tsdb.Interval, opts AlignOptions) error {
	if grid == (Grid{}) {
		return frame{Grid: Days(1), Interval: in, Order: opts.Order}.check()
	}
	_, _, err := closed(in)
	if err == nil {
		_, _, err = frame{Interval: in}.bounds()
	}
	if err == nil {
		err = frame{Grid: grid, Order: opts.Order}.check()
	}
	return err
}

// align runs one loop over aligned rows.
func align[V any](ctx context.Context, in tsdb.Interval, series []Series[V], opts AlignOptions, yield func(Row[V], error) bool, rows func(*alignment[V])) {
	a := &alignment[V]{
		ctx: ctxerr.Given(ctx), in: in, opts: opts, yield: yield,
		frame: frame{Order: opts.Order}, columns: make([]column[V], len(series)),
	}
	if a.err = checkSeries(series, opts); a.err == nil {
		for i, s := range series {
			c := &a.columns[i]
			c.series = s
			var stop func()
			c.next, stop = iter.Pull2(s.read(a.ctx, in, opts.Order))
			defer stop()
		}
		rows(a)
	}
	if a.err != nil && !a.stopped {
		yield(Row[V]{}, a.err)
	}
}

func checkSeries[V any](series []Series[V], opts AlignOptions) error {
	if opts.MaxAge < 0 {
		return invalid.New(tsdb.ErrInvalid, "MaxAge", opts.MaxAge.String(), "0 for none, or more")
	}
	if len(series) < 1 || len(series) > maxSeries {
		return invalid.New(tsdb.ErrInvalid, "number of series", strconv.Itoa(len(series)), "1 to "+strconv.Itoa(maxSeries))
	}
	for i := range series {
		if series[i].read == nil {
			return invalid.New(tsdb.ErrInvalid, "series "+strconv.Itoa(i), "the zero value", "a series of NewSeries with a repository and a function")
		}
	}
	return nil
}

// alignment is one loop over aligned rows.
type alignment[V any] struct {
	ctx     context.Context
	in      tsdb.Interval
	opts    AlignOptions
	frame   frame
	yield   func(Row[V], error) bool
	columns []column[V]
	stopped bool // the caller left the loop
	err     error
}

// column is what is known of a series.
type column[V any] struct {
	series Series[V]
	next   func() (Sample[V], error, bool)
	began  bool
	now    Sample[V] // its newest value at the time of the row or before it
	ahead  Sample[V] // its next value in the order of the rows, if there is more
	more   bool
	whole  bool // with the newest first: now is that from before the interval
}

// row yields the row of a time, and reports whether the loop goes on.
func (a *alignment[V]) row(at time.Time) bool {
	r := Row[V]{Time: at, Values: make([]Sample[V], len(a.columns))}
	for i := range a.columns {
		c := &a.columns[i]
		if !a.advance(c, at) {
			return false
		}
		if c.now.OK && (a.opts.MaxAge == 0 || at.Sub(c.now.Time) <= a.opts.MaxAge) {
			r.Values[i] = c.now
		}
	}
	if a.err = a.ctx.Err(); a.err != nil {
		return false
	}
	a.stopped = !a.yield(r, nil)
	return !a.stopped
}

// advance sets the value that a series has at a time. It reports false if the loop ends, as the others do.
func (a *alignment[V]) advance(c *column[V], at time.Time) bool {
	if !a.begin(c) {
		return false
	}
	if a.opts.Order == tsdb.OldestFirst {
		for c.more && !c.ahead.Time.After(at) {
			c.now = c.ahead
			if !a.pull(c) {
				return false
			}
		}
		return true
	}
	for c.more && c.ahead.Time.After(at) {
		if !a.pull(c) {
			return false
		}
	}
	switch {
	case c.more:
		c.now = c.ahead
	case !c.whole:
		c.whole = true
		return a.before(c)
	}
	return true
}

// begin reads the first value of a series.
func (a *alignment[V]) begin(c *column[V]) bool {
	if c.began {
		return true
	}
	c.began = true
	if a.opts.Order == tsdb.OldestFirst && !a.before(c) {
		return false
	}
	return a.pull(c)
}

// before reads the last value of a series before the interval.
func (a *alignment[V]) before(c *column[V]) bool {
	c.now, a.err = c.series.before(a.ctx, a.in)
	return a.err == nil
}

// pull reads the next value of a series.
func (a *alignment[V]) pull(c *column[V]) bool {
	for {
		s, err, ok := c.next()
		if _, bad := pointError(err); ok && bad {
			if a.stopped = !a.yield(Row[V]{}, err); a.stopped {
				return false
			}
			continue
		}
		if ok && err == nil && c.more && a.frame.before(s.Time, c.ahead.Time) {
			err = a.frame.disorder(s.Time, c.ahead.Time)
		}
		a.err, c.more, c.ahead = err, ok, s
		return err == nil
	}
}

// first returns the time of the first row if each value makes one.
func (a *alignment[V]) first() (at time.Time, ok bool) {
	for i := range a.columns {
		if c := &a.columns[i]; !a.begin(c) {
			return at, false
		} else if c.more && (!ok || a.frame.before(c.ahead.Time, at)) {
			at, ok = c.ahead.Time, true
		}
	}
	return at, ok
}

// after returns the time of the row behind the one at a time.
func (a *alignment[V]) after(t time.Time) (at time.Time, ok bool) {
	for i := range a.columns {
		for c := &a.columns[i]; c.more && !a.frame.before(t, c.ahead.Time); {
			if !a.pull(c) {
				return at, false
			}
		}
	}
	return a.first()
}
