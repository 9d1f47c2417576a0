package tsdb_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// clusters are two clusters; one lags behind the other. Conditional writes have their own app profile and go to
// decides. All requests with the general profile go to lags.
type clusters struct {
	store         *tsdb.Store
	decides, lags *tsdbtest.Conn
	there         *tsdb.Store // uses decides only
	table         *bigtable.Table
}

func openClusters(t *testing.T, opts tsdb.Options, datasets ...tsdb.Dataset) *clusters {
	t.Helper()
	there, decides, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: opts.Clock}}, datasets...)
	_, lags := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: opts.Clock}}, datasets...)
	data, _ := tsdbtest.Clients(t, lags)
	conditional, admin := tsdbtest.Clients(t, decides)
	opts.Conditional, opts.Admin = conditional, admin
	store, err := tsdb.New(data, tsdbtest.Table, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &clusters{store, decides, lags, there, table}
}

// TestConditionalWritesReadWhereTheyDecide: if a conditional write finds a row, or loses its response, it reads the row
// in the cluster that decided. The other cluster would show nothing.
func TestConditionalWritesReadWhereTheyDecide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, opts := range map[string]tsdb.SchemaOptions{
			"first wins":                 {FirstWins: true},
			"merge":                      {Merge: true},
			"merge heads":                {Merge: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
			"first wins in a lost class": {FirstWins: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds, Classes: []gc.Class{d90}},
		} {
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			c := openClusters(t, tsdb.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
			repo := s.For(c.store, acme)
			for range 2 { // the second write finds the first
				if err := repo.Put(t.Context(), roof, start, record(1)); err != nil {
					t.Errorf("%s: Put: %v", name, err)
				}
			}
			c.decides.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
			if ok, err := repo.PutIfAbsent(t.Context(), roof, start.Add(time.Second), record(1)); err != nil || !ok {
				t.Errorf("%s: PutIfAbsent with a lost response = %v, %v", name, ok, err)
			}
		}
	})
}

// TestHeadsOfMergedPoints: the head of a merged point holds the fields from the cluster that merged it.
func TestHeadsOfMergedPoints(t *testing.T) {
	opts := tsdb.SchemaOptions{Merge: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds}
	s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
	c := openClusters(t, tsdb.Options{}, s)
	if err := s.For(c.store, acme).Put(t.Context(), roof, start, record(1)); err != nil {
		t.Fatal(err)
	}
	if p, err := latestMany(t.Context(), s.For(c.there, acme), []tsdb.Entity{roof}); err != nil || p[0].Err != nil || !p[0].Point.Time.Equal(start) {
		t.Errorf("the head holds %+v, %v", p, err)
	}
}

// TestTheStoresOwnRowsAreReadWhereTheyAreDecided: Ensure and Onboard change rows only if they still are as read, so
// they read them in the cluster that decides.
func TestTheStoresOwnRowsAreReadWhereTheyAreDecided(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	c := openClusters(t, tsdb.Options{}, s)
	more := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counted[reading]("hour", time.Hour, rollup.Options{})}})
	if err := c.there.Ensure(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if err := c.store.Ensure(t.Context(), more); err != nil {
		t.Errorf("Ensure: %v", err)
	}
	if _, err := tenants.Onboard(t.Context(), c.there, acme, tenants.Profile{Name: "a"}, tenants.OnboardOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.Onboard(t.Context(), c.store, acme, tenants.Profile{Name: "b"}, tenants.OnboardOptions{Replace: true}); err != nil {
		t.Errorf("Onboard that replaces a profile: %v", err)
	}
}

// TestRollupsAreComputedWhereTheyAreDecided: a worker and a rebuild read marks, points and rollup rows in the cluster
// that replaces the rollup row, and write there.
func TestRollupsAreComputedWhereTheyAreDecided(t *testing.T) {
	now := start
	hour := counted[reading]("hour", time.Hour, rollup.Options{})
	day := counted[reading]("day", 24*time.Hour, rollup.Options{From: "hour"})
	s := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day}})
	c := openClusters(t, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, s)
	for _, at := range []time.Time{start, start.Add(time.Minute)} {
		if err := s.For(c.there, acme).Put(t.Context(), roof, at, reading{TempC: 1}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := rollup.NewWorker(c.store, rollup.WorkerOptions{Tenants: onlyAcme}, s)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(48 * time.Hour)
	for range 2 { // the first pass makes the day's mark
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	want := []string{"acme#readings!rollup.day", "acme#readings!rollup.hour"}
	if got := rollupsIn(t, c.table); !slices.Equal(got, want) {
		t.Errorf("after the worker the table holds rows of %q, want %q and no marks", got, want)
	}
	if n := c.lags.Counts().Calls[tsdbtest.MutateRows]; n != 0 {
		t.Errorf("the worker made %d writes with the general profile, want 0", n)
	}
	if err := c.table.Apply(t.Context(), firstRow(t, c.table, want[1]), deleteRow()); err != nil {
		t.Fatal(err)
	}
	if n, err := rollup.For(hour, s.For(c.store, acme)).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); n != 1 || err != nil {
		t.Errorf("Rebuild: %d buckets, %v", n, err)
	}
	if got := rollupsIn(t, c.table); !slices.Equal(got, want) {
		t.Errorf("after the rebuild the table holds rows of %q, want %q", got, want)
	}
}

func onlyAcme(context.Context) iter.Seq2[tenant.ID, error] {
	return func(yield func(tenant.ID, error) bool) { yield(acme, nil) }
}

func deleteRow() *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteRow()
	return m
}

// rollupsIn returns the distinct beginnings of the keys of rollups and marks, in order.
func rollupsIn(t *testing.T, table *bigtable.Table) (out []string) {
	t.Helper()
	for key := range rows(t, table) {
		if kind, _, _ := strings.Cut(strings.TrimPrefix(key, "acme#"), "#"); strings.Contains(kind, "!") {
			out = append(out, "acme#"+kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func firstRow(t *testing.T, table *bigtable.Table, prefix string) string {
	t.Helper()
	for key := range rows(t, table) {
		if strings.HasPrefix(key, prefix) {
			return key
		}
	}
	t.Fatalf("no row with the prefix %q", prefix)
	return ""
}
