package buffer

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// share is how many times the free room one tenant may hold. One tenant alone fills 7/8 of the buffer, two flooding
// tenants 7/15 each. However many tenants flood, room is left for a new one.
const share = 7

// waiter is a caller of Enqueue that waits for room.
type waiter struct {
	bytes int64
	ready chan struct{} // closed when the caller has its room
	given bool
}

// waiters are the waiting callers of one lane, first come first.
type waiters []*waiter

// fits reports whether the lane has room for an item of that size now.
func (q *Buffer) fits(l *lane, bytes int64) bool {
	entries, free := q.opts.BufferEntries-q.held, q.opts.BufferBytes-q.heldBytes
	if entries < 1 || free < bytes && q.held > 0 {
		return false
	}
	// Division instead of multiplication: a practically unbounded buffer would overflow.
	return l.held == 0 || l.held/share < entries-1 && (l.heldBytes+bytes+share-1)/share <= free-bytes
}

// fitsAtAll reports whether the whole buffer has room, regardless of tenants' shares.
func (q *Buffer) fitsAtAll(bytes int64) bool {
	return q.held < q.opts.BufferEntries && (q.heldBytes+bytes <= q.opts.BufferBytes || q.held == 0)
}

func (q *Buffer) take(l *lane, bytes int64) {
	l.held++
	l.heldBytes += bytes
	q.held++
	q.heldBytes += bytes
}

// giveBack frees the room of an item that has ended.
func (q *Buffer) giveBack(it *Item) {
	q.untake(it.lane, int64(it.Bytes))
	signal(q.opts.Freed)
}

// grant gives free room to waiting callers in turns. It skips a caller whose tenant has used up its share. If the
// buffer has no room for a caller, the round ends, so that small items do not starve large ones.
func (q *Buffer) grant() {
	for passed := 0; passed < len(q.blocked); {
		q.turn %= len(q.blocked)
		l := q.blocked[q.turn]
		w := l.blocked[0]
		if !q.fitsAtAll(w.bytes) {
			return
		}
		if !q.fits(l, w.bytes) {
			q.turn++
			passed++
			continue
		}
		passed = 0
		q.take(l, w.bytes)
		w.given = true
		close(w.ready)
		q.unblock(l, 0)
	}
}

// unblock removes the lane's waiter at an index from the queue.
func (q *Buffer) unblock(l *lane, i int) {
	l.blocked = slices.Delete(l.blocked, i, i+1)
	if len(l.blocked) > 0 {
		q.turn++
		return
	}
	j := slices.Index(q.blocked, l)
	q.blocked = slices.Delete(q.blocked, j, j+1)
	if j < q.turn {
		q.turn--
	}
}

// wait waits until the lane has room for an item of that size, and takes the room. The buffer is locked before and
// after.
func (q *Buffer) wait(ctx context.Context, l *lane, bytes int64) error {
	w := &waiter{bytes: bytes, ready: make(chan struct{})}
	if l.blocked = append(l.blocked, w); len(l.blocked) == 1 {
		q.blocked = append(q.blocked, l)
	}
	q.mu.Unlock()
	begin := time.Now()
	var err error
	select {
	case <-w.ready:
	case <-ctx.Done():
		err = ctxerr.Of(ctx)
	case <-q.closing:
		err = ErrClosed
	}
	q.mu.Lock()
	q.stats.Blocked += time.Since(begin)
	if w.given {
		if q.closed {
			q.untake(l, bytes)
			return ErrClosed
		}
		return nil
	}
	q.unblock(l, slices.Index(l.blocked, w))
	q.drop(l)
	q.grant()
	return err
}

// untake undoes take, and gives free room to waiting callers, one tenant after the other.
func (q *Buffer) untake(l *lane, bytes int64) {
	l.held--
	l.heldBytes -= bytes
	q.held--
	q.heldBytes -= bytes
	q.drop(l)
	q.grant()
}

// drop deletes a lane that holds nothing and in which nobody waits.
func (q *Buffer) drop(l *lane) {
	if l.held == 0 && len(l.blocked) == 0 {
		delete(q.lanes, l.id)
	}
	if q.held == 0 {
		q.signalIdle()
	}
}
