package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test with a simulated clock. Over TCP, where synctest does not work, the test is skipped.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock; it runs in process")
	}
	synctest.Test(t, f)
}

var (
	acme  = tenant.MustParse("acme")
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	keep  = gc.Class{Name: "keep", Policy: gc.Never()}
)

func define(t testing.TB, name string, key tsdb.KeyFields, opts tsdb.SchemaOptions) *tsdb.Schema[string] {
	t.Helper()
	opts.Retention = keep
	s, err := tsdb.Define(name, key, codec.String(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fleet are the datasets of the tests: plain, salted, with heads, with heads only.
type fleet struct {
	readings, salted, events, last *tsdb.Schema[string]
}

func newFleet(t testing.TB) fleet {
	site := tsdb.Key("site", "device")
	return fleet{
		readings: define(t, "readings", site, tsdb.SchemaOptions{}),
		salted:   define(t, "salted", site, tsdb.SchemaOptions{Salts: 4}),
		events:   define(t, "events", tsdb.Key("user"), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}}),
		last:     define(t, "last", tsdb.Key("device", "site"), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3, Only: true}}),
	}
}

func (f fleet) datasets() []tsdb.Dataset {
	return []tsdb.Dataset{f.readings, f.salted, f.events, f.last}
}

// fill writes a few points of every dataset for a tenant: 3 sites, 2 devices each, 2 times.
func (f fleet) fill(t testing.TB, store *tsdb.Store, id tenant.ID) {
	t.Helper()
	var site, device, user []tsdb.Point[string]
	for i := range 12 {
		at := start.Add(time.Duration(i%2) * time.Hour)
		s, d := fmt.Sprintf("site#%d", i/4), fmt.Sprintf("dev %d", i/2%2)
		site = append(site, tsdb.Point[string]{Entity: tsdb.NewEntity(s, d), Time: at, Value: id.String()})
		device = append(device, tsdb.Point[string]{Entity: tsdb.NewEntity(d, s), Time: at, Value: id.String()})
		user = append(user, tsdb.Point[string]{Entity: tsdb.NewEntity(s), Time: at.Add(time.Duration(i) * time.Second), Value: id.String()})
	}
	for _, c := range []struct {
		s      *tsdb.Schema[string]
		points []tsdb.Point[string]
	}{{f.readings, site}, {f.salted, site}, {f.events, user}, {f.last, device}} {
		if _, err := c.s.For(store, id).PutMany(context.Background(), c.points); err != nil {
			t.Fatal(err)
		}
	}
}

// tenantRows is the number of rows that fill writes: points of three datasets, heads of two.
const tenantRows = 12 + 12 + 12 + 3 + 6

// dump returns all cells of the rows that keep selects, by key.
func dump(t testing.TB, table *bigtable.Table, keep func(key string) bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := table.ReadRows(context.Background(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if !keep(row.Key()) {
			return true
		}
		var cells []string
		for _, family := range slices.Sorted(maps.Keys(row)) {
			for _, c := range row[family] {
				cells = append(cells, fmt.Sprintf("%s@%d=%q", c.Column, c.Timestamp, c.Value))
			}
		}
		out[row.Key()] = strings.Join(cells, " ")
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ofTenant(name string) func(string) bool {
	return func(key string) bool { return strings.HasPrefix(key, name+"#") }
}

// others selects what the erasure of a tenant must not change: everything except its rows, its profile and the marks.
func others(name string) func(string) bool {
	return func(key string) bool {
		return !ofTenant(name)(key) && !strings.HasPrefix(key, "!erased") && key != "!tenant#"+name
	}
}

func equal(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: row %q is %q, was %q", what, k, got[k], v)
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				t.Errorf("%s: row %q was added", what, k)
			}
		}
	}
}

// crowd returns fifty tenants, some with names that are prefixes of one another.
func crowd() (ids []tenant.ID) {
	for _, n := range []string{"a", "ab", "a.", "a-", "a_", "A", "acme", "acme2", "acme.readings", "acme-", "acm", "0", "...", "-"} {
		ids = append(ids, tenant.MustParse(n))
	}
	for i := len(ids); i < 50; i++ {
		ids = append(ids, tenant.MustParse(fmt.Sprintf("acme%02d", i)))
	}
	return ids
}

func open(t testing.TB, opts tsdbtest.Options) (fleet, *tsdb.Store, *tsdbtest.Conn, *bigtable.Table) {
	t.Helper()
	f := newFleet(t)
	store, conn, table := tsdbtest.OpenTable(t, opts, f.datasets()...)
	return f, store, conn, table
}

