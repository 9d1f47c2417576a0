package engine

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A deleted cell leaves a tombstone, and an overwritten one an older version. Reads step over both until a flush or a
// compaction removes them, and Pebble starts neither while little is written. So the engine starts them: a flush after
// many deletions, and a compaction of a range in which a read stepped over much and returned little.
const (
	// deletionsPerFlush is how many cells are deleted before a flush. A read takes about 60 us to step over this many.
	deletionsPerFlush = 1000
	// A compaction is due after a read that stepped over skippedPoints more than skippedPerStep for each step that it
	// took.
	skippedPoints  = 128
	skippedPerStep = 4
	// maxCleanups bounds how many ranges wait for a compaction. Others wait until a read finds them again.
	maxCleanups = 64
	// maxCleanupBytes is about how many bytes one compaction covers, so that Close does not wait long.
	maxCleanupBytes = 64 << 20
	// cleanupPause is the minimum time between two cleanups. The longer one works, the longer it rests (see rest).
	cleanupPause = 5 * time.Second
)

// cleanups holds pending flushes and compactions.
type cleanups struct {
	deleted atomic.Int64  // number of cells deleted since the last flush
	wake    chan struct{} // holds one signal

	mu    sync.Mutex
	spans []span
}

func newCleanups() *cleanups { return &cleanups{wake: make(chan struct{}, 1)} }

// addDeleted counts deleted cells. They must be visible already: a flush removes only earlier deletions.
func (c *cleanups) addDeleted(cells int) {
	if cells > 0 && c.deleted.Add(int64(cells)) >= deletionsPerFlush {
		signal(c.wake)
	}
}

// addSpan asks for a compaction of a span.
func (c *cleanups) addSpan(s span) {
	if s.empty() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if spans := mergeSpans(append(c.spans, s)); len(spans) <= maxCleanups {
		c.spans = spans
	}
	signal(c.wake)
}

func (c *cleanups) takeSpans() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := c.spans
	c.spans = nil
	return spans
}

// skipped returns how many points an iterator has stepped over beyond skippedPerStep for each of its steps.
func skipped(it *pebble.Iterator) int {
	stats := it.Stats()
	steps := 0
	for _, n := range [...][pebble.NumStatsKind]int{
		stats.ForwardSeekCount, stats.ForwardStepCount, stats.ReverseSeekCount, stats.ReverseStepCount,
	} {
		steps += n[pebble.InterfaceCall]
	}
	return int(stats.InternalStats.PointCount) - skippedPerStep*steps
}

// noteSkipped asks for a compaction of the part of a span that an iterator has passed, if it stepped over much. before
// is the result of skipped when the iterator entered the span; noteSkipped returns the current one.
func (e *Engine) noteSkipped(it *pebble.Iterator, s span, reverse bool, before int) int {
	now := skipped(it)
	if now-before < skippedPoints {
		return now
	}
	switch {
	case !it.Valid():
	case reverse:
		s.lower = bytes.Clone(it.Key())
	default:
		s.upper = bytes.Clone(it.Key())
	}
	e.cleanups.addSpan(s)
	return now
}

// cleanForever runs pending flushes and compactions until the context ends or the storage fails.
func (e *Engine) cleanForever(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.cleanups.wake:
		}
		start := time.Now()
		if err := e.clean(ctx); err != nil {
			if ctx.Err() == nil && !errors.Is(err, ErrClosed) {
				e.log.Error("cleaning up after deletions", "error", err)
			}
			if e.fault.err() != nil {
				return
			}
		}
		if rest(ctx, max(time.Since(start), cleanupPause/gcShare)) != nil {
			return
		}
	}
}

// clean runs the pending flush and compactions once.
func (e *Engine) clean(ctx context.Context) error {
	if err := e.enterWrite(ctx); err != nil {
		return err
	}
	defer e.leave()
	spans := e.cleanups.takeSpans()
	if len(spans) == 0 && e.cleanups.deleted.Load() < deletionsPerFlush {
		return nil
	}
	e.cleanups.deleted.Store(0) // before the flush begins: the flush may miss deletions counted from here on
	if err := e.flush(ctx); err != nil {
		return err
	}
	for _, s := range spans {
		if err := e.compactSpan(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// flush writes all that is in memory to table files. If the context ends, flush returns and the writing goes on. Pebble
// retries a failed flush forever, so the wait also ends with the fault.
func (e *Engine) flush(ctx context.Context) error {
	var flushed <-chan struct{}
	err := e.guard(func() (err error) {
		flushed, err = e.db.AsyncFlush()
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-e.fault.raised:
		return e.fault.err()
	case <-flushed:
		return nil
	}
}

// compactSpan compacts the table files of a span, or of its first maxCleanupBytes.
func (e *Engine) compactSpan(ctx context.Context, s span) error {
	for {
		size, err := e.diskUsage([]span{s})
		if err != nil {
			return err
		}
		mid := between(s.lower, s.upper)
		if size <= maxCleanupBytes || bytes.Equal(mid, s.upper) {
			break
		}
		s.upper = mid
	}
	// If a file overlaps no other, Pebble moves it to the next level unchanged, with its tombstones. The engine has no
	// range keys, so deleting them changes nothing, but it creates a file that overlaps all others of the span.
	b := e.db.NewBatch()
	if err := b.RangeKeyDelete(s.lower, s.upper, nil); err != nil {
		return err
	}
	if err := e.applyLazily(b); err != nil {
		return err
	}
	return e.guard(func() error { return e.compact(ctx, s.lower, s.upper) })
}
