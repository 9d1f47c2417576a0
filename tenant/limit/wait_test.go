package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/tenant/limit"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 10, PointsBurst: 5, Entities: 1, PointBytes: 1}}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for range 105 {
			wg.Go(func() {
				if err := l.Wait(t.Context(), acme, 1000); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("105 points with a burst of 5 at 10 a second took %v, want 10s", took)
		}
		short, cancel := context.WithTimeout(t.Context(), 99*time.Millisecond)
		defer cancel()
		begin = time.Now()
		if e := exceeded(t, l.Wait(short, acme, 1)); e.RetryAfter != 100*time.Millisecond || time.Since(begin) != 0 {
			t.Errorf("with a deadline before its turn: %v after %v, want an error at once", e, time.Since(begin))
		}
		ctx, stop := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(50*time.Millisecond, func() { stop(gone) })
		if err := l.Wait(ctx, acme, 1); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want the context's error and its cause", err)
		}
		if err := l.Wait(ctx, acme, 1); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
			t.Errorf("Wait with an ended context = %v", err)
		}
	})
}
