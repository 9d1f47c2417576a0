package bt

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlineIsAContext: a deadline does what context.WithDeadline does, whether or not somebody waits for its end.
func TestDeadlineIsAContext(t *testing.T) {
	cause := errors.New("enough")
	type key struct{}
	for _, wait := range []string{"nobody", "before", "after"} {
		for name, end := range map[string]func(parent context.CancelCauseFunc, stop func()){
			"time passes":     func(context.CancelCauseFunc, func()) { time.Sleep(time.Second) },
			"parent ends":     func(parent context.CancelCauseFunc, _ func()) { parent(cause) },
			"stopped":         func(_ context.CancelCauseFunc, stop func()) { stop() },
			"parent, stopped": func(parent context.CancelCauseFunc, stop func()) { parent(cause); synctest.Wait(); stop() },
			"stopped, late":   func(_ context.CancelCauseFunc, stop func()) { stop(); time.Sleep(2 * time.Second) },
			"nothing":         func(context.CancelCauseFunc, func()) {},
		} {
			synctest.Test(t, func(t *testing.T) {
				at := time.Now().Add(time.Second)
				parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, 7))
				defer cancel(nil)
				want, stopWant := context.WithDeadline(parent, at)
				defer stopWant()
				got := &deadline{Context: parent, at: at}
				defer got.stop()
				var child context.Context
				if wait == "before" {
					child = childOf(t, got)
				}
				end(cancel, func() { got.stop(); stopWant() })
				synctest.Wait()
				if got.Err() != want.Err() || context.Cause(got) != context.Cause(want) {
					t.Errorf("%s, %s waits: %v of %v, want %v of %v", name, wait, got.Err(), context.Cause(got), want.Err(), context.Cause(want))
				}
				if wait == "after" {
					child = childOf(t, got)
				}
				synctest.Wait()
				if child != nil && child.Err() != want.Err() {
					t.Errorf("%s, %s waits: a context made from it has %v, want %v", name, wait, child.Err(), want.Err())
				}
				if d, ok := got.Deadline(); !ok || !d.Equal(at) || got.Value(key{}) != 7 {
					t.Errorf("%s, %s waits: deadline %v, value %v", name, wait, d, got.Value(key{}))
				}
			})
		}
	}
}

func childOf(t *testing.T, ctx context.Context) context.Context {
	child, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	return child
}

func TestDeadlineKeepsTheEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early := time.Now().Add(time.Second)
		parent, cancel := context.WithDeadline(t.Context(), early)
		defer cancel()
		d := &deadline{Context: parent, at: early.Add(time.Hour)}
		defer d.stop()
		if at, ok := d.Deadline(); !ok || !at.Equal(early) {
			t.Errorf("Deadline = %v, want the parent's", at)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if d.Err() != context.DeadlineExceeded {
			t.Errorf("Err = %v after the parent's deadline", d.Err())
		}
	})
}

// TestDeadlineStartsNoGoroutines: a connection makes a context from the call's.
func TestDeadlineStartsNoGoroutines(t *testing.T) {
	d := &deadline{Context: t.Context(), at: time.Now().Add(time.Hour)}
	defer d.stop()
	before := runtime.NumGoroutine()
	for range 50 {
		_, cancel := context.WithCancel(context.WithValue(d, recordKey{}, 1))
		defer cancel()
	}
	if got := runtime.NumGoroutine(); got >= before+50 {
		t.Errorf("%d goroutines, %d before", got, before)
	}
}
