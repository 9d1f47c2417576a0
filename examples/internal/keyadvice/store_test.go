package keyadvice_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSampleHoldsOneTenant: tenants, datasets and key parts have names that are prefixes of one another. A sample has
// exactly the entities of its tenant in its dataset, is refused in the context of another tenant and for an erased one,
// and changes nothing.
func TestSampleHoldsOneTenant(t *testing.T) {
	names := []string{"a", "ab", "a.", "a-", "acme", "acme2", "acme.readings", "0"}
	paths := [][]string{
		{"berlin", "roof"},
		{"berlin", "roof-7"},
		{"berlin#roof", "x"},
		{"berlin", "roof#9223372036854775807"},
		{"9223372036854775807", "9223372036854775807"},
		{"ber", "lin"},
		{"b", "#"},
		{"#", "b"},
		{"\x00", "%00"},
		{"東", "京"},
	}
	var ids []tenant.ID
	for _, name := range names {
		ids = append(ids, tenant.MustParse(name))
	}
	for _, mode := range []struct {
		name  string
		salts int
		views []tenant.ID
	}{{name: "table"}, {name: "views", salts: 3, views: ids}} {
		t.Run(mode.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			var schemas []*tsdb.Schema[string]
			var datasets []tsdb.Dataset
			for _, name := range []string{"r", "r.", "acme"} {
				opts := tsdb.SchemaOptions{Salts: mode.salts}
				if name == "acme" {
					opts.Precision, opts.Head = tsdb.Milliseconds, tsdb.Head{Points: 2}
				}
				s := tsdb.MustDefine(name, tsdb.Key("site", "device"), codec.String(), opts)
				schemas, datasets = append(schemas, s), append(datasets, s)
			}
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{ViewsFor: mode.views}, datasets...)
			type part struct {
				id      tenant.ID
				dataset string
			}
			stored := map[part][]tsdb.Entity{}
			for _, id := range ids {
				for _, s := range schemas {
					for _, p := range paths {
						if rng.IntN(2) == 0 {
							continue
						}
						e := tsdb.NewEntity(p...)
						if err := s.For(store, id).Put(t.Context(), e, time.Now(), id.String()); err != nil {
							t.Fatal(err)
						}
						stored[part{id, s.Name()}] = append(stored[part{id, s.Name()}], e)
					}
				}
			}
			before := rowsOf(t, table)
			for i, id := range ids {
				for _, s := range schemas {
					_, sample, err := keyadvice.TakeSample(t.Context(), store, s.Name(), id, 0)
					if err != nil {
						t.Fatal(err)
					}
					var got []tsdb.Entity
					for _, e := range sample.Entities {
						if got = append(got, e.Entity); e.Tenant != id {
							t.Errorf("a sample of %s has an entity of %s", id, e.Tenant)
						}
					}
					want := stored[part{id, s.Name()}]
					slices.SortFunc(got, tsdb.Entity.Compare)
					slices.SortFunc(want, tsdb.Entity.Compare)
					if !slices.Equal(got, want) {
						t.Errorf("the sample of %s in %s has %q, want %q", id, s.Name(), got, want)
					}
					foreign := tenant.NewContext(t.Context(), ids[(i+1)%len(ids)])
					if _, sample, err := keyadvice.TakeSample(foreign, store, s.Name(), id, 0); !errors.Is(err, tsdb.ErrTenantMismatch) || sample.Entities != nil {
						t.Errorf("a sample of %s in another tenant's context: %v, %v; want ErrTenantMismatch", id, sample, err)
					}
				}
			}
			if after := rowsOf(t, table); !reflect.DeepEqual(before, after) {
				t.Error("samples changed the table")
			}
			if _, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); err != nil {
				t.Fatal(err)
			}
			if _, sample, err := keyadvice.TakeSample(t.Context(), store, "r", acme, 0); !errors.Is(err, tsdb.ErrErased) || sample.Entities != nil {
				t.Errorf("a sample of an erased tenant: %v, %v; want ErrErased", sample, err)
			}
		})
	}
}

