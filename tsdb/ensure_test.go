package tsdb_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// everything returns all rows of the table and its families with their policies.
func tableContents(t *testing.T, table *bigtable.Table, admin *bigtable.AdminClient) any {
	t.Helper()
	all := map[string]bigtable.Row{}
	if err := table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		all[r.Key()] = r
		return true
	}); err != nil {
		t.Fatal(err)
	}
	info, err := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{}
	for _, f := range info.FamilyInfos {
		policies[f.Name] = f.GCPolicy
	}
	return []any{all, policies}
}

// TestAnotherSchemaIsRefused: each difference between the declared and the stored dataset is listed, and the table
// stays unchanged.
func TestAnotherSchemaIsRefused(t *testing.T) {
	k := tsdb.Key("site", "device")
	stored, err := tsdb.Define("readings", k, codec.Fallback(codec.JSON[reading](), codec.Tagged("json2", codec.JSON[reading]())),
		tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}}})
	if err != nil {
		t.Fatal(err)
	}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, stored)
	_, admin := tsdbtest.Clients(t, conn)
	before := tableContents(t, table, admin)
	older := []gc.Class{{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}}
	both := codec.Fallback(codec.JSON[reading](), codec.Tagged("json2", codec.JSON[reading]()))
	for _, tt := range []struct {
		name string
		key  tsdb.KeyFields
		c    codec.Codec[reading]
		opts tsdb.SchemaOptions
		want string
	}{
		{"key fields", tsdb.Key("device", "site"), both, tsdb.SchemaOptions{Retention: d90, FormerClasses: older}, "key fields declared as device, site, stored as site, device"},
		{"precision", k, both, tsdb.SchemaOptions{Retention: d90, FormerClasses: older, Precision: tsdb.Milliseconds}, "precision declared as ms, stored as ns"},
		{"salts", k, both, tsdb.SchemaOptions{Retention: d90, FormerClasses: older, Salts: 4}, "salts declared as 4, stored as 0"},
		{"first wins", k, both, tsdb.SchemaOptions{Retention: d90, FormerClasses: older, FirstWins: true}, "first-wins declared as true, stored as false"},
		{"a tag it cannot read", k, codec.JSON[reading](), tsdb.SchemaOptions{Retention: d90, FormerClasses: older}, "codec tag json2 is stored but not declared"},
		{"a class it does not read", k, both, tsdb.SchemaOptions{Retention: d90}, "retention class d7 is stored but not declared"},
		{"a policy", k, both, tsdb.SchemaOptions{Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(24 * time.Hour)}, FormerClasses: older}, "policy of retention class d90 declared as"},
	} {
		s, err := tsdb.Define("readings", tt.key, tt.c, tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		for call, err := range map[string]error{"Ensure": store.Ensure(t.Context(), s), "Verify": store.Verify(t.Context(), s)} {
			var conflict *tsdb.ConflictError
			if !errors.Is(err, tenancy.ErrSchemaConflict) || !errors.As(err, &conflict) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v, want a conflict that says %q", call, tt.name, err, tt.want)
			}
		}
		if after := tableContents(t, table, admin); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s: a refused Ensure changed the table from %v to %v", tt.name, before, after)
		}
	}
}

func TestFamiliesThatDoNotFitAreRefused(t *testing.T) {
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{})
	_, admin := tsdbtest.Clients(t, conn)
	if err := admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: tsdbtest.Table, ColumnFamilies: map[string]bigtable.Family{
		"d90": {GCPolicy: bigtable.MaxAgePolicy(24 * time.Hour)},
		"sum": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}},
		"own": {GCPolicy: bigtable.MaxVersionsPolicy(7)},
	}}); err != nil {
		t.Fatal(err)
	}
	before := tableContents(t, table, admin)
	s := readings(t, tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{{Name: "sum", Policy: gc.Never()}, {Name: "new", Policy: gc.Never()}}})
	err := store.Ensure(t.Context(), s)
	for _, want := range []string{`family d90: policy declared as "maxage=90d", the table has "maxage=1d"`, "family sum: is an aggregate family"} {
		if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("Ensure: %v, want it to say %q", err, want)
		}
	}
	if after := tableContents(t, table, admin); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused Ensure changed the table from %v to %v", before, after)
	}
	other, err := tsdb.Define("other", tsdb.Key("x"), codec.String(), tsdb.SchemaOptions{Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), other); err != nil {
		t.Fatalf("Ensure in a table with families of others: %v", err)
	}
	info, err := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil || len(info.Families) != 5 {
		t.Errorf("families are %v, %v, want the three of others, _sys and d30", info.Families, err)
	}
}

