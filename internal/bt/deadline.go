package bt

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends at a time. Only a caller that waits for its end makes it start a timer; an engine in
// the same process usually does not. Its owner calls stop.
type deadline struct {
	context.Context
	at time.Time

	mu      sync.Mutex
	timed   context.Context // nil before the first Done
	cancel  context.CancelFunc
	stopped bool
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.timed != nil:
	case d.stopped:
		d.timed, d.cancel = context.WithCancel(d.Context)
		d.cancel()
	default:
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.timed.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch err := d.Context.Err(); {
	case d.timed != nil:
		return d.timed.Err()
	case err != nil:
		return err
	case d.stopped:
		return context.Canceled
	case !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. It passes on what package context stores in the context with the timer, so that a
// context made from this one needs no goroutine.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	from := d.timed
	d.mu.Unlock()
	if from == nil {
		from = d.Context
	}
	return from.Value(key)
}

// stop ends the context.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.cancel != nil {
		d.cancel()
	}
}
