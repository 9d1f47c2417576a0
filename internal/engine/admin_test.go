package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

func TestTables(t *testing.T) {
	r := open(t, engine.Options{})
	for _, id := range []string{"c", "a", "b"} {
		err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: id, Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(2)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := r.admin.Tables(r.ctx); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("tables are %q (%v), want a, b, c", got, err)
	}
	if err := r.admin.CreateTable(r.ctx, "a"); status.Code(err) != codes.AlreadyExists {
		t.Errorf("creating a table twice: %v, want AlreadyExists", err)
	}
	info, err := r.admin.TableInfo(r.ctx, "a")
	if err != nil || len(info.FamilyInfos) != 1 || info.FamilyInfos[0].GCPolicy != "versions() > 2" {
		t.Errorf("table info is %+v (%v)", info, err)
	}
	if err := r.admin.DeleteTable(r.ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.admin.TableInfo(r.ctx, "b"); status.Code(err) != codes.NotFound {
		t.Errorf("info of a deleted table: %v, want NotFound", err)
	}
	if err := r.admin.DeleteTable(r.ctx, "b"); status.Code(err) != codes.NotFound {
		t.Errorf("deleting a table twice: %v, want NotFound", err)
	}
	// Pages.
	var names []string
	req := &adminpb.ListTablesRequest{Parent: parent, PageSize: 1}
	for {
		page, err := r.ListTables(r.ctx, req)
		if err != nil || len(page.Tables) > 1 {
			t.Fatalf("page %v: %v", page, err)
		}
		for _, tbl := range page.Tables {
			names = append(names, strings.TrimPrefix(tbl.Name, parent+"/tables/"))
		}
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			break
		}
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("pages hold %q, want a, c", names)
	}
	if err := r.admin.WaitForReplication(r.ctx, "a"); err != nil {
		t.Errorf("WaitForReplication: %v", err)
	}
}

func TestDeletionProtection(t *testing.T) {
	r := open(t, engine.Options{})
	err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: tableID, ColumnFamilies: map[string]bigtable.Family{"f": {}}, DeletionProtection: bigtable.Protected})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.admin.DeleteTable(r.ctx, tableID); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deleting a protected table: %v, want FailedPrecondition", err)
	}
	if err := r.admin.DeleteColumnFamily(r.ctx, tableID, "f"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("dropping a family of a protected table: %v, want FailedPrecondition", err)
	}
	if err := r.admin.UpdateTableWithDeletionProtection(r.ctx, tableID, bigtable.Unprotected); err != nil {
		t.Fatal(err)
	}
	if err := r.admin.DeleteTable(r.ctx, tableID); err != nil {
		t.Errorf("deleting an unprotected table: %v", err)
	}
}

// TestDroppedDataStaysGone checks that a new table or family never shows the data of a dropped one with the same name.
func TestDroppedDataStaysGone(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	apply(t, r, "r", set("f", "q", 1000, "old"))
	if err := r.admin.DeleteColumnFamily(r.ctx, tableID, "f"); err != nil {
		t.Fatal(err)
	}
	if err := r.mutate("r", setCell("f", "q", 0, "v")); status.Code(err) != codes.NotFound {
		t.Errorf("writing to a dropped family: %v, want NotFound", err)
	}
	if err := r.admin.CreateColumnFamily(r.ctx, tableID, "f"); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != 0 {
		t.Errorf("the new family holds %q", got)
	}
	apply(t, r, "r", set("f", "q", 1000, "new"))
	if err := r.admin.DeleteTable(r.ctx, tableID); err != nil {
		t.Fatal(err)
	}
	r.create(t)
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != 0 {
		t.Errorf("the new table holds %q", got)
	}
}

