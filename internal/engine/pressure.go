package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Pebble makes writers wait when its memory is full of writes that are not in table files yet. It waits deep inside a
// commit, where the engine holds locks, and neither the caller's context nor a failed disk ends the wait. So the engine
// itself waits, before it takes any lock, and sets Pebble's own limits so high that they are never reached.
const (
	maxMemTables  = 5 // times a full memtable's size; Pebble begins with small ones, and does not flush only a few of those
	maxL0Depth    = 60
	pressurePoll  = 2 * time.Millisecond
	pebbleNoLimit = 1000
)

// pressure decides when writers have to wait.
type pressure struct {
	// changed means that a log was begun since the last check: only then can the number of memtables have grown.
	changed atomic.Bool
	crowded atomic.Bool
	limit   uint64 // bytes of memtables
}

// makeRoom waits until there is room for a write. If there is, it costs two loads.
func (e *Engine) makeRoom(ctx context.Context) error {
	p := e.pressure
	if !p.changed.Load() && !p.crowded.Load() {
		return nil
	}
	p.changed.Store(false)
	var timer *time.Timer
	for {
		crowded, err := e.isCrowded(ctx)
		if err != nil {
			return err
		}
		if p.crowded.Store(crowded); !crowded {
			return nil
		}
		if timer == nil {
			timer = time.NewTimer(pressurePoll)
			defer timer.Stop()
		} else {
			timer.Reset(pressurePoll)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (e *Engine) isCrowded(ctx context.Context) (bool, error) {
	if err := e.enter(ctx); err != nil {
		return false, err
	}
	defer e.leave()
	if err := e.fault.err(); err != nil {
		return false, err
	}
	m := e.db.Metrics()
	return m.MemTable.Size > e.pressure.limit || m.Levels[0].Sublevels > maxL0Depth, nil
}
