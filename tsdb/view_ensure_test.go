package tsdb_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// shown returns the prefixes and families that a view includes.
func shown(t *testing.T, admin *bigtable.AdminClient, id tenant.ID) (prefixes []string, families []string) {
	t.Helper()
	info, err := admin.AuthorizedViewInfo(context.Background(), tsdbtest.Table, tsdb.ViewID(id))
	if err != nil {
		t.Fatal(err)
	}
	subset := info.AuthorizedView.(*bigtable.SubsetViewInfo)
	for _, p := range subset.RowPrefixes {
		prefixes = append(prefixes, string(p))
	}
	for name, f := range subset.FamilySubsets {
		if len(f.Qualifiers) != 0 || len(f.QualifierPrefixes) != 1 || len(f.QualifierPrefixes[0]) != 0 {
			t.Errorf("the view is limited to the columns %q %q of family %s, want all columns", f.Qualifiers, f.QualifierPrefixes, name)
		}
		families = append(families, name)
	}
	slices.Sort(families)
	return prefixes, families
}

// TestEnsureViewMakesAndWidensAView: a view covers its tenant's rows and the families of the datasets. It gains the
// families of later datasets, loses none, and stays protected.
func TestEnsureViewMakesAndWidensAView(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	_, admin := tsdbtest.Clients(t, conn)
	same := func(want ...string) {
		t.Helper()
		prefixes, families := shown(t, admin, acme)
		if !slices.Equal(prefixes, []string{"acme#"}) || !slices.Equal(families, want) {
			t.Errorf("the view covers families %q of rows %q, want %q of acme#", families, prefixes, want)
		}
	}
	for range 2 {
		if err := store.EnsureView(t.Context(), acme, s); err != nil {
			t.Fatal(err)
		}
		same("d90")
	}
	err := admin.UpdateAuthorizedView(t.Context(), bigtable.UpdateAuthorizedViewConf{AuthorizedViewConf: bigtable.AuthorizedViewConf{
		TableID: tsdbtest.Table, AuthorizedViewID: tsdb.ViewID(acme), DeletionProtection: bigtable.Protected,
	}})
	if err != nil {
		t.Fatal(err)
	}
	year := gc.Class{Name: "y1", Policy: gc.MaxAge(365 * 24 * time.Hour)}
	later := tsdb.MustDefine("later", tsdb.Key("id"), codec.String(), tsdb.SchemaOptions{Retention: year, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}})
	if err := store.EnsureView(t.Context(), acme, later); !errors.Is(err, tsdb.ErrNoTable) {
		t.Errorf("EnsureView before Ensure: %v, want ErrNoTable", err)
	}
	same("d90")
	if err := store.Ensure(t.Context(), s, later); err != nil {
		t.Fatal(err)
	}
	if err := store.EnsureView(t.Context(), acme, later); err != nil {
		t.Fatal(err)
	}
	same("d90", "y1", "y1.h3")
	info, err := admin.AuthorizedViewInfo(t.Context(), tsdbtest.Table, tsdb.ViewID(acme))
	if err != nil || info.DeletionProtection != bigtable.Protected {
		t.Errorf("after EnsureView the view is %+v, %v; want it protected as before", info, err)
	}
}

func TestEnsureViewRefuses(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	client, admin := tsdbtest.Clients(t, conn)
	subset := func(prefixes []string, qualifierPrefix string) *bigtable.SubsetViewConf {
		conf := &bigtable.SubsetViewConf{}
		for _, p := range prefixes {
			conf.AddRowPrefix([]byte(p))
		}
		conf.AddFamilySubsetQualifierPrefix("d90", []byte(qualifierPrefix))
		return conf
	}
	for name, conf := range map[string]*bigtable.SubsetViewConf{
		"without-delimiter": subset([]string{"without-delimiter"}, ""),
		"of-another":        subset([]string{"acme#"}, ""),
		"of-two":            subset([]string{"of-two#", "acme#"}, ""),
		"of-all":            subset([]string{""}, ""),
		"of-nothing":        subset(nil, ""),
		"narrow":            subset([]string{"narrow#"}, "p:"),
	} {
		id := tenant.MustParse(name)
		err := admin.CreateAuthorizedView(t.Context(), &bigtable.AuthorizedViewConf{TableID: tsdbtest.Table, AuthorizedViewID: tsdb.ViewID(id), AuthorizedView: conf})
		if err != nil {
			t.Fatal(err)
		}
		err = store.EnsureView(t.Context(), id, s)
		if conflict, ok := errors.AsType[*tsdb.ConflictError](err); !ok || len(conflict.Differences) != 1 || !strings.Contains(conflict.Differences[0], tsdb.ViewID(id)) ||
			!strings.HasPrefix(err.Error(), "tsdb: authorized view "+tsdb.ViewID(id)+" of table "+tsdbtest.Table+": ") {
			t.Errorf("EnsureView over a view %s: %v, want a ConflictError", name, err)
		}
		info, err := admin.AuthorizedViewInfo(t.Context(), tsdbtest.Table, tsdb.ViewID(id))
		if err != nil {
			t.Fatal(err)
		}
		if have := info.AuthorizedView.(*bigtable.SubsetViewInfo); len(have.RowPrefixes) != len(conf.RowPrefixes) || len(slices.Collect(maps.Keys(have.FamilySubsets))) != 1 {
			t.Errorf("EnsureView changed the view %s to %q", name, have)
		}
	}
	bare := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
	elsewhere := must[*tsdb.Store](t)(tsdb.New(client, "elsewhere", tsdb.Options{Admin: admin}))
	closed := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{Admin: admin}))
	_ = closed.Close()
	for name, tt := range map[string]struct {
		store    *tsdb.Store
		id       tenant.ID
		datasets []tsdb.Dataset
		want     error
	}{
		"without admin rights": {bare, acme, []tsdb.Dataset{s}, tenancy.ErrNoAdmin},
		"of the zero tenant":   {store, tenant.ID{}, []tsdb.Dataset{s}, tenant.ErrInvalid},
		"of no datasets":       {store, acme, nil, tsdb.ErrInvalid},
		"of a nil dataset":     {store, acme, []tsdb.Dataset{nil}, tsdb.ErrInvalid},
		"without a table":      {elsewhere, acme, []tsdb.Dataset{s}, tsdb.ErrNoTable},
		"of a nil store":       {nil, acme, []tsdb.Dataset{s}, tsdb.ErrInvalid},
		"of a closed store":    {closed, acme, []tsdb.Dataset{s}, tsdb.ErrClosed},
	} {
		if err := tt.store.EnsureView(t.Context(), tt.id, tt.datasets...); !errors.Is(err, tt.want) {
			t.Errorf("EnsureView %s: %v, want %v", name, err, tt.want)
		}
	}
	if ids, err := admin.AuthorizedViews(t.Context(), tsdbtest.Table); err != nil || slices.Contains(ids, tsdb.ViewID(acme)) {
		t.Errorf("refused calls created views: %v, %v", ids, err)
	}
}

