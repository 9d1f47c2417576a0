package conformance

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

// view creates a view of the rows "acme#…": all columns of family a, and the columns p and x… of family b.
func (e *env) view(table, id string) bigtable.TableAPI {
	e.Helper()
	v := &bigtable.SubsetViewConf{}
	v.AddRowPrefix([]byte("acme#"))
	v.AddFamilySubsetQualifierPrefix("a", nil)
	v.AddFamilySubsetQualifierPrefix("a", []byte{})
	v.AddFamilySubsetQualifier("b", []byte("p"))
	v.AddFamilySubsetQualifierPrefix("b", []byte("x"))
	err := e.admin.CreateAuthorizedView(e.ctx, &bigtable.AuthorizedViewConf{TableID: table, AuthorizedViewID: id, AuthorizedView: v})
	if err != nil {
		e.Fatal(err)
	}
	return e.client.OpenAuthorizedView(table, id)
}

func (e *env) tenants() (*bigtable.Table, bigtable.TableAPI) {
	tbl := e.create("t", "a", "b", "c")
	for _, row := range []string{"acme", "acme#1", "acme#2", "acme$", "acme2#1", "other"} {
		e.put(tbl, row, "a:q@1=1", "b:p@1=2", "b:q@1=3", "b:x1@1=4", "c:p@1=5")
	}
	return tbl, e.view("t", "v")
}

const seen1, seen2 = "acme#1 a:q@1=1 b:p@1=2 b:x1@1=4", "acme#2 a:q@1=1 b:p@1=2 b:x1@1=4"

// A read through a view returns only rows and columns of the view, whatever it requests.
func TestViewReads(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		_, v := e.tenants()
		for name, tt := range map[string]struct {
			rows bigtable.RowSet
			opts []bigtable.ReadOption
			want string
		}{
			"all":            {bigtable.InfiniteRange(""), nil, seen1 + "; " + seen2},
			"a wider prefix": {bigtable.PrefixRange("acme"), nil, seen1 + "; " + seen2},
			"reversed":       {bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.ReverseScan()}, seen2 + "; " + seen1},
			"limited":        {bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.LimitRows(1)}, seen1},
			"limited, reversed": {
				bigtable.InfiniteRange(""),
				[]bigtable.ReadOption{bigtable.LimitRows(1), bigtable.ReverseScan()},
				seen2,
			},
			"keys":                 {bigtable.RowList{"acme", "acme#2", "acme2#1", "other"}, nil, seen2},
			"another tenant's row": {bigtable.SingleRow("acme2#1"), nil, ""},
			"ranges":               {bigtable.RowRangeList{bigtable.NewRange("a", "acme#1\x00"), bigtable.NewRange("acme$", "z")}, nil, seen1},
			"a hidden column": {bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.RowFilter(bigtable.ChainFilters(
				bigtable.FamilyFilter("b"), bigtable.ColumnFilter("q")))}, ""},
			"a hidden family": {bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.RowFilter(bigtable.FamilyFilter("c"))}, ""},
			"an offset counts visible cells": {
				bigtable.SingleRow("acme#1"),
				[]bigtable.ReadOption{bigtable.RowFilter(bigtable.CellsPerRowOffsetFilter(2))},
				"acme#1 b:x1@1=4",
			},
			"a condition on a hidden column": {bigtable.SingleRow("acme#1"), []bigtable.ReadOption{bigtable.RowFilter(
				bigtable.ConditionFilter(bigtable.ValueFilter("5"), bigtable.PassAllFilter(), nil))}, ""},
		} {
			want(t, e.scan(v, tt.rows, tt.opts...), tt.want, name+": a view shows cells outside it, or hides cells inside")
		}
		keys, err := v.SampleRowKeys(e.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(keys); n == 0 || keys[n-1] != "acme$" {
			t.Fatalf("got samples %q, want the last one at the end of the view", keys)
		}
		for _, k := range keys[:len(keys)-1] {
			if !strings.HasPrefix(k, "acme#") {
				t.Errorf("got a sample with another tenant's key %q", k)
			}
		}
	})
}

