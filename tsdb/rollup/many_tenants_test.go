package rollup_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestPassOfManyTenants: a pass over tenants of which few have marks takes about two requests per thousand tenants. It
// still finds tenants with new marks, new tenants, and removed ones.
func TestPassOfManyTenants(t *testing.T) {
	const many = 2300
	addBubble(t, func(t *testing.T) {
		ctx := t.Context()
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		day := rollup.MustDefine("day", window.Days(1), measures(), rollup.Options{From: "hour"})
		plain := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day}})
		c := testkit.NewClock(start)
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, plain)
		var ids []tenant.ID
		for i := range many {
			ids = append(ids, tenant.MustParse(fmt.Sprintf("tenant-%d", i)))
			if err := plain.For(store, ids[i]).Put(ctx, roof, start, reading{TempC: 1}); err != nil { // without marks
				t.Fatal(err)
			}
		}
		foreign(t, table, "!own", "0", "tenant-1", "tenant-1!x", "tenant-2 #", "zzz")
		if err := store.Ensure(ctx, schema); err != nil {
			t.Fatal(err)
		}
		w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
		if err != nil {
			t.Fatal(err)
		}
		pass := func(what string, want rollup.Pass, most int) {
			t.Helper()
			conn.Reset()
			p, err := w.Pass(ctx)
			if err != nil || p != want {
				t.Fatalf("%s: %+v, %v, want %+v", what, p, err, want)
			}
			if got := conn.Counts().Calls[tsdbtest.ReadRows]; got > most {
				t.Errorf("%s took %d reads, want at most %d", what, got, most)
			} else {
				t.Logf("%s took %d reads", what, got)
			}
		}
		put := func(id tenant.ID) {
			t.Helper()
			if err := schema.For(store, id).Put(ctx, roof, start.Add(time.Minute), reading{TempC: 2}); err != nil {
				t.Fatal(err)
			}
		}
		const idle = 3 + 1 + 3 + 1 // reads between known tenants, over other programs' rows, and over marks from some key on
		pass("the first pass", rollup.Pass{Tenants: many}, many+20)
		pass("nothing is marked", rollup.Pass{Tenants: many}, idle+6)
		for _, i := range []int{0, 77, many - 1} {
			put(ids[i])
		}
		pass("open", rollup.Pass{Tenants: many, Waiting: 3}, idle+6+3*(1+2))
		c.Set(start.Add(2 * time.Hour))
		pass("three hours", rollup.Pass{Tenants: many, Buckets: 3, Marks: 3, Waiting: 3}, idle+6+3*(2+3))
		c.Set(start.Add(50 * time.Hour))
		pass("three days", rollup.Pass{Tenants: many, Buckets: 3, Marks: 3}, idle+6+3*(2+4))
		pass("nothing any more", rollup.Pass{Tenants: many}, idle+6+3*2)
		pass("nothing again", rollup.Pass{Tenants: many}, idle+6)
		added := tenant.MustParse("tenant-77-new")
		put(added)
		pass("a new tenant", rollup.Pass{Tenants: many + 1, Waiting: 1}, idle+6+1+3)
		if _, err := tenants.Erase(ctx, store, added, tenants.EraseOptions{}); err != nil {
			t.Fatal(err)
		}
		pass("a tenant that is gone", rollup.Pass{Tenants: many}, idle+6)
	})
}

// TestTenantsAtOnce: up to Concurrency tenants are processed in parallel, and up to Concurrency rows of all tenants
// together.
func TestTenantsAtOnce(t *testing.T) {
	const width = 3
	addBubble(t, func(t *testing.T) {
		var now, most atomic.Int64
		gauge := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
				n := now.Add(1)
				defer now.Add(-1)
				for {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				time.Sleep(time.Millisecond) // simulated time: every runnable goroutine runs
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		})
		o := newOne(t, rollup.Options{}, gc.Class{}, gauge)
		var ids []tenant.ID
		for i := range 8 {
			ids = append(ids, tenant.MustParse(fmt.Sprintf("t%d", i)))
			for d := range 4 {
				if err := o.schema.For(o.store, ids[i]).Put(t.Context(), tsdb.NewEntity("site", fmt.Sprint(d)), start, reading{TempC: 1}); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Reverse(ids)
		o.Set(start.Add(2 * time.Hour))
		w, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(append(ids, ids[0])...), Concurrency: width}, o.schema)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Pass(t.Context())
		if err != nil || p != (rollup.Pass{Tenants: 8, Buckets: 32, Marks: 32}) {
			t.Errorf("pass %+v, error %v", p, err)
		}
		if most.Load() != width {
			t.Errorf("%d rows were replaced in parallel, want %d", most.Load(), width)
		}
	})
}
