package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestTables(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tables := func() string {
			names, err := e.admin.Tables(e.ctx)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		want(t, tables(), "", "a fresh store has tables")
		one := e.create("one", "f", "g")
		e.put(one, "r", "f:q@1=v")
		e.create("two")
		want(t, tables(), "one two", "tables are not listed")
		wantCode(t, e.admin.CreateTable(e.ctx, "one"), codes.AlreadyExists, "a table is created twice")
		want(t, e.all(one), "r f:q@1=v", "a second creation touched the rows")
		info, err := e.admin.TableInfo(e.ctx, "one")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(info.Families)
		want(t, fmt.Sprint(info.Families), "[f g]", "families are not as they were created")
		if err := e.admin.DeleteTable(e.ctx, "one"); err != nil {
			t.Fatal(err)
		}
		want(t, tables(), "two", "a deleted table is listed")
		_, err = e.admin.TableInfo(e.ctx, "one")
		wantCode(t, err, codes.NotFound, "a deleted table is found")
		wantCode(t, e.admin.DeleteTable(e.ctx, "one"), codes.NotFound, "a table is deleted twice")
		again := e.create("one", "f")
		want(t, e.all(again), "", "rows of a deleted table come back with its name")
		e.put(again, "r", "f:q@2=new")
		want(t, e.all(again), "r f:q@2=new", "a table that has the name of an old one does not work")
	})
}

func TestTableNames(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultAdminChecks)
		for _, id := range []string{"", "a/b", strings.Repeat("x", 51), "-a", "ä", "a b"} {
			_, err := e.tables.CreateTable(e.ctx, &adminpb.CreateTableRequest{Parent: instanceName, TableId: id, Table: &adminpb.Table{}})
			wantCode(t, err, codes.InvalidArgument, fmt.Sprintf("a table may be named %q", id))
		}
		for _, family := range []string{"", "a b", "a:b", strings.Repeat("x", 65)} {
			_, err := e.tables.CreateTable(e.ctx, &adminpb.CreateTableRequest{
				Parent: instanceName, TableId: "t",
				Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{family: {}}},
			})
			wantCode(t, err, codes.InvalidArgument, fmt.Sprintf("a family may be named %q", family))
		}
		_, err := e.tables.CreateTable(e.ctx, &adminpb.CreateTableRequest{Parent: "p/i", TableId: "t"})
		wantCode(t, err, codes.InvalidArgument, "a table may be outside of an instance")
	})
}

// Tables with similar names, and tables of different instances, are separate.
func TestTablesDoNotMix(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		var tables []*bigtable.Table
		for _, id := range []string{"t", "t1", "t10", "tt", "T"} {
			tbl := e.create(id, "f")
			e.put(tbl, "r", "f:q@1="+id)
			tables = append(tables, tbl)
		}
		if err := e.admin.DropAllRows(e.ctx, "t1"); err != nil {
			t.Fatal(err)
		}
		if err := e.admin.DeleteTable(e.ctx, "tt"); err != nil {
			t.Fatal(err)
		}
		for i, wanted := range []string{"r f:q@1=t", "", "r f:q@1=t10"} {
			want(t, e.all(tables[i]), wanted, "dropping rows of one table changes another")
		}
		want(t, e.all(tables[4]), "r f:q@1=T", "deleting one table changes another")
		_, err := e.tables.CreateTable(e.ctx, &adminpb.CreateTableRequest{Parent: "projects/p/instances/other", TableId: "t", Table: &adminpb.Table{}})
		if err != nil {
			t.Errorf("creating a table of the same name in another instance: got %v, want nil", err)
		}
	})
}

