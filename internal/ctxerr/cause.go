// Package ctxerr says why a context has ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
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