// TestEnsureEvolves: Ensure adds new tags and classes. If there is nothing to add, it writes nothing.
func TestEnsureEvolves(t *testing.T) {
	v1 := readings(t, tsdb.SchemaOptions{Retention: d90})
	v2, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Fallback(codec.Tagged("json2", codec.JSON[reading]()), codec.JSON[reading]()),
		tsdb.SchemaOptions{Retention: gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}, FormerClasses: []gc.Class{d90}})
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, v1)
	if err := store.Ensure(t.Context(), v1); err != nil {
		t.Fatal(err)
	}
	if n := conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 0 {
		t.Errorf("Ensure with nothing to do made %d writes, want 0", n)
	}
	if err := store.Verify(t.Context(), v2); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Verify before Ensure: %v, want a conflict", err)
	}
	if err := store.Ensure(t.Context(), v2); err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), v2); err != nil {
		t.Errorf("Verify after Ensure: %v", err)
	}
	if err := store.Verify(t.Context(), v1); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("an older program that does not declare json2: %v, want a conflict", err)
	}
	missing, err := tsdb.Define("missing", tsdb.Key("x"), codec.String(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), v2, missing); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Verify of a dataset without Ensure: %v", err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	m := bigtable.NewMutation()
	m.Set("_sys", "v", 0, []byte("2"))
	apply(t, table, "!format", m)
	for call, err := range map[string]error{"Ensure": store.Ensure(t.Context(), s), "Verify": store.Verify(t.Context(), s)} {
		if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "version 2, this program knows 1") {
			t.Errorf("%s: %v, want a conflict about the version", call, err)
		}
	}
	for _, tt := range []struct{ row, column, value string }{{"!format", "v", "x"}, {"!dataset#readings", "json", "{"}} {
		m := bigtable.NewMutation()
		m.Set("_sys", "v", 0, []byte("1"))
		apply(t, table, "!format", m)
		m = bigtable.NewMutation()
		m.Set("_sys", tt.column, 0, []byte(tt.value))
		apply(t, table, tt.row, m)
		if err := store.Verify(t.Context(), s); err == nil || !strings.Contains(err.Error(), tt.row) {
			t.Errorf("damaged row %s: %v, want an error that names it", tt.row, err)
		}
	}
}

// TestManyReplicasEnsureAtOnce: eight calls at once all succeed and agree.
func TestManyReplicasEnsureAtOnce(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	a, b := readings(t, tsdb.SchemaOptions{Retention: d90}), tsdb.MustDefine("b", tsdb.Key("x"), codec.String(), tsdb.SchemaOptions{})
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = store.Ensure(t.Context(), a, b) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("Ensure from eight replicas: %v", err)
	}
	if err := store.Verify(t.Context(), a, b); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func TestEnsureRefusesContradictions(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	a := readings(t, tsdb.SchemaOptions{Retention: d90})
	b := tsdb.MustDefine("b", tsdb.Key("x"), codec.String(), tsdb.SchemaOptions{Retention: gc.Class{Name: "d90", Policy: gc.Never()}})
	for _, datasets := range [][]tsdb.Dataset{{a, a}, {a, b}, {nil}} {
		if err := store.Ensure(t.Context(), datasets...); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Ensure(%v) = %v, want ErrInvalid", datasets, err)
		}
	}
	if err := store.Verify(t.Context(), a); !errors.Is(err, tsdb.ErrNoTable) {
		t.Errorf("Verify without a table: %v, want ErrNoTable", err)
	}
	if err := store.Ping(t.Context()); !errors.Is(err, tsdb.ErrNoTable) || status(err) != codes.NotFound {
		t.Errorf("Ping without a table: %v, want ErrNoTable", err)
	}
	if n := conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 0 {
		t.Errorf("%d writes, want 0", n)
	}
	if err := store.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for call, err := range map[string]error{
		"Ensure": store.Ensure(t.Context(), a), "Verify": store.Verify(t.Context(), a), "Ping": store.Ping(t.Context()),
		"Put": a.For(store, acme).Put(context.Background(), roof, start, reading{}),
	} {
		if !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("%s on a closed store: %v, want ErrClosed", call, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}
