package ctxerr_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

func TestOf(t *testing.T) {
	signal := errors.New("terminated signal received")
	for name, c := range map[string]struct {
		end  func(context.Context) (context.Context, func())
		is   []error
		text string
	}{
		"cancelled": {func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, []error{context.Canceled}, "context canceled"},
		"past its deadline": {func(ctx context.Context) (context.Context, func()) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Hour))
		}, []error{context.DeadlineExceeded}, "context deadline exceeded"},
		"ended by a signal": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(signal) }
		}, []error{context.Canceled, signal}, "context canceled: terminated signal received"},
		"past a deadline with a cause": {func(ctx context.Context) (context.Context, func()) {
			return context.WithDeadlineCause(ctx, time.Now().Add(-time.Hour), signal)
		}, []error{context.DeadlineExceeded, signal}, "context deadline exceeded: terminated signal received"},
		"cancelled by another's deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(context.DeadlineExceeded) }
		}, []error{context.DeadlineExceeded}, "context deadline exceeded"},
	} {
		ctx, end := c.end(t.Context())
		end()
		err := ctxerr.Of(ctx)
		for _, want := range c.is {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v is not %v", name, err, want)
			}
		}
		if err.Error() != c.text {
			t.Errorf("%s: %q, want %q", name, err, c.text)
		}
	}
	if err := ctxerr.Of(t.Context()); err != nil {
		t.Error(err)
	}
}
