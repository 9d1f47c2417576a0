package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

const (
	gcRowsPerBatch  = 64              // rows whose locks are held together, at most
	gcCellsPerBatch = 1 << 14         // after this many cells the locks are released, at the end of the row
	gcRowsPerScan   = 4096            // rows that one iterator visits; a longer one would keep old files
	gcBytesPerScan  = 32 << 20        // bytes after which the iterator stops, at the end of a row
	gcBatchBytes    = 4 << 20         // size at which a batch of deletions is applied
	gcShare         = 20              // seconds of rest after each second of work
	gcFirst         = 5 * time.Second // pause after opening; short, so that programs with short runs collect too
)

// collectForever runs passes until the context ends.
func (e *Engine) collectForever(ctx context.Context, interval time.Duration) {
	timer := time.NewTimer(min(interval, gcFirst))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := e.runGC(ctx, rest)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) && !errors.Is(err, clock.ErrAhead) {
			e.log.Error("garbage collection", "error", err)
		}
		timer.Reset(interval)
	}
}

// rest waits after a piece of work, in proportion to the work's duration.
func rest(ctx context.Context, worked time.Duration) error {
	return ctxerr.Wait(ctx, gcShare*worked)
}

// RunGC makes one pass over all tables, without rest. It removes the cells that the families' GC rules no longer keep
// and the cells of dropped families. If these were many, it compacts, to free disk space. It ends early with the
// context, with ErrClosed when the engine closes, and with clock.ErrAhead while the clock is not trusted.
func (e *Engine) RunGC(ctx context.Context) error {
	return e.runGC(ctx, func(context.Context, time.Duration) error { return nil })
}

// runGC makes one pass, in pieces of bounded work, and calls rest after each piece. During rest it holds only the lock
// that serializes passes.
func (e *Engine) runGC(ctx context.Context, rest func(ctx context.Context, worked time.Duration) error) error {
	e.collecting.Lock()
	defer e.collecting.Unlock()
	for _, name := range sortedNames(*e.tables.Load()) {
		t, err := e.table(name)
		if err != nil {
			continue // deleted meanwhile
		}
		c := &collection{e: e, t: t, rest: rest}
		if err := c.run(ctx); err != nil {
			return fmt.Errorf("engine: collecting %s: %w", name, err)
		}
	}
	return nil
}

// collection is a pass over one table.
type collection struct {
	e    *Engine
	t    *table
	rest func(ctx context.Context, worked time.Duration) error
	rows [][]byte // prefixes of rows to clean
	live int64    // bytes of the cells that are kept
}

func (c *collection) run(ctx context.Context) error {
	from, upper := tableRange(c.t.id)
	for from != nil {
		next, err := c.piece(ctx, from, upper)
		if err != nil {
			return c.e.readError(err)
		}
		from = next
	}
	start := time.Now()
	if err := c.compact(ctx); err != nil {
		return err
	}
	return c.rest(ctx, time.Since(start))
}

// piece scans some rows and cleans those that need it.
func (c *collection) piece(ctx context.Context, from, upper []byte) (next []byte, err error) {
	start := time.Now()
	if next, err = c.scan(ctx, from, upper); err != nil {
		return nil, err
	}
	for len(c.rows) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := c.clean(ctx, c.rows[:min(gcRowsPerBatch, len(c.rows))])
		if err != nil {
			return nil, err
		}
		c.rows = c.rows[n:]
	}
	return next, c.rest(ctx, time.Since(start))
}

// scan looks for rows to clean, without locks. It returns where to continue, or nil at the end.
func (c *collection) scan(ctx context.Context, from, upper []byte) (next []byte, err error) {
	if err := c.e.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer c.e.leave()
	c.rows = c.rows[:0]
	s := c.t.schema.Load()
	if !s.collects() {
		return nil, nil
	}
	it, err := c.e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	now, err := c.e.collectTime()
	if err != nil {
		return nil, err
	}
	w := newSweep(s, now)
	found := false
	cells, seen := 0, 0
	for it.First(); it.Valid(); it.Next() {
		if cells++; cells%workPerCheck == 0 {
			if err := c.e.stopReason(ctx); err != nil {
				return nil, err
			}
		}
		key := it.Key()
		fresh, err := w.enter(key)
		if err != nil {
			return nil, err
		}
		if fresh {
			if w.rows > gcRowsPerScan || seen > gcBytesPerScan {
				return bytes.Clone(key), nil
			}
			found = false
		}
		lazy := it.LazyValue()
		size := len(key) + lazy.Len()
		seen += size
		removed, err := w.removes(key)
		switch {
		case err != nil:
			return nil, err
		case !removed:
			c.live += int64(size)
		case !found:
			found = true
			c.rows = append(c.rows, bytes.Clone(w.prefix))
		}
	}
	return nil, it.Error()
}

// clean reads rows again, now under their locks, and deletes cells that must go, including those written since the
// scan. It returns how many of the rows it has done.
func (c *collection) clean(ctx context.Context, rows [][]byte) (done int, err error) {
	if err := c.e.enterWrite(ctx); err != nil {
		return 0, err
	}
	defer c.e.leave()
	at := target{table: c.t}
	s, err := at.hold()
	if err != nil {
		return len(rows), nil // the table was deleted with its cells
	}
	defer c.t.gate.RUnlock()
	var locks rowLockSet
	for _, prefix := range rows {
		locks.add(c.e.rowHash(c.t.id, appendRowKey(nil, prefix)))
	}
	c.e.rows.lock(&locks, true)
	defer c.e.rows.unlock(&locks, true)
	it, err := c.e.db.NewIter(&pebble.IterOptions{LowerBound: rows[0], UpperBound: afterTerminator(bytes.Clone(rows[len(rows)-1]))})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	b := c.e.db.NewBatch()
	now, err := c.e.collectTime() // the clock may have jumped since the scan
	if err != nil {
		return 0, err
	}
	w := newSweep(s, now)
	cells := 0
	for _, prefix := range rows {
		if cells > gcCellsPerBatch {
			break
		}
		done++
		for it.SeekGE(prefix); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
			if cells++; cells%workPerCheck == 0 {
				if err := c.e.stopReason(ctx); err != nil {
					return 0, err
				}
			}
			if _, err := w.enter(it.Key()); err != nil {
				return 0, err
			}
			removed, err := w.removes(it.Key())
			if err != nil {
				return 0, err
			}
			if !removed {
				continue
			}
			lazy := it.LazyValue()
			if err := b.Delete(it.Key(), nil); err != nil {
				return 0, err
			}
			c.t.garbage.add(it.Key(), lazy.Len())
			if b.Len() < gcBatchBytes {
				continue
			}
			if err := c.e.applyLazily(b); err != nil {
				return 0, err
			}
			b = c.e.db.NewBatch()
		}
	}
	if err := it.Error(); err != nil {
		return 0, err
	}
	// No sync: the next pass finds again what a crash brings back.
	return done, c.e.applyLazily(b)
}

// collects reports whether any cell of the table can ever need removal.
func (s *schema) collects() bool {
	if int(s.nextFamily) > len(s.families) {
		return true // a family was dropped
	}
	for _, f := range s.families {
		if f.rule != nil {
			return true
		}
	}
	return false
}
