// Package clock decides whether a program may trust a wall clock when it deletes data by age. If the clock is ahead,
// even by seconds, data looks expired that is not. If it is behind, deletions are only late.
package clock

import (
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/errtype"
)

const (
	// Tolerance is how far a clock may be ahead of the elapsed time. Time servers correct a clock by less.
	Tolerance = 10 * time.Second
	// Probation is how long a clock that jumped must agree with the elapsed time before it is trusted.
	Probation = 10 * time.Minute
	// Away is the longest absence of a program, by the clock at its start, after which the clock is trusted at once.
	Away = 24 * time.Hour
)

// ErrAhead is returned while the clock is not trusted.
var ErrAhead = errtype.New("tsdb.ErrClock", "tsdb: the clock is ahead")

// Watch compares a wall clock with the elapsed time. It is safe for concurrent use. A reading costs two clock readings
// and a lock, about 0.1 µs.
type Watch struct {
	wall   func() time.Time
	steady func() time.Duration

	mu      sync.Mutex
	line    reading // the last trusted reading
	odd     reading // the first reading after a jump; zero if there was none
	place   place
	reports []func(ahead time.Duration)
}

type reading struct {
	wall   time.Time
	steady time.Duration
}

// offset returns how much further the wall clock has advanced than the elapsed time since an earlier reading.
func (r reading) offset(since reading) time.Duration {
	return r.wall.Sub(since.wall) - (r.steady - since.steady)
}

// place is the position of the last reading relative to the line.
type place int8

const (
	near place = iota
	behind
	ahead
)

// New returns a watch that trusts the current wall clock. steady returns the elapsed time since any fixed moment, by a
// clock that nobody sets; nil means the process's monotonic clock.
func New(wall func() time.Time, steady func() time.Duration) *Watch {
	if steady == nil {
		start := time.Now()
		steady = func() time.Duration { return time.Since(start) }
	}
	w := &Watch{wall: wall, steady: steady}
	w.line = w.read()
	return w
}

// Follow returns a steady clock for a wall clock that tests move: every move counts as elapsed time.
func Follow(wall func() time.Time) func() time.Duration {
	start := wall().Round(0)
	return func() time.Duration { return wall().Round(0).Sub(start) }
}

func (w *Watch) read() reading {
	wall := w.wall().Round(0) // without the monotonic part. It is read first, so that a pause before the second reading makes it look behind
	return reading{wall, w.steady()}
}

// Report registers a function. The watch calls f when the clock is no longer trusted, with how far it is ahead; when
// the clock is behind, with a negative duration; and with 0 when it is right again. f must not call the watch.
func (w *Watch) Report(f func(ahead time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, f)
}

// Trust sets the current time from a source that is trusted more than the clock. It restarts a probation.
func (w *Watch) Trust(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line, w.odd = reading{now.Round(0), w.steady()}, reading{}
}

// Resume sets when a program that starts now was last running. The clock is trusted at once if it is later by Away at
// most.
func (w *Watch) Resume(high time.Time) {
	if away := w.Wall().Sub(high); away < 0 || away > Away {
		w.Trust(high)
	}
}

// Wall returns the reading of the clock, trusted or not.
func (w *Watch) Wall() time.Time { return w.wall() }

// Now returns the reading of the clock. The error matches ErrAhead while the clock is not trusted; do not delete
// anything by the reading then. A clock that is behind is used unchanged.
func (w *Watch) Now() (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, off := w.judge()
	if w.place == ahead {
		return now.wall, fmt.Errorf("%w: by %v of the time that has passed. Nothing is deleted by age until it is right, or has kept step for %v",
			ErrAhead, off.Round(time.Second), Probation)
	}
	return now.wall, nil
}

// Earliest returns the earliest possible current time: treat what has not ended by then as in force.
func (w *Watch) Earliest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, _ := w.judge()
	if w.place == ahead {
		return w.high(now)
	}
	return now.wall
}

// Latest returns the latest possible current time: use it for what must be kept for a while from now on.
func (w *Watch) Latest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, _ := w.judge()
	if w.place == behind {
		return w.high(now)
	}
	return now.wall
}

// High returns the latest trusted time, plus the time elapsed since.
func (w *Watch) High() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, _ := w.judge()
	return w.high(now)
}

func (w *Watch) high(now reading) time.Time { return w.line.wall.Add(now.steady - w.line.steady) }

// judge takes a reading and determines its place. The watch is locked.
func (w *Watch) judge() (now reading, off time.Duration) {
	now = w.read()
	off = now.offset(w.line)
	jumped := w.odd == (reading{}) || now.offset(w.odd).Abs() > Tolerance
	switch {
	case off.Abs() <= Tolerance, !jumped && now.steady-w.odd.steady >= Probation:
		w.line, w.odd = now, reading{}
		w.move(near, 0)
	default:
		if jumped {
			w.odd = now
		}
		if off > 0 {
			w.move(ahead, off)
		} else {
			w.move(behind, off)
		}
	}
	return now, off
}

func (w *Watch) move(to place, off time.Duration) {
	if w.place == to {
		return
	}
	w.place = to
	for _, f := range w.reports {
		f(off)
	}
}
