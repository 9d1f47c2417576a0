package tsdb

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Interval is a stretch of time with each end open, closed or unbounded. The zero Interval is all of time. Ends may lie
// outside of what a schema's precision can hold. An interval that ends where it starts holds nothing, or with both ends closed
// that instant. Calls refuse one that ends before it starts, with ErrInvalid, before anything is sent.
type Interval struct {
	from, to         time.Time
	hasFrom, hasTo   bool
	openFrom, closed bool
}

// Between returns the interval from from up to, not including, to. With to before from, every call that takes the interval
// refuses it; Check says so at once.
func Between(from, to time.Time) Interval {
	return Interval{from: from, to: to, hasFrom: true, hasTo: true}
}

// Since returns the interval from from, included, without an end.
func Since(from time.Time) Interval { return Interval{from: from, hasFrom: true} }

// Until returns the interval up to, not including, to, without a start.
func Until(to time.Time) Interval { return Interval{to: to, hasTo: true} }

// AllTime returns the zero Interval, all of time, by name.
func AllTime() Interval { return Interval{} }

// OpenStart returns the interval without the instant at which it starts.
func (in Interval) OpenStart() Interval {
	in.openFrom = true
	return in
}

// ClosedEnd returns the interval with the instant at which it ends included.
func (in Interval) ClosedEnd() Interval {
	in.closed = true
	return in
}

// Check returns an error that matches ErrInvalid where the interval ends before it starts: mostly two times that were mixed up.
func (in Interval) Check() error {
	if in.hasFrom && in.hasTo && in.to.Before(in.from) {
		return invalid.New(ErrInvalid, "interval", in.from.Format(time.RFC3339Nano)+" to "+in.to.Format(time.RFC3339Nano), "an end that is not before its start")
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

// Start returns the first instant in the interval, and false where it has no start. Time has steps of a nanosecond here: an
// open start begins one later.
func (in Interval) Start() (t time.Time, ok bool) {
	if in.hasFrom && in.openFrom {
		return in.from.Add(1), true
	}
	return in.from, in.hasFrom
}

// End returns the first instant after the interval, and false where it has no end. It is one nanosecond after a closed end.
func (in Interval) End() (t time.Time, ok bool) {
	if in.hasTo && in.closed {
		return in.to.Add(1), true
	}
	return in.to, in.hasTo
}

// units returns the first and last unit of p in the interval, and false where there is none.
func (in Interval) units(p rowkey.Precision) (oldest, newest int64, ok bool) {
	oldest, newest = 0, p.Max()
	if in.hasFrom {
		if oldest, ok = p.AtOrAfter(in.from); !ok {
			return 0, 0, false
		}
		if in.openFrom && !p.Time(oldest).After(in.from) {
			if oldest == p.Max() {
				return 0, 0, false
			}
			oldest++
		}
	}
	if in.hasTo {
		if newest, ok = p.AtOrBefore(in.to); !ok {
			return 0, 0, false
		}
		if !in.closed && !p.Time(newest).Before(in.to) {
			newest--
		}
	}
	return oldest, newest, oldest <= newest
}
