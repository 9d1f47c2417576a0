// Package ctxerr says why a context has ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Of returns why ctx has ended, or nil if it has not. The error matches both ctx's cause and one of the context's own
// errors, which a cause need not match: that of signal.NotifyContext does not. For a nil context, and one from Given,
// the error says that the context is nil.
func Of(ctx context.Context) error {
	if ctx == nil {
		return errNil
	}
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if cause == errNil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Wait waits for d, and returns why ctx has ended if that comes first, as Of does.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return Of(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return Of(ctx)
	}
}

// errNil is the error of a call with a nil context.
var errNil error = invalid.New(invalid.ErrInput, "ctx", "nil", "a context.Context, such as context.Background()")

var none = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNil)
	return ctx
}()

// Given returns ctx. For nil it returns a context that has ended because it is nil: calls with it fail, and Of says
// why.
func Given(ctx context.Context) context.Context {
	if ctx == nil {
		return none
	}
	return ctx
}
