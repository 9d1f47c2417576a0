package tsdb_test

import (
	"errors"
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestTheServiceKeepsTenantsApart simulates a bug in this package: it requests rows of other tenants and of the store
// itself through one tenant's view, with every kind of call. Bigtable itself refuses the writes and shows none of the
// rows.
func TestTheServiceKeepsTenantsApart(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(start).Now}, ViewsFor: []tenant.ID{acme, acme2}}, s)
	for _, id := range []tenant.ID{acme, acme2} {
		if err := s.For(store, id).Put(t.Context(), roof, start, reading{1}); err != nil {
			t.Fatal(err)
		}
	}
	in := must[inside.Store](t)(inside.Of(store).Internals())
	before := rows(t, table)
	var foreign, own []string
	for key := range before {
		if len(key) > 5 && key[:5] == "acme#" {
			own = append(own, key)
		} else {
			foreign = append(foreign, key)
		}
	}
	if len(own) != 1 || len(foreign) != 1 {
		t.Fatalf("the table holds %d rows of acme and %d others", len(own), len(foreign))
	}
	foreign = append(foreign, rowkey.FormatRow, "acme", "acme$", "acm", "zzz#r#new", "acme2#readings#new#1")
	through := in.Rows(acme)
	client, _ := tsdbtest.Clients(t, conn)
	view := client.OpenAuthorizedView(tsdbtest.Table, tsdb.ViewID(acme))

	family := d90.Name
	set := func() *bigtable.Mutation {
		m := bigtable.NewMutation()
		m.Set(family, "p:json", bigtable.Time(start), []byte(`{"temp_c":9}`))
		return m
	}
	drop := func() *bigtable.Mutation {
		m := bigtable.NewMutation()
		m.DeleteRow()
		return m
	}
	dropFamily := func() *bigtable.Mutation {
		m := bigtable.NewMutation()
		m.DeleteCellsInFamily(family)
		return m
	}
	all := bigtable.PassAllFilter()
	merging := func() (bigtable.Filter, func(*bt.Row) bt.Merge) {
		return all, func(*bt.Row) bt.Merge { return bt.Merge{Same: all, Mutation: set()} }
	}
	writes := map[string]func(key string) error{
		"Apply":       func(key string) error { return through.Apply(t.Context(), key, set()).Err },
		"Apply drop":  func(key string) error { return through.Apply(t.Context(), key, drop()).Err },
		"Apply clear": func(key string) error { return through.Apply(t.Context(), key, dropFamily()).Err },
		"Bulk": func(key string) error {
			return through.Bulk(t.Context(), []bt.Entry{{Key: key, Mutation: set(), Mutations: 1}, {Key: own[0], Mutation: bigtable.NewMutation(), Mutations: 0}})[0].Err
		},
		"Attempt": func(key string) error {
			return through.Attempt(t.Context(), []bt.Entry{{Key: key, Mutation: drop(), Mutations: 1}}, nil)[0].Err
		},
		"Conditional": func(key string) error {
			_, out := through.Conditional(t.Context(), key, all, set(), set())
			return out.Err
		},
		"Insert": func(key string) error {
			_, out := through.Insert(t.Context(), bt.Insertion{Key: key, Exists: func() bigtable.Filter { return all }, Mutation: set()})
			return out.Err
		},
		"Merge": func(key string) error {
			return through.Merge(t.Context(), bt.Merging{Key: key, Fresh: set(), At: merging}).Err
		},
		"ReadModifyWrite": func(key string) error {
			m := bigtable.NewReadModifyWrite()
			m.AppendValue(family, "p:json", []byte("x"))
			_, err := view.ApplyReadModifyWrite(t.Context(), key, m)
			return err
		},
	}
	for name, write := range writes {
		for _, key := range foreign {
			if err := write(key); grpcstatus.Code(cause(err)) != codes.PermissionDenied {
				t.Errorf("%s of the row %q through the view of acme: %v, want PermissionDenied", name, key, err)
			}
		}
	}
	compareOthers(t, "a write through the view of acme", before, rows(t, table), func(string) bool { return false })

	seen := func(what string, set bigtable.RowSet, reverse bool) {
		var keys []string
		err := through.Read(t.Context(), bt.Scan{Rows: set, Reverse: reverse}, func(row *bt.Row) bool {
			keys = append(keys, row.Key())
			return true
		})
		if err != nil || len(keys) > 1 || len(keys) == 1 && keys[0] != own[0] {
			t.Errorf("a read of %s through the view of acme returns %q, %v", what, keys, err)
		}
	}
	for _, reverse := range []bool{false, true} {
		seen("everything", bigtable.InfiniteRange(""), reverse)
		seen("the next tenant", bigtable.PrefixRange("acme2#"), reverse)
		seen("the store's own rows", bigtable.PrefixRange("!"), reverse)
		seen("all by key", bigtable.RowList(foreign), reverse)
	}
	for _, key := range foreign {
		if row, err := through.Row(t.Context(), key, all); row != nil || err != nil {
			t.Errorf("the row %q through the view of acme is %v, %v", key, row, err)
		}
	}
	keys, err := view.SampleRowKeys(t.Context())
	outside := func(k string) bool { return k[:min(5, len(k))] != "acme#" && k != "acme$" } // the end of the view's rows
	if err != nil || slices.ContainsFunc(keys, outside) {
		t.Errorf("samples through the view of acme: %q, %v", keys, err)
	}
	if row, err := through.Row(t.Context(), own[0], all); err != nil || row.Key() != own[0] {
		t.Errorf("acme's own row through its view: %v, %v", row, err)
	}
}

// cause returns the service's status among the errors that are joined in err.
func cause(err error) error {
	var s interface{ GRPCStatus() *grpcstatus.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Err()
	}
	return err
}
