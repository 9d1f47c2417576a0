package tenants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAFolderSettlesImmediately: no other program can have a folder open, so an erasure need not wait for others to
// read the mark.
func TestAFolderSettlesImmediately(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		store, err := embedded.New(t.Context(), embedded.Options{GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if err := store.Ensure(t.Context(), f.datasets()...); err != nil {
			t.Fatal(err)
		}
		f.fill(t, store, acme)
		begin := time.Now()
		rep, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{RowsPerSecond: -1})
		if err != nil || rep.State != tenants.Erased || rep.Rows != tenantRows {
			t.Errorf("report %+v, error %v", rep, err)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the erasure took %v", took)
		}
	})
}

// TestSettleOfAnErasureThatIsContinued: while an erasure waits, another Settle can be set. After it has waited, a
// longer one is refused.
func TestSettleOfAnErasureThatIsContinued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, _, _ := open(t, tsdbtest.Options{})
		f.fill(t, store, acme)
		erase := func(settle, most time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			begin := time.Now()
			_, err := tenants.Erase(ctx, store, acme, tenants.EraseOptions{Settle: settle, RowsPerSecond: -1})
			return time.Since(begin), err
		}
		if _, err := erase(time.Hour, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if took, err := erase(0, 10*time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with its first Settle: %v after %v", err, took)
		}
		if took, err := erase(5*time.Second, time.Minute); err != nil || took < 5*time.Second || took > 10*time.Second {
			t.Errorf("with a shorter Settle: %v after %v", err, took)
		}
		if _, err := erase(time.Hour, 2*time.Hour); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("with a longer Settle than it has waited: %v, want ErrInvalid", err)
		}
		for _, settle := range []time.Duration{0, 1, 5 * time.Second} {
			if took, err := erase(settle, time.Minute); err != nil || took > time.Second {
				t.Errorf("again with %v: %v after %v", settle, err, took)
			}
		}
	})
}
