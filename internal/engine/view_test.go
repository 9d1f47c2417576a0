package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

func view(t *testing.T, r *rig, id string, prefixes []string, families map[string]bigtable.FamilySubset) {
	t.Helper()
	conf := &bigtable.SubsetViewConf{FamilySubsets: families}
	for _, p := range prefixes {
		conf.AddRowPrefix([]byte(p))
	}
	err := r.admin.CreateAuthorizedView(r.ctx, &bigtable.AuthorizedViewConf{TableID: tableID, AuthorizedViewID: id, AuthorizedView: conf})
	if err != nil {
		t.Fatalf("CreateAuthorizedView: %v", err)
	}
}

func everything() bigtable.FamilySubset {
	return bigtable.FamilySubset{QualifierPrefixes: [][]byte{{}}}
}

func TestViewReads(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for _, key := range []string{"acme#1", "acme2#1", "other"} {
		m := bigtable.NewMutation()
		m.Set("f", "open", 1000, []byte("1"))
		m.Set("f", "secret", 1000, []byte("2"))
		m.Set("f", "pub/x", 1000, []byte("3"))
		m.Set("g", "q", 1000, []byte("4"))
		apply(t, r, key, m)
	}
	view(t, r, "v", []string{"acme#"}, map[string]bigtable.FamilySubset{
		"f": {Qualifiers: [][]byte{[]byte("open")}, QualifierPrefixes: [][]byte{[]byte("pub/")}},
	})
	v := r.data.OpenAuthorizedView(tableID, "v")
	want := []string{"acme#1 f:open@1000=1", "acme#1 f:pub/x@1000=3"}
	for name, set := range map[string]bigtable.RowSet{
		"all": bigtable.InfiniteRange(""), "prefix": bigtable.PrefixRange("a"), "keys": bigtable.RowList{"acme#1", "acme2#1", "other"},
	} {
		for _, opt := range []bigtable.ReadOption{bigtable.LimitRows(9), bigtable.ReverseScan(), bigtable.RowFilter(bigtable.PassAllFilter())} {
			if got, err := read(r, v, set, opt); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: read %q (%v), want %q", name, got, err, want)
			}
		}
	}
	if got, err := read(r, v, bigtable.SingleRow("other")); err != nil || len(got) != 0 {
		t.Errorf("a row outside the view: got %q (%v), want no row", got, err)
	}
}

func TestViewWrites(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	apply(t, r, "acme#1", set("f", "secret", 1000, "s"))
	view(t, r, "v", []string{"acme#"}, map[string]bigtable.FamilySubset{
		"f": {QualifierPrefixes: [][]byte{[]byte("pub/")}}, "g": everything(),
	})
	name := fullName + "/authorizedViews/v"
	for _, tt := range []struct {
		name string
		row  string
		mut  *bigtablepb.Mutation
		want codes.Code
	}{
		{"inside", "acme#1", setCell("f", "pub/x", 0, "v"), codes.OK},
		{"row outside", "acme2#1", setCell("f", "pub/x", 0, "v"), codes.PermissionDenied},
		{"column outside", "acme#1", setCell("f", "secret", 0, "v"), codes.PermissionDenied},
		{"family outside", "acme#1", addCell("sum", "n", 0, 1), codes.PermissionDenied},
		{"delete column outside", "acme#1", deleteColumn("f", "secret", 0, 0), codes.PermissionDenied},
		{"delete partly covered family", "acme#1", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{DeleteFromFamily: &bigtablepb.Mutation_DeleteFromFamily{FamilyName: "f"}}}, codes.PermissionDenied},
		{"delete covered family", "acme#1", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{DeleteFromFamily: &bigtablepb.Mutation_DeleteFromFamily{FamilyName: "g"}}}, codes.OK},
		{"delete row", "acme#1", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromRow_{}}, codes.PermissionDenied},
	} {
		muts := []*bigtablepb.Mutation{tt.mut}
		_, err := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{AuthorizedViewName: name, RowKey: []byte(tt.row), Mutations: muts})
		if status.Code(err) != tt.want {
			t.Errorf("%s: MutateRow answered %v, want %v", tt.name, err, tt.want)
		}
		resp, err := r.MutateRowsAll(r.ctx, &bigtablepb.MutateRowsRequest{AuthorizedViewName: name, Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: []byte(tt.row), Mutations: muts}}})
		if err != nil || codes.Code(resp.Entries[0].Status.Code) != tt.want {
			t.Errorf("%s: MutateRows answered %v %v, want %v", tt.name, resp, err, tt.want)
		}
		_, err = r.CheckAndMutateRow(r.ctx, &bigtablepb.CheckAndMutateRowRequest{AuthorizedViewName: name, RowKey: []byte(tt.row), FalseMutations: muts})
		if status.Code(err) != tt.want {
			t.Errorf("%s: CheckAndMutateRow answered %v, want %v", tt.name, err, tt.want)
		}
	}
	// A predicate sees only the columns that a read through the view sees.
	resp, err := r.CheckAndMutateRow(r.ctx, &bigtablepb.CheckAndMutateRowRequest{
		AuthorizedViewName: name, RowKey: []byte("acme#1"),
		PredicateFilter: &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte("secret")}},
		TrueMutations:   []*bigtablepb.Mutation{setCell("g", "leak", 0, "")},
	})
	if err != nil || resp.PredicateMatched {
		t.Errorf("a predicate on a hidden column: got %v, %v, want no match", resp, err)
	}
	_, err = r.ReadModifyWriteRow(r.ctx, &bigtablepb.ReadModifyWriteRowRequest{
		AuthorizedViewName: name, RowKey: []byte("acme#1"),
		Rules: []*bigtablepb.ReadModifyWriteRule{{FamilyName: "f", ColumnQualifier: []byte("secret"), Rule: &bigtablepb.ReadModifyWriteRule_AppendValue{}}},
	})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("ReadModifyWriteRow outside: %v, want PermissionDenied", err)
	}
	want := []string{"acme#1 f:pub/x@0=v", "acme#1 f:secret@1000=s"}
	if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
		t.Errorf("got table %q, want %q", got, want)
	}
}

