package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	gcRowsPerBatch  = 64               // rows whose locks are held together
	gcRowsPerScan   = 4096             // rows that one iterator walks over, so that it does not hold on to old files
	gcBatchBytes    = 4 << 20          // a batch of deletions is applied when it gets larger
	gcShare         = 20               // a pass of a second is followed by at least this many seconds of rest
	compactMinCells = 10_000           // fewer deletions are left to Pebble's own compactions
	compactMinBytes = 16 << 20         //
	maxRest         = 30 * time.Minute // the longest rest after a long pass
)

// collectForever runs passes until the context ends.
func (e *Engine) collectForever(ctx context.Context, interval time.Duration) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		if err := e.RunGC(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("garbage collection", "error", err)
		}
		timer.Reset(max(interval, min(gcShare*time.Since(start), maxRest)))
	}
}

// RunGC makes one pass over all tables: it removes the cells that the families' rules give up and those of dropped
// families, and compacts where that was much, so that the disk gets its space back. It ends early with the context, and
// with ErrClosed when the engine closes.
func (e *Engine) RunGC(ctx context.Context) error {
	e.collecting.Lock()
	defer e.collecting.Unlock()
	for _, name := range sortedNames(*e.tables.Load()) {
		t, err := e.table(name)
		if err != nil {
			continue // deleted since
		}
		if err := e.collectTable(ctx, t); err != nil {
			return fmt.Errorf("engine: collecting %s: %w", name, err)
		}
	}
	return nil
}

// collection is a pass over one table.
type collection struct {
	e     *Engine
	t     *table
	rows  [][]byte // prefixes of rows to clean
	cells int      // deleted so far
	bytes int
	first []byte // the range of the rows that were cleaned
	last  []byte
}

func (e *Engine) collectTable(ctx context.Context, t *table) error {
	c := &collection{e: e, t: t}
	from, upper := tableRange(t.id)
	for from != nil {
		var err error
		if from, err = c.scan(ctx, from, upper); err != nil {
			return e.readError(err)
		}
		for len(c.rows) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(gcRowsPerBatch, len(c.rows))
			if err := c.clean(ctx, c.rows[:n]); err != nil {
				return e.readError(err)
			}
			c.rows = c.rows[n:]
		}
	}
	return c.compact(ctx)
}

// scan looks for rows to clean, without locks, and returns where to go on, or nil at the end.
func (c *collection) scan(ctx context.Context, from, upper []byte) (next []byte, err error) {
	if err := c.e.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer c.e.leave()
	s := c.t.schema.Load()
	if !s.collects() {
		return nil, nil
	}
	it, err := c.e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	w := newSweep(s, c.e.micros())
	c.rows = c.rows[:0]
	found := false
	cells := 0
	for it.First(); it.Valid(); it.Next() {
		if cells++; cells%workPerCheck == 0 {
			if err := c.e.goOn(ctx); err != nil {
				return nil, err
			}
		}
		key := it.Key()
		fresh, err := w.enter(key)
		if err != nil {
			return nil, err
		}
		if fresh {
			if w.rows > gcRowsPerScan {
				return bytes.Clone(key), nil
			}
			found = false
		}
		gone, err := w.gone(key)
		if err != nil {
			return nil, err
		}
		if gone && !found {
			found = true
			c.rows = append(c.rows, bytes.Clone(w.prefix))
		}
	}
	return nil, it.Error()
}

// clean looks at rows again, now under their locks, and deletes what has to go. What was written since the scan counts.
func (c *collection) clean(ctx context.Context, rows [][]byte) error {
	if err := c.e.enterWrite(ctx); err != nil {
		return err
	}
	defer c.e.leave()
	at := target{table: c.t}
	s, err := at.hold()
	if err != nil {
		return nil // the table is gone, and its cells with it
	}
	defer c.t.gate.RUnlock()
	var locks rowLockSet
	for _, prefix := range rows {
		locks.add(c.e.stripe(c.t.id, appendRowKey(nil, prefix)))
	}
	c.e.rows.lock(&locks, true)
	defer c.e.rows.unlock(&locks, true)
	end := afterTerminator(bytes.Clone(rows[len(rows)-1]))
	it, err := c.e.db.NewIter(&pebble.IterOptions{LowerBound: rows[0], UpperBound: end})
	if err != nil {
		return err
	}
	defer it.Close()
	b := c.e.db.NewBatch()
	w := newSweep(s, c.e.micros())
	cells := 0
	for _, prefix := range rows {
		for it.SeekGE(prefix); it.Valid() && bytes.HasPrefix(it.Key(), prefix); it.Next() {
			if cells++; cells%workPerCheck == 0 {
				if err := c.e.goOn(ctx); err != nil {
					return err
				}
			}
			if _, err := w.enter(it.Key()); err != nil {
				return err
			}
			gone, err := w.gone(it.Key())
			if err != nil {
				return err
			}
			if !gone {
				continue
			}
			lazy := it.LazyValue()
			if err := b.Delete(it.Key(), nil); err != nil {
				return err
			}
			c.cells++
			c.bytes += len(it.Key()) + lazy.Len()
			if b.Len() < gcBatchBytes {
				continue
			}
			if err := c.e.applyLazily(b); err != nil {
				return err
			}
			b = c.e.db.NewBatch()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	if c.first == nil {
		c.first = bytes.Clone(rows[0])
	}
	c.last = end
	// No one waits for it, and the next pass finds again what a crash brings back.
	return c.e.applyLazily(b)
}

// compact gives the space of the deleted cells back.
func (c *collection) compact(ctx context.Context) error {
	if c.cells < compactMinCells && c.bytes < compactMinBytes {
		return nil
	}
	if err := c.e.enterWrite(ctx); err != nil {
		return err
	}
	defer c.e.leave()
	if err := c.e.db.Compact(ctx, c.first, c.last, false); err != nil {
		return c.e.readError(err)
	}
	return nil
}

// collects says whether any cell of the table can ever have to go.
func (s *schema) collects() bool {
	if int(s.nextFamily) > len(s.families) {
		return true // one was dropped
	}
	for _, f := range s.families {
		if f.rule != nil {
			return true
		}
	}
	return false
}
