package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// onCall calls hook before each unary call of the method.
func onCall(method string, hook func()) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, name string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(name, "/"+method) {
			hook()
		}
		return invoker(ctx, name, req, reply, cc, opts...)
	})
}

// TestEnsureWhileFamiliesAreDropped: a dataset begins to use a class while its families are dropped. Either Ensure
// reports that, or the families exist afterwards, in any order of the two.
func TestEnsureWhileFamiliesAreDropped(t *testing.T) {
	part := tenants.Part{Class: "spare"}
	late := tsdb.MustDefine("late", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{Retention: spare})
	usable := func(t *testing.T, store *tsdb.Store, order string, err error) {
		t.Helper()
		if err == nil {
			err = late.For(store, acme).Put(t.Context(), tsdb.NewEntity("d"), start, "x")
		} else if !errors.Is(err, tsdb.ErrRemoving) || errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "spare") {
			t.Errorf("%s: Ensure: %v", order, err)
			err = nil
		}
		if err != nil && !errors.Is(err, tsdb.ErrRemoving) {
			t.Errorf("%s: Ensure succeeded, but Put fails: %v", order, err)
		}
		if err := store.Ensure(t.Context(), late); err != nil {
			t.Fatalf("%s: Ensure after the removal: %v", order, err)
		}
		if err := late.For(store, acme).Put(t.Context(), tsdb.NewEntity("d"), start.Add(1), "x"); err != nil {
			t.Errorf("%s: Put after the removal: %v", order, err)
		}
	}
	open := func(t *testing.T, opts ...grpc.DialOption) (*tsdb.Store, *tsdbtest.Conn) {
		t.Helper()
		first := tsdb.MustDefine("first", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{Retention: keep})
		gone := tsdb.MustDefine("gone", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{Retention: spare})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(time.Hour) }}, DialOptions: opts}, first, gone)
		if _, err := tenants.Remove(t.Context(), store, tenants.Part{Dataset: "gone"}, swift); err != nil {
			t.Fatal(err)
		}
		return store, conn
	}

	// Ensure runs between the removal's last read of the catalogue and the drop.
	t.Run("within", func(t *testing.T) {
		var store *tsdb.Store
		var done atomic.Bool
		var ensured, verified error
		store, _ = open(t, onCall("ModifyColumnFamilies", func() {
			if store != nil && !done.Swap(true) {
				ensured = store.Ensure(t.Context(), late)
				verified = store.Verify(t.Context(), late)
			}
		}))
		if rep, err := tenants.Remove(t.Context(), store, part, swift); err != nil || !slices.Equal(rep.Families, []string{"spare"}) {
			t.Fatal(rep, err)
		}
		if verified == nil {
			t.Error("Verify succeeds while the families are dropped")
		}
		usable(t, store, "within the removal", ensured)
	})

	// The whole removal runs before each of Ensure's requests in turn.
	for cut, total := 1, 1; cut <= total; cut += testkit.Stride(7) {
		store, conn := open(t)
		var calls atomic.Int64
		conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if calls.Add(1) == int64(cut) {
				if _, err := tenants.Remove(context.WithoutCancel(t.Context()), store, part, swift); err != nil && !errors.Is(err, tenants.ErrImpossible) && !errors.Is(err, tsdb.ErrNotFound) {
					t.Errorf("removal before request %d: %v", cut, err)
				}
			}
			return 0
		}))
		err := store.Ensure(t.Context(), late)
		conn.Clear()
		if cut == 1 {
			total = 12 // more than Ensure makes, including the removal's own
		}
		usable(t, store, fmt.Sprintf("removal before request %d", cut), err)
	}
}