func TestFamilies(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a", "b")
		e.put(tbl, "r", "a:q@1=x", "b:q@1=y")
		e.put(tbl, "s", "a:q@1=x")
		wantCode(t, e.admin.CreateColumnFamily(e.ctx, "t", "a"), codes.AlreadyExists, "a family is created twice")
		wantCode(t, e.admin.CreateColumnFamily(e.ctx, "none", "a"), codes.NotFound, "an unknown table gets a family")
		if err := e.admin.DeleteColumnFamily(e.ctx, "t", "a"); err != nil {
			t.Fatal(err)
		}
		want(t, e.all(tbl), "r b:q@1=y", "cells of a deleted family are read")
		if err := tbl.Apply(e.ctx, "r", set("a:q@1=x")); err == nil {
			t.Error("a write to a deleted family is accepted")
		}
		if err := e.admin.CreateColumnFamily(e.ctx, "t", "a"); err != nil {
			t.Fatal(err)
		}
		want(t, e.all(tbl), "r b:q@1=y", "cells of a deleted family come back with its name")
		e.put(tbl, "r", "a:p@1=new")
		want(t, e.all(tbl), "r a:p@1=new b:q@1=y", "a family that has the name of an old one does not work")
	})
}

func TestFamiliesAreModifiedAllOrNone(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultAdminChecks)
		e.create("t", "a")
		type mod = adminpb.ModifyColumnFamiliesRequest_Modification
		_, err := e.tables.ModifyColumnFamilies(e.ctx, &adminpb.ModifyColumnFamiliesRequest{Name: tableName("t"), Modifications: []*mod{
			{Id: "b", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: &adminpb.ColumnFamily{}}},
			{Id: "a", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
			{Id: "none", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
		}})
		wantCode(t, err, codes.NotFound, "a missing family is dropped")
		info, err := e.admin.TableInfo(e.ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		want(t, fmt.Sprint(info.Families), "[a]", "a refused request was applied in part")
		_, err = e.tables.ModifyColumnFamilies(e.ctx, &adminpb.ModifyColumnFamiliesRequest{Name: tableName("t"), Modifications: []*mod{
			{Id: "a", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
			{Id: "a", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: &adminpb.ColumnFamily{}}},
		}})
		if err != nil {
			t.Errorf("modifications are not applied in order: %v", err)
		}
	})
}

func TestRulesOfFamilies(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultTables)
		policy := bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(3), bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(time.Hour), bigtable.MaxVersionsPolicy(1)))
		if err := e.admin.CreateTableFromConf(e.ctx, &bigtable.TableConf{TableID: "t", ColumnFamilies: map[string]bigtable.Family{
			"f": {GCPolicy: policy}, "sum": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}},
		}}); err != nil {
			t.Fatal(err)
		}
		show := func() string {
			info, err := e.admin.TableInfo(e.ctx, "t")
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, f := range info.FamilyInfos {
				_, aggregate := f.ValueType.(bigtable.AggregateType)
				out = append(out, fmt.Sprintf("%s %s %v", f.Name, f.GCPolicy, aggregate))
			}
			slices.Sort(out)
			return strings.Join(out, "; ")
		}
		want(t, show(), "f (versions() > 3 || (age() > 1h && versions() > 1)) false; sum <never> true", "a table is not what it was created as")
		if err := e.admin.SetGCPolicy(e.ctx, "t", "f", bigtable.MaxAgePolicy(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		want(t, show(), "f age() > 2h false; sum <never> true", "a rule is not what it was set to")
		if err := e.admin.SetGCPolicy(e.ctx, "t", "f", bigtable.NoGcPolicy()); err != nil {
			t.Fatal(err)
		}
		want(t, show(), "f <never> false; sum <never> true", "a removed rule is still there")
		wantCode(t, e.admin.SetGCPolicy(e.ctx, "t", "none", bigtable.MaxVersionsPolicy(1)), codes.NotFound, "a rule is set for an unknown family")
		for name, rule := range map[string]*adminpb.GcRule{
			"no versions":  {Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: 0}},
			"negative age": {Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(-time.Second)}},
			"too long":     longRule(),
		} {
			_, err := e.tables.ModifyColumnFamilies(e.ctx, &adminpb.ModifyColumnFamiliesRequest{
				Name: tableName("t"),
				Modifications: []*adminpb.ModifyColumnFamiliesRequest_Modification{{
					Id:  "f",
					Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Update{Update: &adminpb.ColumnFamily{GcRule: rule}},
				}},
			})
			wantCode(t, err, codes.InvalidArgument, name+": an invalid rule is accepted")
		}
	})
}

// longRule has more than 500 bytes.
func longRule() *adminpb.GcRule {
	u := &adminpb.GcRule_Union{}
	for range 120 {
		u.Rules = append(u.Rules, &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(time.Hour)}})
	}
	return &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: u}}
}

