package conformance

import (
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

func TestMutations(t *testing.T) {
	mutation := func(f func(m *bigtable.Mutation)) *bigtable.Mutation {
		m := bigtable.NewMutation()
		f(m)
		return m
	}
	const before = "r a:p@3=x a:p@2=y a:p@1=z a:q@1=v b:p@1=w"
	for _, tt := range []struct {
		name string
		m    *bigtable.Mutation
		want string
	}{
		{"a new cell", set("a:p@4=n"), "r a:p@4=n a:p@3=x a:p@2=y a:p@1=z a:q@1=v b:p@1=w"},
		{"a cell in between", set("b:p@0=n"), "r a:p@3=x a:p@2=y a:p@1=z a:q@1=v b:p@1=w b:p@0=n"},
		{"a cell written again is replaced", set("a:p@2=n"), "r a:p@3=x a:p@2=n a:p@1=z a:q@1=v b:p@1=w"},
		{"an empty value is a cell", set("a:q@1="), "r a:p@3=x a:p@2=y a:p@1=z a:q@1= b:p@1=w"},
		{"an empty qualifier is a column", set("a:@1=e"), "r a:@1=e a:p@3=x a:p@2=y a:p@1=z a:q@1=v b:p@1=w"},
		{"two values of one cell: the last wins", set("a:q@1=n", "a:q@1=m"), "r a:p@3=x a:p@2=y a:p@1=z a:q@1=m b:p@1=w"},
		{"delete a column", mutation(func(m *bigtable.Mutation) { m.DeleteCellsInColumn("a", "p") }), "r a:q@1=v b:p@1=w"},
		{"delete a missing column", mutation(func(m *bigtable.Mutation) { m.DeleteCellsInColumn("a", "none") }), before},
		{
			"delete a time range", mutation(func(m *bigtable.Mutation) { m.DeleteTimestampRange("a", "p", ms(2), ms(3)) }),
			"r a:p@3=x a:p@1=z a:q@1=v b:p@1=w",
		},
		{
			"delete from a time on", mutation(func(m *bigtable.Mutation) { m.DeleteTimestampRange("a", "p", ms(2), 0) }),
			"r a:p@1=z a:q@1=v b:p@1=w",
		},
		{
			"delete up to a time", mutation(func(m *bigtable.Mutation) { m.DeleteTimestampRange("a", "p", 0, ms(3)) }),
			"r a:p@3=x a:q@1=v b:p@1=w",
		},
		{"delete a family", mutation(func(m *bigtable.Mutation) { m.DeleteCellsInFamily("a") }), "r b:p@1=w"},
		{"delete the row", mutation((*bigtable.Mutation).DeleteRow), ""},
		{"delete and set, in order", mutation(func(m *bigtable.Mutation) {
			m.Set("a", "p", ms(9), []byte("gone"))
			m.DeleteRow()
			m.Set("a", "p", ms(1), []byte("here"))
		}), "r a:p@1=here"},
		{"set and delete a column, in order", mutation(func(m *bigtable.Mutation) {
			m.DeleteCellsInFamily("a")
			m.Set("a", "p", ms(9), []byte("gone"))
			m.Set("a", "q", ms(9), []byte("here"))
			m.DeleteCellsInColumn("a", "p")
		}), "r a:q@9=here b:p@1=w"},
		{"delete a range that was just set", mutation(func(m *bigtable.Mutation) {
			m.Set("a", "p", ms(5), []byte("gone"))
			m.Set("a", "p", ms(6), []byte("here"))
			m.DeleteTimestampRange("a", "p", ms(2), ms(6))
		}), "r a:p@6=here a:p@1=z a:q@1=v b:p@1=w"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				tbl := e.create("t", "a", "b")
				e.put(tbl, "r", "a:p@3=x", "a:p@2=y", "a:p@1=z", "a:q@1=v", "b:p@1=w")
				e.put(tbl, "s", "a:p@1=other")
				e.apply(tbl, "r", tt.m)
				want(t, e.scan(tbl, bigtable.SingleRow("r")), tt.want, "the row is not what was written")
				want(t, e.scan(tbl, bigtable.SingleRow("s")), "s a:p@1=other", "a write changed another row")
			})
		})
	}
}

