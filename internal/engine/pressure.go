package engine

import (
	"context"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
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
	limit   uint64                    // bytes of memtables
	waited  atomic.Pointer[time.Time] // when a write last waited; nil if none did
	flushed chan struct{}             // holds a signal after a memtable was flushed
}

func newPressure(limit uint64) *pressure {
	return &pressure{limit: limit, flushed: make(chan struct{}, 1)}
}

// signal wakes the goroutine that waits for a channel with room for one signal.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// While writes wait, clients that follow advice on their rate are asked for less, and after that for more until they
// need none.
const (
	advicePeriod = 2 * time.Second
	adviceEnds   = 10 * time.Second // after the last wait
	sendLess     = 0.7
	sendMore     = 1.3
)

// advice returns the advice for a client, or nil for none. Without pressure it costs a load.
func (p *pressure) advice(ctx context.Context) *bigtablepb.RateLimitInfo {
	waited := p.waited.Load()
	if waited == nil {
		return nil
	}
	since := time.Since(*waited)
	if since >= adviceEnds || !announces(ctx, (*bigtablepb.FeatureFlags).GetMutateRowsRateLimit2) {
		return nil
	}
	info := &bigtablepb.RateLimitInfo{Period: durationpb.New(advicePeriod), Factor: sendLess}
	if since >= advicePeriod {
		info.Factor = sendMore
	}
	return info
}

// makeRoom waits until there is room for a write. If there is, it costs two loads.
func (e *Engine) makeRoom(ctx context.Context) error {
	p := e.pressure
	if !p.changed.Load() && !p.crowded.Load() {
		return nil
	}
	p.changed.Store(false)
	for {
		crowded, err := e.isCrowded(ctx)
		if err != nil {
			return err
		}
		if p.crowded.Store(crowded); !crowded {
			return nil
		}
		now := time.Now()
		p.waited.Store(&now)
		if err := ctxerr.Wait(ctx, pressurePoll); err != nil {
			return err
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
