package tenants_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestACacheForgetsAnErasedEntity: points can be read until they are deleted, so a cache may have read them after the
// mark was written. Once the erasure has ended, no cache shows them for longer than tenancy.ErasedWithin.
func TestACacheForgetsAnErasedEntity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cache := tsdb.CacheOptions{Entries: 100, MaxAge: 24 * time.Hour}
		f, store, conn, _ := open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: cache}})
		other := second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Cache: cache}})
		f.fill(t, store, acme)
		e, stale := tsdb.NewEntity("site#1", "dev 0"), tsdb.MaxStale(24*time.Hour)
		read := 0
		opts := tenants.EraseOptions{Progress: func(p tenants.Progress) {
			if p.State != "counting" {
				return
			}
			for _, s := range []*tsdb.Store{store, other} {
				if _, err := f.readings.For(s, acme).Latest(t.Context(), e, stale); err != nil {
					t.Errorf("Latest before the deletion: %v", err)
				}
				read++
			}
		}}
		if _, err := tenants.EraseEntity(t.Context(), store, acme, "", map[string]string{"site": "site#1", "device": "dev 0"}, opts); err != nil || read == 0 {
			t.Fatal(read, err)
		}
		if p, err := f.readings.For(store, acme).Latest(t.Context(), e, stale); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("the erasing store returns %+v, %v", p, err)
		}
		time.Sleep(tenancy.ErasedWithin + time.Second)
		if p, err := f.readings.For(other, acme).Latest(t.Context(), e, stale); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("another store returns %+v, %v", p, err)
		}
	})
}

// TestReservedKindsAreErased: rows of unknown kinds are deleted with their tenant and their entity, and counted.
func TestReservedKindsAreErased(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	site, user := "site%231#dev%200#", "site%231#"
	mine := []string{
		"acme#readings!mark.hourly#" + site + "9223370000000000000", "acme#readings!rollup.hourly#" + site + "9223370000000000000",
		"acme#readings!rollup.hourly#" + site + "9223370000000000001", "acme#readings!zzz#" + site,
		"acme#readings!head#" + site,
	}
	near := []string{
		"acme#readings!mark.hourly#site%231#dev%201#9223370000000000000", "acme#readings!rollup.hourly#site%231#dev%2000#1",
		"acme#readings!rollup.hourly#site%231#dev%20", "acme#readings!zzz#" + user, "acme#events!rollup.x#site%232#1", "acme#last!rollup.x#dev%201#site%231#1",
	}
	odd := []string{"acme#readings!no kind#" + site, "acme#readings!", "acme#readings!#" + site, "acme#unknown!rollup.x#a#1", "acme#other program"}
	others := []string{"acme2#readings!rollup.hourly#" + site + "1", "acme-#readings!mark.hourly#" + site + "1", "acm#readings!zzz#" + site}
	put := func(keys ...string) {
		for _, key := range keys {
			if err := table.Apply(t.Context(), key, newCell()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range []string{"acme", "acme2", "acm"} {
		f.fill(t, store, tenant.MustParse(id))
	}
	put(slices.Concat(mine, near, odd, others)...)
	all := func(key string) bool { return !strings.HasPrefix(key, "!erased") }
	want := dump(t, table, all)
	for key := range want {
		if point := strings.HasPrefix(key, "acme#") && (strings.Contains(key, "#"+site) || strings.Contains(key, "#dev%200#site%231#")); point && !slices.Contains(odd, key) {
			delete(want, key)
		}
	}
	rep, err := tenants.EraseEntity(t.Context(), store, acme, "", map[string]string{"site": "site#1", "device": "dev 0"}, quick)
	if err != nil || rep.Rows != 5+int64(len(mine)) || rep.Late != 0 {
		t.Errorf("report %+v, error %v", rep, err)
	}
	for _, kind := range []string{"mark.hourly", "rollup.hourly", "zzz", "head"} {
		if !slices.ContainsFunc(rep.Kinds, func(c tenants.Counted) bool { return c.Dataset == "readings" && c.Kind == kind }) {
			t.Errorf("the report does not count %s: %+v", kind, rep.Kinds)
		}
	}
	equal(t, "after the entity", dump(t, table, all), want)

	rep, err = tenants.Erase(t.Context(), store, acme, quick)
	if err != nil || rep.Late != 0 || !slices.Contains(rep.Kinds, tenants.Counted{Dataset: "unknown", Kind: "rollup.x", Rows: 1}) ||
		!slices.Contains(rep.Kinds, tenants.Counted{Dataset: "readings", Kind: "rollup.hourly", Rows: 2}) {
		t.Errorf("report %+v, error %v", rep, err)
	}
	for key := range want {
		if strings.HasPrefix(key, "acme#") {
			delete(want, key)
		}
	}
	equal(t, "after the tenant", dump(t, table, all), want)
}

// TestAnErasureTakesTheViewAway: the view's name contains the tenant's name. With views, an erasure that is cut off at
// each of its requests and continued leaves neither rows nor the view, and keeps those of others.
func TestAnErasureTakesTheViewAway(t *testing.T) {
	acme2 := tenant.MustParse("acme2")
	for cut, total := 0, 0; cut <= total; cut += testkit.Stride(7) { // the plain run has all cuts
		f, store, conn, table := open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme, acme2}})
		for _, id := range []tenant.ID{acme, acme2} {
			f.fill(t, store, id)
			if _, err := tenants.Onboard(t.Context(), store, id, tenants.Profile{View: true}, tenants.OnboardOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		before := dump(t, table, others("acme"))
		ctx, end := context.WithCancel(t.Context())
		var calls atomic.Int64
		conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if calls.Add(1) == int64(cut) {
				end()
			}
			return 0
		}))
		_, err := tenants.Erase(ctx, store, acme, quick)
		conn.Clear()
		if cut == 0 {
			total = int(calls.Load())
		}
		if cut == 0 && err != nil || cut > 0 && err != nil && ctx.Err() == nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rep, err := tenants.Erase(t.Context(), store, acme, quick)
		end()
		if err != nil || rep.State != tenants.Erased || !rep.Profile || slices.ContainsFunc(rep.Unreached, func(s string) bool { return strings.Contains(s, "view") }) {
			t.Errorf("cut at %d: report %+v, error %v", cut, rep, err)
		}
		equal(t, "others", dump(t, table, others("acme")), before)
		if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
			t.Errorf("cut at %d: left %v", cut, left)
		}
		_, admin := tsdbtest.Clients(t, conn)
		views, err := admin.AuthorizedViews(t.Context(), tsdbtest.Table)
		if err != nil || !slices.Equal(views, []string{tsdb.ViewID(acme2)}) {
			t.Errorf("cut at %d: the views %v are left, %v", cut, views, err)
		}
		if err := store.EnsureView(t.Context(), acme, f.datasets()...); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("EnsureView of the erased tenant: %v, want ErrErased", err)
		}
		if cut > 0 {
			continue
		}
		if err := tenants.Readmit(t.Context(), store, acme); err != nil {
			t.Fatal(err)
		}
		if err := f.readings.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); !errors.Is(err, tsdb.ErrNoView) {
			t.Errorf("Put without a view: %v, want ErrNoView", err)
		}
		if err := store.EnsureView(t.Context(), acme, f.datasets()...); err != nil {
			t.Fatal(err)
		}
		if err := f.readings.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); err != nil {
			t.Errorf("Put of a readmitted tenant: %v", err)
		}
	}
}

