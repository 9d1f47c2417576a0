package clock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/clock"
)

// machine has a clock that can be set, and time that passes.
type machine struct {
	wall   time.Time
	steady time.Duration
}

func (m *machine) pass(d time.Duration) { m.wall, m.steady = m.wall.Add(d), m.steady+d }
func (m *machine) set(d time.Duration)  { m.wall = m.wall.Add(d) }
func (m *machine) watch() *clock.Watch {
	return clock.New(func() time.Time { return m.wall }, func() time.Duration { return m.steady })
}

func newMachine() *machine { return &machine{wall: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func checkTrusted(t *testing.T, w *clock.Watch, want bool, when string) {
	t.Helper()
	_, err := w.Now()
	if err != nil && !errors.Is(err, clock.ErrAhead) {
		t.Fatalf("%s: %v, want ErrAhead", when, err)
	}
	if (err == nil) != want {
		t.Errorf("%s: believed is %v, want %v", when, err == nil, want)
	}
}

// A clock that is ahead for seconds is not believed, and is believed at once when it is right again.
func TestAheadForSeconds(t *testing.T) {
	m := newMachine()
	w := m.watch()
	m.pass(time.Hour)
	checkTrusted(t, w, true, "an hour later")
	right := m.wall
	m.set(4 * year)
	for range 5 {
		checkTrusted(t, w, false, "four years ahead")
		m.pass(time.Second)
	}
	if got := w.Earliest(); got.Sub(right) != 5*time.Second {
		t.Errorf("Earliest is %v after the time that was right, want 5s", got.Sub(right))
	}
	m.set(-4 * year)
	checkTrusted(t, w, true, "right again")
	m.pass(time.Hour)
	checkTrusted(t, w, true, "an hour after that")
}

// Time servers correct clocks by small steps, and machines are paused between two readings for any time.
func TestSmallStepsAreBelieved(t *testing.T) {
	m := newMachine()
	w := m.watch()
	for range 100 {
		m.pass(time.Minute)
		m.set(clock.Tolerance)
		checkTrusted(t, w, true, "a step of the tolerance")
	}
	m.set(clock.Tolerance + 1)
	checkTrusted(t, w, false, "a step of more")
}

// After a machine slept or a clock was set right, the watch believes the clock once it has kept step for the probation.
// Another jump in that time begins the probation again.
func TestLastingJump(t *testing.T) {
	m := newMachine()
	w := m.watch()
	m.set(8 * time.Hour) // the machine slept, and its monotonic clock with it
	checkTrusted(t, w, false, "after sleep")
	m.pass(clock.Probation - time.Second)
	checkTrusted(t, w, false, "shortly before the end of the probation")
	m.set(time.Hour)
	checkTrusted(t, w, false, "after another jump")
	m.pass(clock.Probation - time.Second)
	checkTrusted(t, w, false, "shortly before the end of the second probation")
	m.pass(time.Second)
	checkTrusted(t, w, true, "after it")
	if !w.High().Equal(m.wall) {
		t.Errorf("High is %v, want the clock's %v", w.High(), m.wall)
	}
	m.pass(time.Hour)
	checkTrusted(t, w, true, "later")
}

// A clock that runs twice as fast as time never ends its probation.
func TestFastClock(t *testing.T) {
	m := newMachine()
	w := m.watch()
	for range 100 {
		m.pass(time.Minute)
		m.set(time.Minute)
		checkTrusted(t, w, false, "a clock that runs too fast")
	}
}

// A clock that is set back is used, as deletions are only late by it. The time that it was is remembered for the
// probation: up to there it may go forward again.
func TestBehind(t *testing.T) {
	m := newMachine()
	w := m.watch()
	m.set(-3 * year)
	checkTrusted(t, w, true, "set back")
	if !w.Earliest().Equal(m.wall) {
		t.Errorf("Earliest is %v, want the clock's %v", w.Earliest(), m.wall)
	}
	if got := w.High().Sub(m.wall); got != 3*year {
		t.Errorf("High is %v above the clock, want three years", got)
	}
	if got := w.Latest().Sub(m.wall); got != 3*year {
		t.Errorf("Latest is %v above the clock, want three years", got)
	}
	m.pass(time.Minute)
	m.set(3 * year)
	checkTrusted(t, w, true, "right again")
	m.set(-3 * year)
	checkTrusted(t, w, true, "set back again")
	m.pass(clock.Probation)
	checkTrusted(t, w, true, "set back for long")
	if !w.Latest().Equal(m.wall) {
		t.Errorf("Latest is %v, want the clock's %v", w.Latest(), m.wall)
	}
	m.set(3 * year)
	checkTrusted(t, w, false, "the lower time is the believed one by now")
	if !w.Latest().Equal(m.wall) {
		t.Errorf("Latest is %v while the clock is ahead, want the clock's %v", w.Latest(), m.wall)
	}
}

// A clock that stands still, as in tests, may be moved by as much as has passed.
func TestFrozenClock(t *testing.T) {
	m := newMachine()
	w := m.watch()
	for range 60 {
		m.steady += time.Minute
		checkTrusted(t, w, true, "frozen")
	}
	m.wall = m.wall.Add(time.Hour)
	checkTrusted(t, w, true, "moved by what has passed")
	f := clock.New(func() time.Time { return m.wall }, clock.Follow(func() time.Time { return m.wall }))
	m.wall = m.wall.Add(year)
	checkTrusted(t, f, true, "followed")
}

// At its start a program knows only when it was last seen.
func TestResume(t *testing.T) {
	for _, tt := range []struct {
		name string
		away time.Duration // by the clock
		want bool
	}{
		{"restart", time.Second, true},
		{"since yesterday", clock.Away, true},
		{"since last week", 7 * day, false},
		{"wrong by years", 4 * year, false},
		{"set back", -4 * year, true},
	} {
		m := newMachine()
		high := m.wall.Add(-tt.away)
		w := m.watch()
		w.Resume(high)
		checkTrusted(t, w, tt.want, tt.name)
		m.pass(clock.Probation)
		checkTrusted(t, w, true, tt.name+", after the probation")
		if !w.High().Equal(m.wall) {
			t.Errorf("%s: High is %v, want the clock's %v", tt.name, w.High(), m.wall)
		}
	}
}

// What is believed more than the clock decides for as long as it says so.
func TestTrust(t *testing.T) {
	m := newMachine()
	w := m.watch()
	right := m.wall.Add(-time.Hour)
	for range 10 {
		w.Trust(right)
		checkTrusted(t, w, false, "an hour ahead of the service")
		m.pass(clock.Probation / 2)
		right = right.Add(clock.Probation / 2)
	}
	m.set(-time.Hour)
	checkTrusted(t, w, true, "set right")
}

// Each change is reported once.
func TestReport(t *testing.T) {
	m := newMachine()
	w := m.watch()
	var got []time.Duration
	w.Report(func(d time.Duration) { got = append(got, d) })
	look := func() {
		for range 3 {
			_, _ = w.Now()
		}
	}
	look()
	m.set(time.Hour)
	look()
	m.set(-2 * time.Hour)
	look()
	m.set(time.Hour)
	look()
	if want := []time.Duration{time.Hour, -time.Hour, 0}; !slices.Equal(got, want) {
		t.Errorf("reports %v, want %v", got, want)
	}
}
