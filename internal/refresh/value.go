// Package refresh caches values that are read from the table, and refreshes them in the background while calls use
// them.
package refresh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Value caches data from some of the store's own rows and refreshes it in the background. Each call looks at it, so
// reads take no lock and do not read the clock: timers make the value old. Set Load and Changed before Open.
type Value[T any] struct {
	Load    func(ctx context.Context, known *T) (*T, error) // known is the last value; nil if there is none
	Changed func(old *T)                                    // called, locked, when a different value was read; may be nil
	times   Times
	watch   *telemetry.Probe

	known atomic.Pointer[T] // nil until the first read
	age   atomic.Uint32     // of known

	mu      sync.Mutex
	loading *load       // the running read
	timer   *time.Timer // the timer that makes known older
	closed  bool
	base    context.Context
	stop    context.CancelCauseFunc
	ended   sync.WaitGroup // of reads
}

// Times says when a value is read again.
type Times struct {
	Due    time.Duration // the age at which a call starts a read in the background
	Within time.Duration // the age at which a call waits for the read
	Wait   time.Duration // how long a call waits at most if an older value is known
	Pause  time.Duration // the pause after a failed read
}

// The ages of the known value.
const (
	ageFresh uint32 = iota
	ageAging        // a read is due, but no call waits for it
	ageStale        // calls wait
)

type load struct {
	begin time.Time
	done  chan struct{} // closed when err is set
	err   error
}

func (k *Value[T]) Open(watch *telemetry.Probe, times Times) {
	k.watch, k.times = watch, times
	k.base, k.stop = context.WithCancelCause(bt.WithUpkeep(context.Background()))
}

// Fresh returns the value if no read is due, else nil.
func (k *Value[T]) Fresh() *T {
	if k.age.Load() != ageFresh {
		return nil
	}
	return k.known.Load()
}

// Get returns the value. It is at most Within old, if it can be read.
func (k *Value[T]) Get(ctx context.Context) (*T, error) {
	if v := k.Fresh(); v != nil {
		return v, nil
	}
	return k.read(ctx)
}

// Peek returns the known value, or nil if there is none. It starts a read if one is due, and does not wait.
func (k *Value[T]) Peek() *T {
	v := k.known.Load()
	if v == nil || k.age.Load() != ageFresh {
		k.mu.Lock()
		k.startLoad()
		k.mu.Unlock()
	}
	return v
}

// read is Get for a value that is unknown or too old.
func (k *Value[T]) read(ctx context.Context) (*T, error) {
	k.mu.Lock()
	v, age := k.known.Load(), k.age.Load()
	if v != nil && age == ageFresh {
		k.mu.Unlock()
		return v, nil
	}
	f := k.startLoad()
	k.mu.Unlock()
	if f == nil {
		return nil, bt.ErrClosed
	}
	if v != nil && age == ageAging {
		return v, nil
	}
	var late <-chan time.Time
	if v != nil {
		timer := time.NewTimer(k.times.Wait - time.Since(f.begin))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-f.done:
	case <-late:
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	if v := k.known.Load(); v != nil {
		return v, nil
	}
	return nil, f.err
}

// Refresh reads the current value.
func (k *Value[T]) Refresh(ctx context.Context) error {
	for range 2 { // the running read may have begun too early
		k.mu.Lock()
		f := k.startLoad()
		k.mu.Unlock()
		if f == nil {
			return bt.ErrClosed
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// RefreshIfLoaded is Refresh if a value is known, and does nothing otherwise.
func (k *Value[T]) RefreshIfLoaded(ctx context.Context) error {
	if k.known.Load() == nil {
		return nil
	}
	return k.Refresh(ctx)
}

// startLoad returns the running read, or starts one; it returns nil once the store is closed. k is locked.
func (k *Value[T]) startLoad() *load {
	if k.loading != nil || k.closed {
		return k.loading
	}
	f := &load{begin: time.Now(), done: make(chan struct{})}
	k.loading = f
	k.ended.Go(func() {
		ctx, op := k.watch.Begin(k.base, telemetry.Upkeep, telemetry.Subject{})
		v, err := k.Load(ctx, k.known.Load())
		op.End(err)
		k.finishLoad(f, v, err)
	})
	return f
}

// finishLoad stores the result of a read.
func (k *Value[T]) finishLoad(f *load, v *T, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.known.Load()
	if err == nil {
		k.known.Store(v)
		k.age.Store(ageFresh)
	} else if old != nil {
		k.age.Store(ageFresh) // the last value stays valid for a while
	}
	switch {
	case k.closed:
	case err == nil:
		k.ageIn(k.times.Due-time.Since(f.begin), ageAging)
	case old != nil:
		k.ageIn(k.times.Pause, ageAging)
	}
	if err == nil && v != old && k.Changed != nil {
		k.Changed(old)
	}
	k.loading, f.err = nil, err
	close(f.done)
}

// ageIn makes the known value older after d. k is locked.
func (k *Value[T]) ageIn(d time.Duration, age uint32) {
	if k.timer != nil {
		k.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(max(0, d), func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.timer != timer || k.closed {
			return
		}
		k.age.Store(age)
		if age == ageAging {
			k.ageIn(k.times.Within-k.times.Due, ageStale)
		}
	})
	k.timer = timer
}

// Close cancels the running read and waits for its end.
func (k *Value[T]) Close() {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	k.stop(bt.ErrClosed)
	k.ended.Wait()
}

// Last returns the last value, or nil if there is none. It reads nothing.
func (k *Value[T]) Last() *T { return k.known.Load() }

// Stale reports whether Get would wait for a read.
func (k *Value[T]) Stale() bool { return k.age.Load() == ageStale }

// Start starts a read if no value is known, and does not wait for it.
func (k *Value[T]) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known.Load() == nil {
		k.startLoad()
	}
}