// A write through a view changes only rows and columns of the view.
func TestViewWrites(t *testing.T) {
	mutation := func(f func(*bigtable.Mutation)) *bigtable.Mutation {
		m := set("a:q@1=changed")
		f(m)
		return m
	}
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		tbl, v := e.tenants()
		before := e.all(tbl)
		for name, tt := range map[string]struct {
			row string
			m   *bigtable.Mutation
		}{
			"another tenant's row":     {"acme2#1", set("a:q@1=changed")},
			"the prefix cut short":     {"acme", set("a:q@1=changed")},
			"another tenant's new row": {"zzz", set("a:q@1=changed")},
			"a hidden column":          {"acme#1", set("a:q@1=changed", "b:q@1=changed")},
			"a hidden family":          {"acme#1", set("a:q@1=changed", "c:p@1=changed")},
			"deleting a hidden column": {"acme#1", mutation(func(m *bigtable.Mutation) { m.DeleteCellsInColumn("b", "q") })},
			"deleting times of a hidden column": {"acme#1", mutation(func(m *bigtable.Mutation) {
				m.DeleteTimestampRange("c", "p", 0, 0)
			})},
			"deleting a family that is covered in part": {"acme#1", mutation(func(m *bigtable.Mutation) { m.DeleteCellsInFamily("b") })},
			"deleting a row that is covered in part":    {"acme#1", mutation((*bigtable.Mutation).DeleteRow)},
		} {
			wantCode(t, v.Apply(e.ctx, tt.row, tt.m), codes.PermissionDenied, name+" is accepted")
			errs, err := v.ApplyBulk(e.ctx, []string{tt.row}, []*bigtable.Mutation{tt.m})
			if err != nil || len(errs) != 1 {
				t.Fatal(errs, err)
			}
			wantCode(t, errs[0], codes.PermissionDenied, name+" is accepted in bulk")
			err = v.Apply(e.ctx, tt.row, bigtable.NewCondMutation(bigtable.PassAllFilter(), tt.m, tt.m))
			wantCode(t, err, codes.PermissionDenied, name+" is accepted in a conditional mutation")
		}
		for row, column := range map[string]string{"acme2#1": "q", "acme": "q", "acme#1": "none"} {
			fam := "a"
			if column == "none" {
				fam = "b"
			}
			m := bigtable.NewReadModifyWrite()
			m.AppendValue(fam, column, []byte("x"))
			_, err := v.ApplyReadModifyWrite(e.ctx, row, m)
			wantCode(t, err, codes.PermissionDenied, "a read-modify-write outside the view is accepted")
		}
		want(t, e.all(tbl), before, "a write through a view changed cells outside it")

		e.apply(v, "acme#1", mutation(func(m *bigtable.Mutation) {
			m.DeleteCellsInFamily("a")
			m.DeleteCellsInColumn("b", "p")
			m.Set("b", "xyz", ms(1), []byte("new"))
		}))
		want(t, e.scan(tbl, bigtable.SingleRow("acme#1")), "acme#1 b:q@1=3 b:x1@1=4 b:xyz@1=new c:p@1=5", "a write inside the view was not stored")
	})
}

// A predicate through a view sees only what the view covers.
func TestViewPredicates(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		tbl, v := e.tenants()
		e.put(tbl, "acme#3", "c:p@1=hidden")
		for name, row := range map[string]string{"a hidden cell": "acme#3", "a hidden value": "acme#1"} {
			f := bigtable.PassAllFilter()
			if row == "acme#1" {
				f = bigtable.ValueFilter("5")
			}
			var matched bool
			m := bigtable.NewCondMutation(f, set("a:z@1=x"), set("a:z@1=y"))
			if err := v.Apply(e.ctx, row, m, bigtable.GetCondMutationResult(&matched)); err != nil {
				t.Fatal(err)
			}
			if matched {
				t.Errorf("a predicate through a view finds %s", name)
			}
		}
	})
}

