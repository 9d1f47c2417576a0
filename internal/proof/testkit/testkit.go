// Package testkit holds what the tests of many packages share: a clock that tests set, golden files, and which tests
// run without the race detector only.
package testkit

import (
	"sync/atomic"
	"testing"
	"time"
)

// Clock is a clock that a test sets. It is safe for concurrent use.
type Clock struct{ now atomic.Pointer[time.Time] }

// NewClock returns a clock that shows a time.
func NewClock(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now returns the clock's time. The zero Clock shows the zero time.
func (c *Clock) Now() time.Time {
	if now := c.now.Load(); now != nil {
		return *now
	}
	return time.Time{}
}

// Set sets the clock.
func (c *Clock) Set(now time.Time) { c.now.Store(&now) }

// Add advances the clock.
func (c *Clock) Add(by time.Duration) { c.Set(c.Now().Add(by)) }

// Plain skips a test under the race detector, which makes tests ten times as slow. Use it for tests without
// concurrency: large requests, damage byte by byte, counted calls.
func Plain(t testing.TB) {
	t.Helper()
	if Raced {
		t.Skip("no concurrency in this test: it runs without the race detector")
	}
}

// OneOf skips a case of a matrix under the race detector, unless stands is set. There, one case or a few represent all
// of them.
func OneOf(t testing.TB, stands bool) {
	t.Helper()
	if Raced && !stands {
		t.Skip("under the race detector another case represents this one")
	}
}

// Stride returns the step of a loop over many cases: 1, or n under the race detector.
func Stride(n int) int {
	if Raced {
		return n
	}
	return 1
}
