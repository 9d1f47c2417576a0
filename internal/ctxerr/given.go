package ctxerr

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// errNil is why a call that was given no context ends.
var errNil error = invalid.New(invalid.ErrInput, "ctx", "nil", "a context.Context, such as context.Background()")

var none = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNil)
	return ctx
}()

// Given returns ctx, or for nil a context that has ended because it is nil: what it is used for then fails, and Of says why.
func Given(ctx context.Context) context.Context {
	if ctx == nil {
		return none
	}
	return ctx
}
