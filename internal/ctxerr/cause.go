// Package ctxerr says why a context has ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Of returns why ctx has ended: an error that matches its cause and one of the context's own errors, which a cause need not
// match, as that of signal.NotifyContext does not. Of a nil context, and one from Given, it is that it is nil. Nil where ctx goes on.
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