func TestModifyFamiliesIsAtomic(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	create := func(id string) *adminpb.ModifyColumnFamiliesRequest_Modification {
		return &adminpb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: &adminpb.ColumnFamily{}}}
	}
	drop := func(id string) *adminpb.ModifyColumnFamiliesRequest_Modification {
		return &adminpb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}
	}
	update := func(id string, cf *adminpb.ColumnFamily, paths ...string) *adminpb.ModifyColumnFamiliesRequest_Modification {
		return &adminpb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Update{Update: cf}, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}
	}
	sum := &adminpb.Type{Kind: &adminpb.Type_AggregateType{AggregateType: &adminpb.Type_Aggregate{
		InputType: &adminpb.Type{Kind: &adminpb.Type_Int64Type{Int64Type: &adminpb.Type_Int64{}}}, Aggregator: &adminpb.Type_Aggregate_Sum_{},
	}}}
	hll := &adminpb.Type{Kind: &adminpb.Type_AggregateType{AggregateType: &adminpb.Type_Aggregate{
		InputType: &adminpb.Type{Kind: &adminpb.Type_BytesType{}}, Aggregator: &adminpb.Type_Aggregate_HllppUniqueCount{},
	}}}
	age := func(d time.Duration) *adminpb.GcRule {
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
	}
	deep := age(time.Hour)
	for range 100 {
		deep = &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: []*adminpb.GcRule{deep, age(time.Hour)}}}}
	}
	for _, tt := range []struct {
		name string
		mod  *adminpb.ModifyColumnFamiliesRequest_Modification
		want codes.Code
	}{
		{"create again", create("f"), codes.AlreadyExists},
		{"bad name", create("a:b"), codes.InvalidArgument},
		{"drop unknown", drop("x"), codes.NotFound},
		{"update unknown", update("x", nil), codes.NotFound},
		{"unset", &adminpb.ModifyColumnFamiliesRequest_Modification{Id: "f"}, codes.InvalidArgument},
		{"nil", nil, codes.InvalidArgument},
		{"bad path", update("f", nil, "name"), codes.InvalidArgument},
		{"to aggregate", update("f", &adminpb.ColumnFamily{ValueType: sum}, "value_type"), codes.InvalidArgument},
		{"to plain", update("sum", &adminpb.ColumnFamily{}, "value_type"), codes.InvalidArgument},
		{"hll", &adminpb.ModifyColumnFamiliesRequest_Modification{Id: "x", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: &adminpb.ColumnFamily{ValueType: hll}}}, codes.Unimplemented},
		{"negative age", update("f", &adminpb.ColumnFamily{GcRule: age(-1)}), codes.InvalidArgument},
		{"large rule", update("f", &adminpb.ColumnFamily{GcRule: deep}), codes.InvalidArgument},
		{"empty union", update("f", &adminpb.ColumnFamily{GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{}}}), codes.InvalidArgument},
		{"zero versions", update("f", &adminpb.ColumnFamily{GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{}}}), codes.InvalidArgument},
	} {
		_, err := r.ModifyColumnFamilies(r.ctx, &adminpb.ModifyColumnFamiliesRequest{Name: fullName, Modifications: []*adminpb.ModifyColumnFamiliesRequest_Modification{create("new"), drop("g"), tt.mod}})
		if status.Code(err) != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	tbl, err := r.GetTable(r.ctx, &adminpb.GetTableRequest{Name: fullName})
	if err != nil || len(tbl.ColumnFamilies) != 5 || tbl.ColumnFamilies["new"] != nil || tbl.ColumnFamilies["g"] == nil {
		t.Errorf("after refused changes the families are %v (%v)", tbl.GetColumnFamilies(), err)
	}
	if tbl.ColumnFamilies["sum"].GetValueType().GetAggregateType().GetStateType() == nil {
		t.Error("an aggregate family is shown without its state type")
	}
}

func TestDropRowRange(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for _, key := range []string{"acme", "acme#1", "acme#2", "acme2#1", "acmf", "\xff\xff", "\xff\xffz"} {
		apply(t, r, key, set("f", "q", 1000, "v"))
	}
	drop := func(prefix, want string) {
		t.Helper()
		if err := r.admin.DropRowRange(r.ctx, tableID, prefix); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rowKeys(dump(t, r, bigtable.InfiniteRange(""))), " "); got != want {
			t.Errorf("after dropping %q the rows are %q, want %q", prefix, got, want)
		}
	}
	drop("acme#", "acme acme2#1 acmf \xff\xff \xff\xffz")
	drop("\xff\xff", "acme acme2#1 acmf")
	if err := r.admin.DropAllRows(r.ctx, tableID); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != 0 {
		t.Errorf("after dropping all: %q", got)
	}
	for name, req := range map[string]*adminpb.DropRowRangeRequest{
		"unset": {Name: fullName}, "empty": {Name: fullName, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{}},
		"false": {Name: fullName, Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{}},
	} {
		if _, err := r.Engine.DropRowRange(r.ctx, req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
}

func TestSampleRowKeys(t *testing.T) {
	r := open(t, engine.Options{MemTableBytes: 256 << 10})
	err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: tableID, SplitKeys: []string{"m", "row", "z"}, ColumnFamilies: map[string]bigtable.Family{"f": {}}})
	if err != nil {
		t.Fatal(err)
	}
	tbl := r.data.Open(tableID)
	got, err := tbl.SampleRowKeys(r.ctx)
	if err != nil || !slices.Equal(got, []string{"m", "row", "z"}) {
		t.Errorf("samples are %q (%v), want the splits", got, err)
	}
	all, err := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{TableName: fullName})
	if err != nil || len(all) == 0 || len(all[len(all)-1].RowKey) != 0 {
		t.Errorf("samples %v (%v) do not end with the empty key", all, err)
	}
	view(t, r, "v", []string{"n", "row"}, map[string]bigtable.FamilySubset{"f": {}})
	got, err = r.data.OpenAuthorizedView(tableID, "v").SampleRowKeys(r.ctx)
	if err != nil || !slices.Equal(got, []string{"row", "rox"}) {
		t.Errorf("samples through a view are %q (%v), want row and the end of the view", got, err)
	}
}

func TestUnofferedMethods(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for name, err := range map[string]error{
		"CreateBackup": r.admin.CreateBackup(r.ctx, tableID, "c", "b", time.Now().Add(time.Hour)),
		"SnapshotTable": func() error {
			_, err := r.Engine.SnapshotTable(r.ctx, &adminpb.SnapshotTableRequest{})
			return err
		}(),
		"UndeleteTable": func() error {
			_, err := r.Engine.UndeleteTable(r.ctx, &adminpb.UndeleteTableRequest{})
			return err
		}(),
		"ReadChangeStream":  r.ReadChangeStream(&bigtablepb.ReadChangeStreamRequest{TableName: fullName}, nil),
		"automated backups": r.admin.UpdateTableDisableAutomatedBackupPolicy(r.ctx, tableID),
		"PrepareQuery": func() error {
			_, err := r.Engine.PrepareQuery(r.ctx, &bigtablepb.PrepareQueryRequest{})
			return err
		}(),
	} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v, want Unimplemented", name, err)
		}
	}
}
