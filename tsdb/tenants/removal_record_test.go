package tenants_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestARecordThatIsLeftBehind: a removal is cut off before its last request, which deletes its record. The part is
// released and used again. A later removal checks it again, and does not reuse the first removal's permission.
func TestARecordThatIsLeftBehind(t *testing.T) {
	part, total := tenants.Part{Dataset: "temps", Class: "old"}, int64(0)
	whole := swift
	whole.Unexpired = true
	for _, cut := range []bool{false, true} {
		a := newUnusedParts(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var calls atomic.Int64
		a.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if calls.Add(1) == total && cut {
				cancel()
			}
			return 0
		}))
		_, err := tenants.Remove(ctx, a.store, part, whole)
		a.conn.Clear()
		if (err != nil) != cut {
			t.Fatal(cut, err)
		}
		if !cut {
			total = calls.Load()
			continue
		}
		if err := errors.Join(tenants.Release(t.Context(), a.store, part), a.store.Ensure(t.Context(), a.full)); err != nil {
			t.Fatal(err)
		}
		a.leave(t, "acme", "temps", 20*day, "old:p:json")
		if _, err := tenants.Remove(t.Context(), a.store, part, swift); !errors.Is(err, tenants.ErrImpossible) {
			t.Errorf("a removal of unexpired data: %v, want ErrImpossible", err)
		}
		if _, err := a.full.For(a.store, acme).Get(t.Context(), tsdb.NewEntity("left"), a.now.Add(-20*day)); err != nil {
			t.Errorf("the point of the second use: %v", err)
		}
	}
}