// Neither a protected table nor its families can be deleted until the protection ends.
func TestDeletionProtection(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		if err := e.admin.CreateTableFromConf(e.ctx, &bigtable.TableConf{
			TableID:        "t",
			ColumnFamilies: map[string]bigtable.Family{"f": {}}, DeletionProtection: bigtable.Protected,
		}); err != nil {
			t.Fatal(err)
		}
		info, err := e.admin.TableInfo(e.ctx, "t")
		if err != nil || info.DeletionProtection != bigtable.Protected {
			t.Errorf("protection requested at creation: got %v, %v", info, err)
		}
		wantCode(t, e.admin.DeleteTable(e.ctx, "t"), codes.FailedPrecondition, "a protected table is deleted")
		wantCode(t, e.admin.DeleteColumnFamily(e.ctx, "t", "f"), codes.FailedPrecondition, "a protected table's family is deleted")
		if err := e.admin.UpdateTableWithDeletionProtection(e.ctx, "t", bigtable.Unprotected); err != nil {
			t.Fatal(err)
		}
		if err := e.admin.DeleteColumnFamily(e.ctx, "t", "f"); err != nil {
			t.Error(err)
		}
		if err := e.admin.DeleteTable(e.ctx, "t"); err != nil {
			t.Error(err)
		}
	})
}

func TestDropRowRange(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "f")
		keys := []string{"a", "a#1", "a#2", "a$", "b#\xff", "b#\xff\x01", "b\xff\xff", "b\xff\xff\xff", "c"}
		for _, k := range keys {
			e.put(tbl, k, "f:q@1=v")
		}
		left := func(gone string) string {
			return strings.Join(slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return strings.HasPrefix(k, gone) }), "")
		}
		for _, prefix := range []string{"a#", "b\xff\xff", "b#\xff", "zz"} {
			if err := e.admin.DropRowRange(e.ctx, "t", prefix); err != nil {
				t.Fatal(err)
			}
			want(t, e.keys(tbl, bigtable.InfiniteRange("")), left(prefix), fmt.Sprintf("dropping %q drops other rows, or not all", prefix))
			keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, prefix) })
		}
		e.put(tbl, "a#1", "f:q@2=new")
		want(t, e.scan(tbl, bigtable.SingleRow("a#1")), "a#1 f:q@2=new", "a row written after a drop is not there")
		if err := e.admin.DropAllRows(e.ctx, "t"); err != nil {
			t.Fatal(err)
		}
		want(t, e.all(tbl), "", "rows are left after all were dropped")
		wantCode(t, e.admin.DropAllRows(e.ctx, "none"), codes.NotFound, "rows of an unknown table are dropped")
	})
}

func TestConsistencyTokens(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.create("t", "f")
		if err := e.admin.WaitForReplication(e.ctx, "t"); err != nil {
			t.Errorf("waiting for replication: %v", err)
		}
		_, err := e.tables.GenerateConsistencyToken(e.ctx, &adminpb.GenerateConsistencyTokenRequest{Name: tableName("none")})
		wantCode(t, err, codes.NotFound, "a token for an unknown table")
		_, err = e.tables.CheckConsistency(e.ctx, &adminpb.CheckConsistencyRequest{Name: tableName("t"), ConsistencyToken: "made up"})
		if err == nil {
			t.Error("an invented token is accepted")
		}
	})
}

// Many tables are listed in pages.
func TestTablePages(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultTables)
		for i := range 7 {
			e.create(fmt.Sprintf("t%d", i))
		}
		var got []string
		token := ""
		for range 10 {
			resp, err := e.tables.ListTables(e.ctx, &adminpb.ListTablesRequest{Parent: instanceName, PageSize: 3, PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Tables) > 3 {
				t.Errorf("got a page of %d tables, want at most 3", len(resp.Tables))
			}
			for _, m := range resp.Tables {
				got = append(got, strings.TrimPrefix(m.Name, tableName("")))
			}
			if token = resp.NextPageToken; token == "" {
				break
			}
		}
		want(t, strings.Join(got, " "), "t0 t1 t2 t3 t4 t5 t6", "paging loses or repeats tables")
	})
}
