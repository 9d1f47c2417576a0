package limit

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tenant"
)

// Wait lets a point of that many bytes through the rates, and waits until they have room for it. It returns an *Error at once
// where they have none before ctx's deadline, and ctx's error where ctx ends. Those that wait get their turns in no order.
//
// It fits as the Admit of a writer, which then takes a tenant's points at its rates and lets those who put them wait, in the place of
// refusing them. (The bytes are then those that the writer keeps, of which about 400 a point are its own.) Use a limiter
// with rates alone for it: one that the store has, too, would count each point twice. Timers go by the system's clock, not
// by Options.Clock.
func (l *Limiter) Wait(ctx context.Context, id tenant.ID, bytes int) error {
	if l.off() {
		return nil
	}
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		err := l.let(id, bytes)
		if err == nil {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < err.RetryAfter {
			return err
		}
		timer := time.NewTimer(err.RetryAfter)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// let is Write by the rates alone.
func (l *Limiter) let(id tenant.ID, bytes int) *Error {
	now := l.now()
	u := l.acquire(id, now)
	if u == nil {
		return nil
	}
	defer u.mu.Unlock()
	return u.rates(id, int64(max(0, bytes)), now)
}