func TestViewAdmin(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	r.create(t)
	view(t, r, "b", []string{"x"}, nil)
	view(t, r, "a", []string{"acme#"}, map[string]bigtable.FamilySubset{"f": everything()})
	if got, err := r.admin.AuthorizedViews(r.ctx, tableID); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got views %q (%v), want a, b", got, err)
	}
	listed, err := r.ListAuthorizedViews(r.ctx, &adminpb.ListAuthorizedViewsRequest{Parent: fullName})
	if err != nil || listed.AuthorizedViews[0].GetSubsetView() != nil {
		t.Errorf("a list that names no part of the views: %v, %v; want only names", listed, err)
	}
	err = r.admin.CreateAuthorizedView(r.ctx, &bigtable.AuthorizedViewConf{TableID: tableID, AuthorizedViewID: "a", AuthorizedView: &bigtable.SubsetViewConf{}})
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("creating a view twice: %v, want AlreadyExists", err)
	}
	err = r.admin.UpdateAuthorizedView(r.ctx, bigtable.UpdateAuthorizedViewConf{AuthorizedViewConf: bigtable.AuthorizedViewConf{
		TableID: tableID, AuthorizedViewID: "a", DeletionProtection: bigtable.Protected,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.admin.DeleteAuthorizedView(r.ctx, tableID, "a"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deleting a protected view: %v, want FailedPrecondition", err)
	}
	if err := r.admin.DeleteTable(r.ctx, tableID); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deleting the table of a protected view: %v, want FailedPrecondition", err)
	}
	outdated := &adminpb.AuthorizedView{Name: fullName + "/authorizedViews/b", Etag: "outdated", DeletionProtection: true}
	if _, err := r.UpdateAuthorizedView(r.ctx, &adminpb.UpdateAuthorizedViewRequest{AuthorizedView: outdated}); status.Code(err) != codes.Aborted {
		t.Errorf("changing a view that has changed: %v, want Aborted", err)
	}
	if _, err := r.DeleteAuthorizedView(r.ctx, &adminpb.DeleteAuthorizedViewRequest{Name: outdated.Name, Etag: outdated.Etag}); status.Code(err) != codes.Aborted {
		t.Errorf("deleting a view that has changed: %v, want Aborted", err)
	}
	r = reopen(t, r, engine.Options{Dir: dir})
	info, err := r.admin.AuthorizedViewInfo(r.ctx, tableID, "a")
	if err != nil {
		t.Fatal(err)
	}
	subset, ok := info.AuthorizedView.(*bigtable.SubsetViewInfo)
	if !ok || len(subset.RowPrefixes) != 1 || string(subset.RowPrefixes[0]) != "acme#" || info.DeletionProtection != bigtable.Protected {
		t.Errorf("after reopening, the view is %+v", info)
	}
	if err := r.admin.DeleteAuthorizedView(r.ctx, tableID, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.admin.AuthorizedViewInfo(r.ctx, tableID, "b"); status.Code(err) != codes.NotFound {
		t.Errorf("info of a deleted view: %v, want NotFound", err)
	}
}

// An update without a mask keeps what it does not set. The mask * replaces all.
func TestViewUpdateMasks(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	prefix := func(p string) *adminpb.AuthorizedView_SubsetView_ {
		return &adminpb.AuthorizedView_SubsetView_{SubsetView: &adminpb.AuthorizedView_SubsetView{RowPrefixes: [][]byte{[]byte(p)}}}
	}
	name := fullName + "/authorizedViews/v"
	if _, err := r.CreateAuthorizedView(r.ctx, &adminpb.CreateAuthorizedViewRequest{
		Parent: fullName, AuthorizedViewId: "v", AuthorizedView: &adminpb.AuthorizedView{DeletionProtection: true, AuthorizedView: prefix("a")},
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mask      []string
		prefix    string
		protected bool
	}{
		{nil, "b", true},
		{[]string{"*"}, "c", false},
	} {
		_, err := r.UpdateAuthorizedView(r.ctx, &adminpb.UpdateAuthorizedViewRequest{
			AuthorizedView: &adminpb.AuthorizedView{Name: name, AuthorizedView: prefix(tt.prefix)}, UpdateMask: &fieldmaskpb.FieldMask{Paths: tt.mask},
		})
		if err != nil {
			t.Fatalf("mask %q: %v", tt.mask, err)
		}
		v, err := r.GetAuthorizedView(r.ctx, &adminpb.GetAuthorizedViewRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(v.GetSubsetView().GetRowPrefixes()[0]); got != tt.prefix || v.GetDeletionProtection() != tt.protected {
			t.Errorf("mask %q: got prefix %q, protected %v; want %q, %v", tt.mask, got, v.GetDeletionProtection(), tt.prefix, tt.protected)
		}
	}
}

// A change of a view replaces the parts that its mask names, and keeps the others. A change that the service refuses
// changes nothing.
func TestViewUpdates(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	view(t, r, "v", []string{"a"}, map[string]bigtable.FamilySubset{"f": everything()})
	name := fullName + "/authorizedViews/v"
	change := func(rows []string, family string, paths ...string) error {
		subset := &adminpb.AuthorizedView_SubsetView{}
		for _, p := range rows {
			subset.RowPrefixes = append(subset.RowPrefixes, []byte(p))
		}
		if family != "" {
			subset.FamilySubsets = map[string]*adminpb.AuthorizedView_FamilySubsets{family: {QualifierPrefixes: [][]byte{{}}}}
		}
		_, err := r.UpdateAuthorizedView(r.ctx, &adminpb.UpdateAuthorizedViewRequest{
			AuthorizedView: &adminpb.AuthorizedView{Name: name, AuthorizedView: &adminpb.AuthorizedView_SubsetView_{SubsetView: subset}},
			UpdateMask:     &fieldmaskpb.FieldMask{Paths: paths},
		})
		return err
	}
	for _, tt := range []struct {
		rows   []string
		family string
		paths  []string
		code   codes.Code
		want   string
	}{
		{[]string{"b", "c"}, "", []string{"subset_view.row_prefixes"}, codes.OK, "[b c] [f]"},
		{nil, "g", []string{"subset_view.family_subsets"}, codes.OK, "[b c] [g]"},
		{[]string{"d"}, "f", []string{"deletion_protection"}, codes.OK, "[b c] [g]"},
		{[]string{"d"}, "f", []string{"subset_view", "name"}, codes.InvalidArgument, "[b c] [g]"},
		{[]string{"d"}, "unknown", []string{"subset_view"}, codes.NotFound, "[b c] [g]"},
		{[]string{strings.Repeat("d", 4097)}, "f", []string{"subset_view"}, codes.InvalidArgument, "[b c] [g]"},
		{[]string{"d"}, "f", nil, codes.OK, "[d] [f]"},
	} {
		if err := change(tt.rows, tt.family, tt.paths...); status.Code(err) != tt.code {
			t.Errorf("a change of %v: %v, want %v", tt.paths, err, tt.code)
		}
		v, err := r.GetAuthorizedView(r.ctx, &adminpb.GetAuthorizedViewRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %v", v.GetSubsetView().RowPrefixes, slices.Sorted(maps.Keys(v.GetSubsetView().FamilySubsets)))
		if got != tt.want {
			t.Errorf("after a change of %v to %.9q and %q, the view has %.99s, want %s", tt.paths, tt.rows, tt.family, got, tt.want)
		}
	}
}
