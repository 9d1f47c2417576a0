package ctxerr

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

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
