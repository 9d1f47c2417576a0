package tsdb

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Interval is a span of time. Each end is included, excluded or unbounded. The zero Interval is all of time. Ends may
// be outside the range of a schema's precision. If both ends are equal, the interval is empty, or that instant if both
// are included. Calls refuse an interval that ends before it starts, with ErrInvalid, before anything is sent.
type Interval struct {
	intervalGate
	from, to         time.Time
	hasFrom, hasTo   bool
	openFrom, closed bool
}

// Between returns the interval that starts at from (included) and ends at to (excluded).
func Between(from, to time.Time) Interval {
	return Interval{from: from, to: to, hasFrom: true, hasTo: true}
}

// Since returns the interval that starts at from (included) and has no end.
func Since(from time.Time) Interval { return Interval{from: from, hasFrom: true} }

// Until returns the interval that ends at to (excluded) and has no start.
func Until(to time.Time) Interval { return Interval{to: to, hasTo: true} }

// AllTime returns the zero Interval.
func AllTime() Interval { return Interval{} }

// OpenStart returns the interval with its start excluded.
func (in Interval) OpenStart() Interval {
	in.openFrom = true
	return in
}

// ClosedEnd returns the interval with its end included.
func (in Interval) ClosedEnd() Interval {
	in.closed = true
	return in
}

// check returns an error that matches ErrInvalid if the interval ends before it starts.
func (in Interval) check() error {
	if in.hasFrom && in.hasTo && in.to.Before(in.from) {
		return invalid.New(ErrInvalid, "interval", instant.Text(in.from)+" to "+instant.Text(in.to), "an end that is not before its start")
	}
	return nil
}

// Contains reports whether t is in the interval.
func (in Interval) Contains(t time.Time) bool {
	if in.hasFrom && (t.Before(in.from) || in.openFrom && t.Equal(in.from)) {
		return false
	}
	return !in.hasTo || t.Before(in.to) || in.closed && t.Equal(in.to)
}

// Start returns the first instant in the interval, and false if it has no start. An excluded start begins one
// nanosecond later.
func (in Interval) Start() (t time.Time, ok bool) {
	if in.hasFrom && in.openFrom {
		return in.from.Add(1), true
	}
	return in.from, in.hasFrom
}

// End returns the first instant after the interval, and false if it has no end. An included end ends one nanosecond
// later.
func (in Interval) End() (t time.Time, ok bool) {
	if in.hasTo && in.closed {
		return in.to.Add(1), true
	}
	return in.to, in.hasTo
}

// units returns the first and the last unit of p in the interval. The first is greater if it holds none.
func (in Interval) units(p rowkey.Precision) (oldest, newest int64) {
	newest = p.Max()
	if from, ok := in.Start(); ok {
		if oldest, ok = p.AtOrAfter(from); !ok {
			return 1, 0
		}
	}
	if end, ok := in.End(); ok {
		if newest, ok = p.AtOrBefore(end.Add(-1)); !ok {
			return 1, 0
		}
	}
	return oldest, newest
}