// TestManyEnsureOneView: replicas that start at once create one view, and all calls succeed.
func TestManyEnsureOneView(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	errs := make(chan error)
	for range 8 {
		go func() { errs <- store.EnsureView(context.Background(), acme, s) }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCallsWithoutAView: each call for a tenant without a view fails with ErrNoView, names EnsureView, and reads and
// writes nothing.
func TestCallsWithoutAView(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	other := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme}}, s, other)
	before := rows(t, table)
	for name, op := range operations {
		seen, err := op(t.Context(), other.For(store, acme2), roof, start)
		if !errors.Is(err, tsdb.ErrNoView) || !strings.Contains(err.Error(), "EnsureView") || len(seen) > 0 {
			t.Errorf("%s for a tenant without a view: read %v, %v; want ErrNoView", name, seen, err)
		}
	}
	compareOthers(t, "a call without a view", before, rows(t, table), func(string) bool { return false })
	if err := store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.EnsureView(t.Context(), acme2, other); err != nil {
		t.Fatal(err)
	}
	if err := other.For(store, acme2).Put(t.Context(), roof, start, "x"); err != nil {
		t.Errorf("Put after EnsureView: %v", err)
	}
}

// TestAViewBehindItsSchema: a write to a family that the view does not cover yet is rejected, and the error names
// EnsureView.
func TestAViewBehindItsSchema(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	later := tsdb.MustDefine("later", tsdb.Key("id"), codec.String(), tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, ViewsFor: []tenant.ID{acme}}, s)
	if err := store.Ensure(t.Context(), s, later); err != nil {
		t.Fatal(err)
	}
	e := tsdb.NewEntity("1")
	err := later.For(store, acme).Put(t.Context(), e, start, "x")
	if !errors.Is(err, tsdb.ErrRejected) || !strings.Contains(err.Error(), "EnsureView") {
		t.Errorf("Put into a family that the view does not cover: %v, want ErrRejected", err)
	}
	if err := store.EnsureView(t.Context(), acme, s, later); err != nil {
		t.Fatal(err)
	}
	if err := later.For(store, acme).Put(t.Context(), e, start, "x"); err != nil {
		t.Error(err)
	}
}

// TestJournalWithoutAView: points of a tenant without a view wait in the journal, those of others do not, and all are
// delivered once the view exists.
func TestJournalWithoutAView(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme}}, s)
		w := writer(t, store, journaled(t))
		for i := range 100 {
			at := start.Add(time.Duration(i) * time.Second)
			if err := s.For(store, acme2).Via(w).Enqueue(t.Context(), roof, at, reading{1}); err != nil {
				t.Fatal(err)
			}
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, at, reading{1}); err != nil {
				t.Fatal(err)
			}
		}
		deadline := time.Now().Add(time.Minute)
		for w.Stats().Journal.Points > 100 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		st := w.Stats()
		if got, err := s.For(store, acme).LatestN(t.Context(), roof, 1000); err != nil || len(got) != 100 {
			t.Errorf("%d points of the tenant with a view are stored, %v; want 100: %+v", len(got), err, st)
		}
		if st.Down != nil || st.Rejected > 0 || st.Journal.Points != 100 {
			t.Errorf("stats with one tenant without a view: %+v", st)
		}
		if err := store.EnsureView(t.Context(), acme2, s); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.For(store, acme2).LatestN(t.Context(), roof, 1000); err != nil || len(got) != 100 {
			t.Errorf("%d points are stored after the view was created, %v; want 100", len(got), err)
		}
	})
}