// TestAViewThatStays: without the right to delete views, the rows are still deleted, and the report names the view that
// is left.
func TestAViewThatStays(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme}})
	f.fill(t, store, acme)
	pod := second(t, conn, tsdb.Options{}) // without admin rights
	rep, err := tenants.Erase(t.Context(), pod, acme, quick)
	if err != nil || rep.State != tenants.Erased || !slices.ContainsFunc(rep.Unreached, func(s string) bool { return strings.Contains(s, tsdb.ViewID(acme)) }) {
		t.Errorf("report %+v, error %v", rep, err)
	}
	if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestACatalogueThatLies: calls that read the catalogue refuse an entry whose row belongs to another dataset: otherwise
// they would skip data without notice.
func TestACatalogueThatLies(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	entry := func(name string) *bigtable.Mutation {
		m := newOwn("json", `{"name":"`+name+`","key":["site","device"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`)
		m.Set("_sys", "gen", 0, []byte("1"))
		return m
	}
	refused := func(what string) {
		t.Helper()
		before := dump(t, table, ofTenant("acme"))
		fields := map[string]string{"site": "site#1", "device": "dev 0"}
		if _, err := tenants.EraseEntity(t.Context(), store, acme, "", fields, quick); err == nil {
			t.Errorf("%s: EraseEntity succeeded, want an error", what)
		}
		if _, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{}); err == nil {
			t.Errorf("%s: Usage succeeded, want an error", what)
		}
		for got, err := range tenants.List(t.Context(), store, tenants.ListOptions{}) {
			if err == nil {
				t.Errorf("%s: List returns %v", what, got)
			}
		}
		equal(t, what, dump(t, table, ofTenant("acme")), before)
	}
	if err := table.Apply(t.Context(), "!dataset#events", entry("other")); err != nil {
		t.Fatal(err)
	}
	refused("an entry of another dataset")
}

// TestAMarkThatBeginsAnewIsNotLifted: writing a mark removes expired ones. A mark that starts again at the same moment
// stays.
func TestAMarkThatBeginsAnewIsNotLifted(t *testing.T) {
	now := start
	anew := func() {}
	spy := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(interface{ GetRowKey() []byte }); ok && string(r.GetRowKey()) == "!erased#acme" {
			f := anew
			anew = func() {}
			f()
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})
	clock := func() time.Time { return now }
	f, store, conn, _ := open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock}, DialOptions: []grpc.DialOption{spy}})
	other := second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: clock}})
	opts := quick
	opts.Keep = time.Hour
	if _, err := tenants.Erase(t.Context(), store, acme, opts); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	ran := false
	anew = func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		again := opts
		again.Progress = func(tenants.Progress) { cancel() } // the tenant is marked, and the program ends
		_, err := tenants.Erase(ctx, other, acme, again)
		ran = errors.Is(err, context.Canceled)
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("acme2"), opts); err != nil || !ran {
		t.Fatal(ran, err)
	}
	if err := f.readings.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("Put to a tenant that is being erased again: %v", err)
	}
}
