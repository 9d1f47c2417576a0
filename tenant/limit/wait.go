package limit

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tenant"
)

// Wait waits until the rates allow a point of bytes bytes. If that takes longer than ctx's deadline, it returns an
// *Error immediately. If ctx ends, it returns ctx's error. Waiting calls proceed in no particular order.
//
// Use it as the Admit of a writer: the writer then accepts a tenant's points at its rates, and callers wait instead
// of being refused. (The bytes are then those that the writer holds, with about 400 bytes of overhead per point.) Use
// a limiter with only rates for it. If it were also the store's limiter, each point would count twice. Timers use the
// system's clock, not Options.Clock.
func (l *Limiter) Wait(ctx context.Context, id tenant.ID, bytes int) error {
	if l.off() {
		return nil
	}
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	for {
		err := l.let(id, bytes)
		if err == nil {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < err.RetryAfter {
			return err
		}
		if err := ctxerr.Wait(ctx, err.RetryAfter); err != nil {
			return err
		}
	}
}

// let is Write with only the rates.
func (l *Limiter) let(id tenant.ID, bytes int) *Error {
	u, now := l.acquire(id)
	if u == nil {
		return nil
	}
	defer u.mu.Unlock()
	return u.rates(id, int64(max(0, bytes)), now)
}