// rowsOf returns all rows of a table, also the store's own.
func rowsOf(t *testing.T, table *bigtable.Table) map[string]bigtable.Row {
	t.Helper()
	out := map[string]bigtable.Row{}
	if err := table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		out[r.Key()] = r
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSampleReadsInBulk: names and points are read with the client of Config.BulkAppProfile, and the catalogue is not.
// That client's cluster lags behind: it has an old point of the tenant, and no later one.
func TestSampleReadsInBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
		there, lags := tsdbtest.Open(t, tsdbtest.Options{}, s)
		_, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{})
		data, admin := tsdbtest.Clients(t, conn)
		bulk, _ := tsdbtest.Clients(t, lags)
		for name, views := range map[string]bool{"table": false, "views": true} {
			store, err := tsdb.New(data, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Views: views}, Bulk: bulk, Admin: admin})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			id := tenant.MustParse(name)
			if views {
				for _, of := range []*tsdb.Store{store, there} {
					if err := of.EnsureView(t.Context(), id, s); err != nil {
						t.Fatal(err)
					}
				}
			}
			old, fresh := tsdb.NewEntity("berlin", "old"), tsdb.NewEntity("berlin", "new")
			if err := errors.Join(s.For(there, id).Put(t.Context(), old, time.Now(), 1), s.For(store, id).Put(t.Context(), fresh, time.Now(), 1)); err != nil {
				t.Fatal(err)
			}
			before, here := lags.Counts().Calls[tsdbtest.ReadRows], conn.Counts().Calls[tsdbtest.ReadRows]
			if _, sample, err := keyadvice.TakeSample(t.Context(), store, "readings", id, 0); err != nil || len(sample.Entities) != 1 || sample.Entities[0].Entity != old {
				t.Errorf("%s: the sample is %+v, %v, want the entity of the lagging cluster", name, sample, err)
			}
			reads, others := lags.Counts().Calls[tsdbtest.ReadRows]-before, conn.Counts().Calls[tsdbtest.ReadRows]-here
			if reads < 2 || others != 1 {
				t.Errorf("%s: a sample read %d times with the client for bulk reads and %d times with the other, want names and points, and the catalogue", name, reads, others)
			}
		}
	})
}

// TestRequestsOfASample: a sample of short histories takes at most two reads for each entity and two more.
func TestRequestsOfASample(t *testing.T) {
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	for _, n := range []int{1, 10, 20} {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		now := time.Now()
		var points []tsdb.Point[float64]
		for device := range n {
			for i := range 5 {
				points = append(points, tsdb.Point[float64]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%05d", device)), Time: now.Add(-time.Duration(i+1) * time.Minute)})
			}
		}
		if _, err := s.For(store, acme).PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		conn.Reset()
		if _, sample, err := keyadvice.TakeSample(t.Context(), store, "readings", acme, 0); err != nil || len(sample.Entities) != n {
			t.Fatalf("sample %+v, error %v; want %d entities", sample, err, n)
		}
		got := conn.Counts()
		if reads := got.Calls[tsdbtest.ReadRows]; len(got.Calls) != 1 || reads > 2*n+2 {
			t.Errorf("a sample of %d entities made the calls %v, want at most %d reads", n, got.Calls, 2*n+2)
		}
		if got.RowsSeen > int64(26*n+34) {
			t.Errorf("the service read %d rows for a sample of %d entities, want at most %d", got.RowsSeen, n, 26*n+34)
		}
	}
}

// TestSampleAmongManyDatasets: one tenant has created very many datasets, and samples of others still work.
func TestSampleAmongManyDatasets(t *testing.T) {
	testkit.Plain(t)
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	const others = 10_500
	var names []string
	var entries []*bigtable.Mutation
	for i := range others {
		name := fmt.Sprintf("d%05d-of-a-tenant-with-many", i)
		m := bigtable.NewMutation()
		m.Set("_sys", "json", 0, []byte(`{"name":"`+name+`","key":["site","device"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`))
		m.Set("_sys", "gen", 0, []byte("1"))
		names, entries = append(names, "!dataset#"+name), append(entries, m)
	}
	if errs, err := table.ApplyBulk(t.Context(), names, entries); err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	if err := s.For(store, acme).Put(t.Context(), tsdb.NewEntity("berlin", "roof"), time.Now(), "x"); err != nil {
		t.Fatal(err)
	}
	_, sample, err := keyadvice.TakeSample(t.Context(), store, "readings", acme, 0)
	if err != nil || len(sample.Entities) != 1 || len(sample.OtherDatasets) != others {
		t.Errorf("a sample of %d entities and %d other datasets, %v; want 1 and %d", len(sample.Entities), len(sample.OtherDatasets), err, others)
	}
}

// TestSampleWithoutArguments: a missing store or context is an error and no panic.
func TestSampleWithoutArguments(t *testing.T) {
	s := tsdb.MustDefine("readings", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	var none context.Context
	if _, _, err := keyadvice.TakeSample(none, store, "readings", acme, 0); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "ctx is nil") {
		t.Errorf("without a context: %v", err)
	}
	for _, closed := range []*tsdb.Store{nil, {}} {
		if _, _, err := keyadvice.TakeSample(t.Context(), closed, "readings", acme, 0); err == nil {
			t.Error("without a store: nil, want an error")
		}
	}
}