// A request with one invalid mutation applies nothing: readers must never see half a row.
func TestFailedMutationAppliesNothing(t *testing.T) {
	for name, bad := range map[string]*bigtablepb.Mutation{
		"unknown family":    setCell("none", "q", 1000, "v"),
		"fine timestamp":    setCell("a", "q", 1, "v"),
		"negative time":     setCell("a", "q", -7, "v"),
		"long qualifier":    setCell("a", strings.Repeat("q", 16<<10+1), 1000, "v"),
		"no mutation":       {},
		"empty set":         {Mutation: &bigtablepb.Mutation_SetCell_{}},
		"reversed deletion": deleteRange("a", "p", 3000, 2000),
		"unknown deletion":  {Mutation: &bigtablepb.Mutation_DeleteFromFamily_{DeleteFromFamily: &bigtablepb.Mutation_DeleteFromFamily{FamilyName: "none"}}},
		"sum on bytes":      addToCell("a", "p", 1000, 1),
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.needs(faultAtomicity)
				tbl := e.create("t", "a")
				e.put(tbl, "r", "a:p@1=old")
				muts := []*bigtablepb.Mutation{
					{Mutation: &bigtablepb.Mutation_DeleteFromRow_{DeleteFromRow: &bigtablepb.Mutation_DeleteFromRow{}}},
					setCell("a", "new", 1000, "v"), bad, setCell("a", "newer", 1000, "v"),
				}
				for _, row := range []string{"r", "fresh"} {
					_, err := e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{
						TableName: tableName("t"), RowKey: []byte(row), Mutations: muts,
					})
					if err == nil {
						t.Errorf("invalid mutation of row %q: got nil, want an error", row)
					}
				}
				_, err := e.data.CheckAndMutateRow(e.ctx, &bigtablepb.CheckAndMutateRowRequest{
					TableName: tableName("t"), RowKey: []byte("r"), TrueMutations: muts,
				})
				if err == nil {
					t.Error("invalid conditional mutation: got nil, want an error")
				}
				want(t, e.all(tbl), "r a:p@1=old", "a refused mutation was stored in part")
			})
		})
	}
}

func TestRefusedWritesHaveCodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  string
		m    []*bigtablepb.Mutation
		want codes.Code
	}{
		{"no mutations", "r", nil, codes.InvalidArgument},
		{"empty row key", "", []*bigtablepb.Mutation{setCell("a", "q", 0, "")}, codes.InvalidArgument},
		{"unknown family", "r", []*bigtablepb.Mutation{setCell("x", "q", 0, "")}, codes.NotFound},
		{"delete in an unknown family", "r", []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{
			DeleteFromColumn: &bigtablepb.Mutation_DeleteFromColumn{FamilyName: "x"},
		}}}, codes.NotFound},
		{"fine timestamp", "r", []*bigtablepb.Mutation{setCell("a", "q", 1001, "")}, codes.InvalidArgument},
		{"negative timestamp", "r", []*bigtablepb.Mutation{setCell("a", "q", -1000, "")}, codes.InvalidArgument},
		{"unset mutation", "r", []*bigtablepb.Mutation{{}}, codes.InvalidArgument},
		{"reversed deletion", "r", []*bigtablepb.Mutation{deleteRange("a", "q", 2000, 1000)}, codes.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.needs(faultCodes)
				e.create("t", "a")
				_, err := e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{
					TableName: tableName("t"), RowKey: []byte(tt.row), Mutations: tt.m,
				})
				wantCode(t, err, tt.want, "wrong status code")
			})
		})
	}
}

func setCell(fam, q string, micros int64, v string) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{
		FamilyName: fam, ColumnQualifier: []byte(q), TimestampMicros: micros, Value: []byte(v),
	}}}
}

func deleteRange(fam, q string, start, end int64) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{DeleteFromColumn: &bigtablepb.Mutation_DeleteFromColumn{
		FamilyName: fam, ColumnQualifier: []byte(q),
		TimeRange: &bigtablepb.TimestampRange{StartTimestampMicros: start, EndTimestampMicros: end},
	}}}
}

func addToCell(fam, q string, micros, n int64) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_AddToCell_{AddToCell: &bigtablepb.Mutation_AddToCell{
		FamilyName: fam, ColumnQualifier: rawValue(q), Timestamp: rawTime(micros),
		Input: &bigtablepb.Value{Kind: &bigtablepb.Value_IntValue{IntValue: n}},
	}}}
}

func mergeToCell(fam, q string, micros int64, raw string) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_MergeToCell_{MergeToCell: &bigtablepb.Mutation_MergeToCell{
		FamilyName: fam, ColumnQualifier: rawValue(q), Timestamp: rawTime(micros), Input: rawValue(raw),
	}}}
}

func rawValue(s string) *bigtablepb.Value {
	return &bigtablepb.Value{Kind: &bigtablepb.Value_RawValue{RawValue: []byte(s)}}
}

func rawTime(micros int64) *bigtablepb.Value {
	return &bigtablepb.Value{Kind: &bigtablepb.Value_RawTimestampMicros{RawTimestampMicros: micros}}
}
