package ctxerr_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

// TestWait: a wait takes its time, and ends with its context, also one that would take no time.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		for _, tt := range []struct {
			wait, end time.Duration
			want      error
		}{
			{wait: time.Second, end: time.Second},
			{wait: 0, end: time.Second},
			{wait: time.Hour, end: time.Minute, want: context.DeadlineExceeded},
			{wait: 0, end: time.Minute, want: context.DeadlineExceeded},
		} {
			if err := ctxerr.Wait(ctx, tt.wait); !errors.Is(err, tt.want) || time.Since(begin) != tt.end {
				t.Errorf("a wait of %v ends after %v with %v, want %v and %v", tt.wait, time.Since(begin), err, tt.end, tt.want)
			}
		}
	})
}
