package tsdb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// kept is what a store holds in memory of rows of its own, and reads again while calls ask for it. It is looked at by each
// call, so that takes no lock, and no look at the clock either: timers make it old.
type kept[T any] struct {
	load    func(ctx context.Context, known *T) (*T, error) // known is what was read last; nil for nothing
	changed func(old *T)                                    // called, locked, when something else was read; nil for nobody
	times   refreshing
	watch   *telemetry.Probe

	known atomic.Pointer[T] // nil until it was read once
	age   atomic.Uint32     // of known

	mu     sync.Mutex
	flight *flight     // the read under way
	timer  *time.Timer // that makes known older
	closed bool
	base   context.Context
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup // of reads
}

// refreshing says when something is read again.
type refreshing struct {
	due    time.Duration // how old it is when a call has it read again, behind it
	within time.Duration // how old it is when a call waits for that
	wait   time.Duration // how long a call waits for a read at most where something is known
	pause  time.Duration // how long it is left alone where it could not be read
}

// The ages of what is known.
const (
	ageFresh uint32 = iota
	ageAging        // it is read again, and nobody waits for that
	ageStale        // whoever comes waits
)

type flight struct {
	begin time.Time
	done  chan struct{} // closed when err is set
	err   error
}

func (k *kept[T]) open(watch *telemetry.Probe, times refreshing) {
	k.watch, k.times = watch, times
	k.base, k.stop = context.WithCancelCause(bt.WithUpkeep(context.Background()))
}

// fresh returns what is known, if nobody has to read anything.
func (k *kept[T]) fresh() *T {
	if k.age.Load() != ageFresh {
		return nil
	}
	return k.known.Load()
}

// get returns what is known, at most as old as is allowed where it can be read.
func (k *kept[T]) get(ctx context.Context) (*T, error) {
	if v := k.fresh(); v != nil {
		return v, nil
	}
	return k.read(ctx)
}

// glimpse returns what is known, nil for nothing, has it read again where that is due, and waits for nothing.
func (k *kept[T]) glimpse() *T {
	v := k.known.Load()
	if v == nil || k.age.Load() != ageFresh {
		k.mu.Lock()
		k.fly()
		k.mu.Unlock()
	}
	return v
}

// read is get for what is not known or too old.
func (k *kept[T]) read(ctx context.Context) (*T, error) {
	k.mu.Lock()
	v, age := k.known.Load(), k.age.Load()
	if v != nil && age == ageFresh {
		k.mu.Unlock()
		return v, nil
	}
	f := k.fly()
	k.mu.Unlock()
	if f == nil {
		return nil, ErrClosed
	}
	if v != nil && age == ageAging {
		return v, nil
	}
	var late <-chan time.Time
	if v != nil {
		timer := time.NewTimer(k.times.wait - time.Since(f.begin))
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

// refresh reads what there is now.
func (k *kept[T]) refresh(ctx context.Context) error {
	for range 2 { // the read that is under way may have begun too early
		k.mu.Lock()
		f := k.fly()
		k.mu.Unlock()
		if f == nil {
			return ErrClosed
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

// renew is refresh where something is known.
func (k *kept[T]) renew(ctx context.Context) error {
	if k.known.Load() == nil {
		return nil
	}
	return k.refresh(ctx)
}

// fly returns the read that is under way, or starts one; nil once the store is closed. It is locked.
func (k *kept[T]) fly() *flight {
	if k.flight != nil || k.closed {
		return k.flight
	}
	f := &flight{begin: time.Now(), done: make(chan struct{})}
	k.flight = f
	k.ended.Go(func() {
		ctx, op := k.watch.Begin(k.base, telemetry.Upkeep, telemetry.Subject{})
		v, err := k.load(ctx, k.known.Load())
		op.End(err)
		k.landed(f, v, err)
	})
	return f
}

// landed notes what a read has brought.
func (k *kept[T]) landed(f *flight, v *T, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.known.Load()
	if err == nil {
		k.known.Store(v)
		k.age.Store(ageFresh)
	} else if old != nil {
		k.age.Store(ageFresh) // what was read last is gone by, for a while
	}
	switch {
	case k.closed:
	case err == nil:
		k.ageIn(k.times.due-time.Since(f.begin), ageAging)
	case old != nil:
		k.ageIn(k.times.pause, ageAging)
	}
	if err == nil && v != old && k.changed != nil {
		k.changed(old)
	}
	k.flight, f.err = nil, err
	close(f.done)
}

// ageIn makes what is known older in a while. It is locked.
func (k *kept[T]) ageIn(d time.Duration, age uint32) {
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
			k.ageIn(k.times.within-k.times.due, ageStale)
		}
	})
	k.timer = timer
}

// close breaks off the read under way and waits for its end.
func (k *kept[T]) close() {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	k.stop(ErrClosed)
	k.ended.Wait()
}