func TestViewAdmin(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		tbl, v := e.tenants()
		ids, err := e.admin.AuthorizedViews(e.ctx, "t")
		if err != nil || !slices.Equal(ids, []string{"v"}) {
			t.Errorf("got views %v, %v", ids, err)
		}
		err = e.admin.CreateAuthorizedView(e.ctx, &bigtable.AuthorizedViewConf{TableID: "t", AuthorizedViewID: "v", AuthorizedView: &bigtable.SubsetViewConf{}})
		wantCode(t, err, codes.AlreadyExists, "a view is created twice")
		info, err := e.admin.AuthorizedViewInfo(e.ctx, "t", "v")
		if err != nil {
			t.Fatal(err)
		}
		s, ok := info.AuthorizedView.(*bigtable.SubsetViewInfo)
		if !ok || len(s.RowPrefixes) != 1 || string(s.RowPrefixes[0]) != "acme#" || len(s.FamilySubsets) != 2 {
			t.Errorf("got view %+v", info.AuthorizedView)
		}
		wider := &bigtable.SubsetViewConf{}
		wider.AddRowPrefix([]byte("other"))
		wider.AddFamilySubsetQualifier("c", []byte("p"))
		if err := e.admin.UpdateAuthorizedView(e.ctx, bigtable.UpdateAuthorizedViewConf{AuthorizedViewConf: bigtable.AuthorizedViewConf{
			TableID: "t", AuthorizedViewID: "v", AuthorizedView: wider,
		}, IgnoreWarnings: true}); err != nil {
			t.Fatal(err)
		}
		want(t, e.scan(v, bigtable.InfiniteRange("")), "other c:p@1=5", "an updated view shows its old rows")
		if err := e.admin.DeleteAuthorizedView(e.ctx, "t", "v"); err != nil {
			t.Fatal(err)
		}
		err = v.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return true })
		wantCode(t, err, codes.NotFound, "a read through a deleted view is accepted")
		wantCode(t, v.Apply(e.ctx, "other", set("c:p@1=x")), codes.NotFound, "a write through a deleted view is accepted")
		want(t, e.scan(tbl, bigtable.SingleRow("other")), "other a:q@1=1 b:p@1=2 b:q@1=3 b:x1@1=4 c:p@1=5", "deleting a view changes rows")
	})
}

func TestProtectedView(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		e.create("t", "a")
		s := &bigtable.SubsetViewConf{}
		s.AddRowPrefix([]byte("x"))
		conf := bigtable.AuthorizedViewConf{TableID: "t", AuthorizedViewID: "v", AuthorizedView: s, DeletionProtection: bigtable.Protected}
		if err := e.admin.CreateAuthorizedView(e.ctx, &conf); err != nil {
			t.Fatal(err)
		}
		wantCode(t, e.admin.DeleteAuthorizedView(e.ctx, "t", "v"), codes.FailedPrecondition, "a protected view is deleted")
		wantCode(t, e.admin.DeleteTable(e.ctx, "t"), codes.FailedPrecondition, "a table is deleted with its protected view")
	})
}

// A view without prefixes covers no row.
func TestEmptyViewShowsNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultViews)
		tbl := e.create("t", "a")
		e.put(tbl, "r", "a:q@1=v")
		if err := e.admin.CreateAuthorizedView(e.ctx, &bigtable.AuthorizedViewConf{
			TableID: "t", AuthorizedViewID: "v",
			AuthorizedView: &bigtable.SubsetViewConf{},
		}); err != nil {
			t.Skipf("the backend refuses an empty view: %v", err)
		}
		v := e.client.OpenAuthorizedView("t", "v")
		want(t, e.scan(v, bigtable.InfiniteRange("")), "", "an empty view shows rows")
		wantCode(t, v.Apply(e.ctx, "r", set("a:q@1=x")), codes.PermissionDenied, "a write through an empty view is accepted")
		both := &bigtablepb.ReadRowsRequest{AuthorizedViewName: tableName("t") + "/authorizedViews/v", TableName: tableName("t")}
		wantCode(t, e.readError(both), codes.InvalidArgument, "a request that names a table and a view is accepted")
	})
}
