// Package clock decides whether a wall clock may be believed by whoever deletes data by age. A clock that is ahead, if only for
// seconds, makes data look expired that is not; a clock that is behind only makes deletions late.
package clock

import (
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/errtype"
)

const (
	// Tolerance is how far a clock may be ahead of the time that has passed. Time servers correct a clock by less.
	Tolerance = 10 * time.Second
	// Probation is how long a clock that jumped must keep step with the time that passes before it is believed.
	Probation = 10 * time.Minute
	// Away is how long a program may have been away, by the clock at its start, for the clock to be believed at once.
	Away = 24 * time.Hour
)

// ErrAhead is returned while the clock is not believed.
var ErrAhead = errtype.New("tsdb.ErrClock", "tsdb: the clock is ahead")

// Watch compares a wall clock with the time that passes. It is safe for concurrent use. A reading costs two looks at clocks
// and a lock, about 0.1 µs.
type Watch struct {
	wall   func() time.Time
	steady func() time.Duration

	mu      sync.Mutex
	line    reading // the wall clock stood there when it was last believed
	odd     reading // the first reading after a jump; zero for none
	place   place
	reports []func(ahead time.Duration)
}

type reading struct {
	wall   time.Time
	steady time.Duration
}

// offset is by how much the wall clock has advanced more than time has passed since an earlier reading.
func (r reading) offset(since reading) time.Duration {
	return r.wall.Sub(since.wall) - (r.steady - since.steady)
}

// place is where the last reading stood beside the line.
type place int8

const (
	near place = iota
	behind
	ahead
)

// New returns a watch that believes the wall clock as it stands. Steady tells how much time has passed since any fixed moment,
// by a clock that nobody sets; nil is the monotonic clock of the process.
func New(wall func() time.Time, steady func() time.Duration) *Watch {
	if steady == nil {
		start := time.Now()
		steady = func() time.Duration { return time.Since(start) }
	}
	w := &Watch{wall: wall, steady: steady}
	w.line = w.read()
	return w
}

// Follow returns the steady clock that belongs to a wall clock which tests move as they like: every move counts as time that
// has passed.
func Follow(wall func() time.Time) func() time.Duration {
	start := wall().Round(0)
	return func() time.Duration { return wall().Round(0).Sub(start) }
}

func (w *Watch) read() reading {
	wall := w.wall().Round(0) // without its monotonic part. It is read first: a pause between the two makes it look behind
	return reading{wall, w.steady()}
}

// Report has f called when the clock is no longer believed, with how far it is ahead; when it is behind, with how far, as a
// negative number; and with 0 when all is well again. F must not call the watch.
func (w *Watch) Report(f func(ahead time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, f)
}

// Trust says what time it is, by something that is believed more than the clock. It begins every probation anew.
func (w *Watch) Trust(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line, w.odd = reading{now.Round(0), w.steady()}, reading{}
}

// Resume says what time it was when a program that starts now was last seen. The clock is believed at once where it is later by
// Away at most.
func (w *Watch) Resume(high time.Time) {
	if away := w.Wall().Sub(high); away < 0 || away > Away {
		w.Trust(high)
	}
}

// Wall returns the reading of the clock, believed or not.
func (w *Watch) Wall() time.Time { return w.wall() }

// Now returns the reading of the clock. The error matches ErrAhead while the clock is not believed, and the reading must then
// not be used to delete anything. A clock that is behind is used as it is.
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

// Earliest returns the earliest that it may be now: what has not ended by then is treated as in force.
func (w *Watch) Earliest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, _ := w.judge()
	if w.place == ahead {
		return w.high(now)
	}
	return now.wall
}

// High returns the latest time that was believed, advanced by the time that has passed since.
func (w *Watch) High() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, _ := w.judge()
	return w.high(now)
}

func (w *Watch) high(now reading) time.Time { return w.line.wall.Add(now.steady - w.line.steady) }

// judge takes a reading and finds its place. The watch is locked.
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
