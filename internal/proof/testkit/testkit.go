// Package testkit holds what the tests of many packages share: a clock that they move, golden files, and which tests the race
// detector leaves out.
package testkit

import (
	"sync/atomic"
	"testing"
	"time"
)

// Clock is a time that a test moves. The goroutines of a store may read it at any time.
type Clock struct{ now atomic.Pointer[time.Time] }

// NewClock returns a clock that stands at a time.
func NewClock(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now returns the time at which the clock stands; the zero Clock stands at the zero time.
func (c *Clock) Now() time.Time {
	if now := c.now.Load(); now != nil {
		return *now
	}
	return time.Time{}
}

// Set moves the clock to a time.
func (c *Clock) Set(now time.Time) { c.now.Store(&now) }

// Add moves the clock on.
func (c *Clock) Add(by time.Duration) { c.Set(c.Now().Add(by)) }

// Plain leaves a test to the run without the race detector, which makes it ten times as long. It is for tests in which nothing runs
// side by side: large requests, damage byte by byte, counted calls.
func Plain(t testing.TB) {
	t.Helper()
	if Raced {
		t.Skip("nothing in it runs side by side: the plain run has it")
	}
}

// OneOf leaves a case of a matrix to the run without the race detector. Under it one case, or a few, stand for all.
func OneOf(t testing.TB, stands bool) {
	t.Helper()
	if Raced && !stands {
		t.Skip("another case stands for it under the race detector: the plain run has all")
	}
}

// Stride returns the step of a loop over many cases: 1, or n under the race detector.
func Stride(n int) int {
	if Raced {
		return n
	}
	return 1
}