// TestGiveUpARemoval: programs that cannot be stopped still write in a class that is being removed, so the removal does
// not end. Release cancels it; the class and its data are as before. A running Remove ends.
func TestGiveUpARemoval(t *testing.T) {
	for _, part := range []tenants.Part{{Dataset: "temps", Class: "old"}, {Dataset: "temps", Tag: "str"}} {
		a := newUnusedParts(t)
		n := 0
		opts := swift
		opts.Progress = func(p tenants.Progress) {
			if p.State == tenants.Deleting || p.State == "verifying" {
				n++
				a.leave(t, "acme", "temps", 20*day+day/1000*time.Duration(n), "old:p:str")
			}
		}
		if _, err := tenants.Remove(t.Context(), a.store, part, opts); !errors.Is(err, errtype.ErrRemains) {
			t.Fatalf("Remove of %s, into which a program writes: %v", part, err)
		}
		if err := tenants.Release(t.Context(), a.store, part); err != nil {
			t.Fatalf("%s: cancel the removal: %v", part, err)
		}
		if err := errors.Join(a.store.Ensure(t.Context(), a.full), a.store.Verify(t.Context(), a.full)); err != nil {
			t.Errorf("%s: after the removal was cancelled: %v", part, err)
		}
		if rest := dump(t, a.table, func(key string) bool { return strings.HasPrefix(key, "!job") }); len(rest) > 0 {
			t.Errorf("%s: left %v", part, rest)
		}
		if err := tenants.Release(t.Context(), a.store, part); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("%s: second Release: %v", part, err)
		}
	}
	// Release while Remove runs: Remove ends with ErrTakenOver, and deletes nothing more.
	a := newUnusedParts(t)
	part := tenants.Part{Dataset: "temps", Class: "old"}
	opts, before := swift, map[string]string(nil)
	opts.Progress = func(p tenants.Progress) {
		if p.State == tenants.Deleting && before == nil {
			before = a.cells(t, func(string, string) bool { return true })
			if err := tenants.Release(t.Context(), a.store, part); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := tenants.Remove(t.Context(), a.store, part, opts); !errors.Is(err, tenants.ErrTakenOver) {
		t.Errorf("a cancelled removal: %v, want ErrTakenOver", err)
	}
	equal(t, "after a removal was given up", a.cells(t, func(string, string) bool { return true }), before)
}

// TestAStaleRemovalTakesNothingOfTheNextLife: a call of Remove stops before one of its requests. Another call finishes
// the removal, the name is released, and the dataset or part is created again. When the first call continues, it
// deletes nothing of the new one.
func TestAStaleRemovalTakesNothingOfTheNextLife(t *testing.T) {
	for _, part := range []tenants.Part{{Dataset: "beside"}, {Dataset: "temps", Class: "old"}} {
		for cut, total := 0, 0; cut <= total; cut += testkit.Stride(7) { // the plain run has all cuts
			a := newUnusedParts(t)
			client, admin := tsdbtest.Clients(t, a.conn)
			other, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return a.now }}, Admin: admin})
			if err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int64
			marked, lived := false, false
			opts := swift
			opts.Progress = func(p tenants.Progress) { marked = marked || p.State == "marked" }
			a.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
				if calls.Add(1) != int64(cut) {
					return 0
				}
				if _, err := tenants.Remove(t.Context(), other, part, swift); err != nil {
					return 0 // the removal has already ended
				}
				if err := errors.Join(tenants.Release(t.Context(), other, part), other.Ensure(t.Context(), a.full, a.beside)); err != nil {
					t.Errorf("%s, stopped at %d: %v", part, cut, err)
				}
				lived = marked // before its mark, a call begins a removal of its own
				return 0
			}))
			_, err = tenants.Remove(t.Context(), a.store, part, opts)
			a.conn.Clear()
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			if cut == 0 {
				total = int(calls.Load())
			}
			if !lived {
				continue
			}
			if again := a.store.Verify(t.Context(), a.full, a.beside); again != nil {
				t.Errorf("%s, stopped at %d (%v): the new dataset: %v", part, cut, err, again)
			}
		}
	}
}

// TestLiftsOfReleasedDatasetsAreForgotten: a table in which datasets are deleted and released without end keeps a
// bounded number of lifts.
func TestLiftsOfReleasedDatasetsAreForgotten(t *testing.T) {
	const most = 6
	tenants.LowerMarks(t, most, most)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, tsdb.MustDefine("r", tsdb.Key("k"), codec.String(), tsdb.SchemaOptions{}))
	for i := range 3 * most {
		name := fmt.Sprintf("d%d", i)
		if err := store.Ensure(t.Context(), tsdb.MustDefine(name, tsdb.Key("k"), codec.String(), tsdb.SchemaOptions{})); err != nil {
			t.Fatal(err)
		}
		part := tenants.Part{Dataset: name}
		if _, err := tenants.Remove(t.Context(), store, part, swift); err != nil {
			t.Fatal(err)
		}
		if err := tenants.Release(t.Context(), store, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("gone"), quick); err != nil {
		t.Fatal(err)
	}
	lifts := 0
	for _, cells := range dump(t, table, func(key string) bool { return strings.HasPrefix(key, "!erased#") }) {
		if strings.Contains(cells, "_sys:l@") {
			lifts++
		}
	}
	if lifts > most {
		t.Errorf("%d lifts are kept, want at most %d", lifts, most)
	}
}