// second opens another store on the same table, as another process would.
func second(t testing.TB, conn *tsdbtest.Conn, opts tsdb.Options) *tsdb.Store {
	t.Helper()
	client, _ := tsdbtest.Clients(t, conn)
	store, err := tsdb.New(client, tsdbtest.Table, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// quick is an erasure without waiting times.
var quick = tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}

// TestEraseLeavesTheOthersAsTheyWere: one of fifty tenants is erased, and no byte of the others changes.
func TestEraseLeavesTheOthersAsTheyWere(t *testing.T) {
	for _, byRange := range []bool{false, true} {
		f, store, _, table := open(t, tsdbtest.Options{})
		ids := crowd()
		for _, id := range ids {
			f.fill(t, store, id)
			if _, err := tenants.Onboard(t.Context(), store, id, tenants.Profile{Name: "The " + id.String()}, tenants.OnboardOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, erased := range []tenant.ID{tenant.MustParse("a"), acme} {
			before := dump(t, table, others(erased.String()))
			opts := quick
			opts.Range, opts.By = byRange, "an operator"
			rep, err := tenants.Erase(t.Context(), store, erased, opts)
			if err != nil || rep.State != tenants.Erased || rep.Rows != tenantRows || rep.Late != 0 || !rep.Profile {
				t.Fatalf("report %+v, error %v", rep, err)
			}
			want := []tenants.Counted{
				{Dataset: "events", Rows: 12},
				{Dataset: "events", Kind: "head", Rows: 3},
				{Dataset: "last", Kind: "head", Rows: 6},
				{Dataset: "readings", Rows: 12},
				{Dataset: "salted", Rows: 12},
			}
			if !slices.Equal(rep.Kinds, want) {
				t.Errorf("kinds %+v, want %+v", rep.Kinds, want)
			}
			equal(t, "after "+erased.String(), dump(t, table, others(erased.String())), before)
			if left := dump(t, table, ofTenant(erased.String())); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := tenants.Load(t.Context(), store, erased); !errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("its profile: %v, want ErrNotFound", err)
			}
		}
	}
}

// TestErasedIsRefused: every call for an erased tenant is refused, in this store and in others, until it is readmitted.
func TestErasedIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		other := second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}})
		f.fill(t, store, acme)
		repo := f.readings.For(other, acme)
		e := tsdb.NewEntity("site#0", "dev 0")
		if _, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour)); err != nil { // fills the cache
			t.Fatal(err)
		}
		begun := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{})
			done <- err
		}()
		synctest.Wait()
		if _, err := f.readings.For(store, acme).Latest(t.Context(), e); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put in the erasing store: %v", err)
		}
		for refused := false; !refused; time.Sleep(time.Second) {
			_, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour))
			if refused = errors.Is(err, tsdb.ErrErased); !refused && time.Since(begun) > tenancy.ErasedWithin {
				t.Fatalf("error %v after %v", err, time.Since(begun))
			}
		}
		if err := repo.Put(t.Context(), e, start, "x"); !errors.Is(err, tsdb.ErrErased) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("Put in another store: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < tenancy.ErasedWithin+5*time.Minute {
			t.Errorf("the erasure took %v, but a PutMany may take 5 minutes", took)
		}
		if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{}, tenants.OnboardOptions{}); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Onboard of the erased tenant: %v", err)
		}
		if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{}, tenants.OnboardOptions{Readmit: true}); err != nil {
			t.Errorf("Onboard of the erased tenant: %v", err)
		}
		time.Sleep(tenancy.ErasedWithin + time.Second)
		if _, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour)); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Latest of the readmitted tenant: %v", err)
		}
		if err := repo.Put(t.Context(), e, start, "x"); err != nil {
			t.Errorf("Put of the readmitted tenant: %v", err)
		}
		if n := len(dump(t, table, ofTenant("acme"))); n != 1 {
			t.Errorf("%d rows, want the one written after the readmission", n)
		}
	})
}

// newCell is a write of a program that ignores marks.
func newCell() *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("keep", "p:str", bigtable.Time(start), []byte("late"))
	return m
}

// contextOver returns a context that has ended.
func contextOver(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// newOwn sets a column of one of the store's own rows.
func newOwn(column, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("_sys", column, 0, []byte(value))
	return m
}
