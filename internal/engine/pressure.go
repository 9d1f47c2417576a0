package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Pebble makes writers wait when its memory is full of writes that are not in table files yet. It does so deep inside a
// commit, where the engine holds locks, and where neither the caller's context nor a disk that has failed ends the wait. So
// the engine waits by itself, before it takes any lock, and sets Pebble's own limits out of reach.
const (
	maxMemTables  = 5 // times the size of a full one; Pebble begins with small ones, and does not flush only few of those
	maxL0Depth    = 60
	pressurePoll  = 2 * time.Millisecond
	pebbleNoLimit = 1000
)

// pressure says when writers have to wait.
type pressure struct {
	// changed says that a log was begun since the last look: the only time when there can be one memtable more.
	changed atomic.Bool
	crowded atomic.Bool
	limit   uint64 // bytes of memtables
}

// makeRoom waits until there is room for a write. It costs two loads where there is.
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
