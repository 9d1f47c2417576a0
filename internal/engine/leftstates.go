package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// leftStates holds snapshots that nobody uses any more. Closing the oldest of all makes Pebble look for compactions,
// and wait for the manifest if it is being written. So writers and readers leave that to the engine, which closes many
// at once.
type leftStates struct {
	wake chan struct{} // holds one signal

	mu    sync.Mutex
	snaps []*pebble.Snapshot
}

// closePause is the minimum time between two rounds of closing. Meanwhile compactions keep what the snapshots show.
const closePause = 10 * time.Millisecond

// release gives up the caller's use of states. nil is none.
func (f *inFlight) release(states ...*state) {
	for _, s := range states {
		if s != nil && s.refs.Add(-1) == 0 {
			f.left.add(s.snap)
		}
	}
}

func (l *leftStates) add(s *pebble.Snapshot) {
	l.mu.Lock()
	l.snaps = append(l.snaps, s)
	l.mu.Unlock()
	signal(l.wake)
}

// close closes the snapshots, the newest first, so that few of them are the oldest of all when they are closed.
func (l *leftStates) close() {
	l.mu.Lock()
	snaps := l.snaps
	l.snaps = nil
	l.mu.Unlock()
	for _, s := range slices.Backward(snaps) {
		_ = s.Close() // it never fails
	}
}

// closeForever closes the snapshots that are left, until the context ends.
func (l *leftStates) closeForever(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		l.close()
		if rest(ctx, closePause/gcShare) != nil {
			return
		}
	}
}
