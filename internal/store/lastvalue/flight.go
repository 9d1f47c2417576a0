package lastvalue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// flight is a running read with its waiting callers.
type flight struct {
	layout string
	start  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when newest and err are set
	newest *Newest
	err    error

	// Guarded by the stripe:
	waiting int
	stale   bool // a write has ended, or a later read was started: the result is not cached
}

// Load is Find for a caller that found nothing: it waits for a running read that is not too old, or starts one. If
// meanwhile a point was read or stored that usable accepts, Load returns that point.
//
// The read belongs to no single caller: it goes on while one of them waits, and all get its error. It must have its own
// time limit. A caller whose ctx ends first gets ctx's cause.
func (c *Cache) Load(ctx context.Context, id rowkey.ID, layout string, since time.Time, usable func(*Newest) bool, read func(context.Context) (*Newest, error)) (*Newest, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := c.stripe(id)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, c.errDone
	}
	if n := c.Find(id, layout, since); n != nil && usable(n) {
		s.mu.Unlock()
		c.hits.add()
		return n, nil
	}
	f := s.flights[id]
	if f != nil && f.layout == layout && !f.start.Before(since) {
		reach.Point(reach.SharedRead)
		c.shared.add()
	} else {
		if f != nil {
			f.stale = true
		}
		f = c.start(ctx, s, id.Clone(), layout, read)
		c.misses.add()
	}
	f.waiting++
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.newest, f.err
	case <-ctx.Done():
		s.leave(id, f)
		return nil, context.Cause(ctx)
	}
}

// leave ends the wait of one caller. A read without waiting callers is cancelled, so there are never more reads than
// callers.
func (s *stripe) leave(id rowkey.ID, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	if s.flights[id] == f {
		delete(s.flights, id)
	}
	f.cancel()
}

// start starts a read. The stripe is locked.
func (c *Cache) start(ctx context.Context, s *stripe, id rowkey.ID, layout string, read func(context.Context) (*Newest, error)) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{layout: layout, start: time.Now(), cancel: cancel, done: make(chan struct{})}
	s.flights[id] = f
	unhook := context.AfterFunc(c.base, cancel)
	c.wg.Go(func() {
		defer cancel()
		n, err := read(ctx)
		unhook()
		if err != nil && c.base.Err() != nil && !errors.Is(err, c.errDone) {
			err = fmt.Errorf("%w: %w", c.errDone, err)
		}
		f.newest, f.err = n, err
		s.mu.Lock()
		if s.flights[id] == f {
			delete(s.flights, id)
		}
		if err == nil && !f.stale && !s.closed {
			n.asOf = f.start
			c.keep(id, n)
		}
		s.mu.Unlock()
		close(f.done)
	})
	return f
}

// keep caches n for an entity. The stripe is locked.
func (c *Cache) keep(id rowkey.ID, n *Newest) {
	if len(n.Payload) > MaxPayload {
		c.entries.Invalidate(id)
		return
	}
	c.entries.Set(id, n)
}
