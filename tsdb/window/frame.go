package window

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// frame describes a sequence of buckets. The zero frame is invalid: it has no grid.
type frame struct {
	// Grid is the grid of the buckets.
	Grid Grid
	// Measures are the names of each bucket's values, in their order. Names are unique and not empty. It is empty for
	// buckets that only count points.
	Measures []string
	// Interval contains the points. The zero value is all of time. A start at the zero time.Time counts as none.
	Interval tsdb.Interval
	// Order is the order of the buckets. The zero value is tsdb.NewestFirst.
	Order tsdb.Order
}

func (f frame) check() error {
	if err := f.Grid.Check(); err != nil {
		return err
	}
	for i, name := range f.Measures {
		if name == "" || slices.Contains(f.Measures[:i], name) {
			return invalid.New(tsdb.ErrInvalid, "name of measure "+strconv.Itoa(i), invalid.Quote(name), "a unique name that is not empty")
		}
	}
	if f.Order != tsdb.NewestFirst && f.Order != tsdb.OldestFirst {
		return invalid.New(tsdb.ErrInvalid, "order", strconv.Itoa(int(f.Order)), "NewestFirst or OldestFirst")
	}
	if bad, ok := errors.AsType[*tsdb.InvalidError](inside.Of(f.Interval).Check()); ok {
		return invalid.New(tsdb.ErrInvalid, bad.Field, bad.Value, bad.Limit)
	}
	return nil
}

// bounds returns where gaps end, or the zero time if the interval has no such end.
func (f frame) bounds() (from, to time.Time, err error) {
	from, hasFrom := f.Interval.Start()
	to, hasTo := f.Interval.End()
	switch {
	case hasFrom && !inCalendar(from):
		return from, to, invalid.New(tsdb.ErrInvalid, "start of the interval", instant.Text(from), inYears)
	case hasTo && !inCalendar(to.Add(-1)):
		return from, to, invalid.New(tsdb.ErrInvalid, "end of the interval", instant.Text(to), inYears)
	}
	return from, to, nil
}

// before reports whether t is before u in the order of the frame.
func (f *frame) before(t, u time.Time) bool {
	if f.Order == tsdb.OldestFirst {
		return t.Before(u)
	}
	return u.Before(t)
}

// disorder returns the error for a t that follows u but is before it in the frame's order.
func (f *frame) disorder(t, u time.Time) error {
	order := "newest"
	if f.Order == tsdb.OldestFirst {
		order = "oldest"
	}
	return fmt.Errorf("%w: %s after %s, want the %s first", invalid.ErrOrder, instant.Text(t), instant.Text(u), order)
}

// pointError returns err as the error of one point, after which a sequence continues.
func pointError(err error) (*tsdb.PointError, bool) {
	bad, ok := errors.AsType[*tsdb.PointError](err)
	return bad, ok && bad != nil
}

// fail returns a sequence that yields only err.
func fail(err error) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) { yield(Bucket{}, err) }
}
