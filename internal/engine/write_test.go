package engine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

func be(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func setCell(family, column string, micros int64, value string) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(column), TimestampMicros: micros, Value: []byte(value),
	}}}
}

func addCell(family, column string, micros, n int64) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_AddToCell_{AddToCell: &bigtablepb.Mutation_AddToCell{
		FamilyName:      family,
		ColumnQualifier: &bigtablepb.Value{Kind: &bigtablepb.Value_RawValue{RawValue: []byte(column)}},
		Timestamp:       &bigtablepb.Value{Kind: &bigtablepb.Value_RawTimestampMicros{RawTimestampMicros: micros}},
		Input:           &bigtablepb.Value{Kind: &bigtablepb.Value_IntValue{IntValue: n}},
	}}}
}

func mergeCell(family, column string, micros int64, raw string) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_MergeToCell_{MergeToCell: &bigtablepb.Mutation_MergeToCell{
		FamilyName:      family,
		ColumnQualifier: &bigtablepb.Value{Kind: &bigtablepb.Value_RawValue{RawValue: []byte(column)}},
		Timestamp:       &bigtablepb.Value{Kind: &bigtablepb.Value_RawTimestampMicros{RawTimestampMicros: micros}},
		Input:           &bigtablepb.Value{Kind: &bigtablepb.Value_RawValue{RawValue: []byte(raw)}},
	}}}
}

func deleteColumn(family, column string, start, end int64) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{
		DeleteFromColumn: &bigtablepb.Mutation_DeleteFromColumn{
			FamilyName: family, ColumnQualifier: []byte(column),
			TimeRange: &bigtablepb.TimestampRange{StartTimestampMicros: start, EndTimestampMicros: end},
		},
	}}
}

func (r *rig) mutate(row string, muts ...*bigtablepb.Mutation) error {
	_, err := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte(row), Mutations: muts})
	return err
}

// Each invalid mutation is refused with the service's code, and valid mutations of the same request are not applied.
func TestMutationRefusals(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	long := strings.Repeat("x", 20<<10)
	for _, tt := range []struct {
		name string
		row  string
		mut  *bigtablepb.Mutation
		want codes.Code
	}{
		{"empty row key", "", setCell("f", "q", 0, "v"), codes.InvalidArgument},
		{"long row key", long, setCell("f", "q", 0, "v"), codes.InvalidArgument},
		{"long qualifier", "r", setCell("f", long, 0, "v"), codes.InvalidArgument},
		{"large cell", "r", setCell("f", "q", 0, strings.Repeat("x", 100<<20+1)), codes.InvalidArgument},
		{"unknown family", "r", setCell("nope", "q", 0, "v"), codes.NotFound},
		{"fine timestamp", "r", setCell("f", "q", 1, "v"), codes.InvalidArgument},
		{"negative timestamp", "r", setCell("f", "q", -1000, "v"), codes.InvalidArgument},
		{"timestamp beyond the granularity", "r", setCell("f", "q", math.MaxInt64, "v"), codes.InvalidArgument},
		{"set in an aggregate", "r", setCell("sum", "q", 0, be(1)), codes.InvalidArgument},
		{"add to plain", "r", addCell("f", "q", 0, 1), codes.InvalidArgument},
		{"add to unknown", "r", addCell("nope", "q", 0, 1), codes.NotFound},
		{"add with server time", "r", addCell("sum", "q", -1, 1), codes.InvalidArgument},
		{"add at a fine timestamp", "r", addCell("sum", "q", 1, 1), codes.InvalidArgument},
		{"merge short state", "r", mergeCell("sum", "q", 0, "1"), codes.InvalidArgument},
		{"delete unknown family", "r", deleteColumn("nope", "q", 0, 0), codes.NotFound},
		{"delete inverted", "r", deleteColumn("f", "q", 2000, 1000), codes.InvalidArgument},
		{"delete empty range", "r", deleteColumn("f", "q", 1000, 1000), codes.InvalidArgument},
		{"delete fine range", "r", deleteColumn("f", "q", 1, 0), codes.InvalidArgument},
		{"nothing", "r", &bigtablepb.Mutation{}, codes.InvalidArgument},
		{"nil", "r", nil, codes.InvalidArgument},
		{"set of nil", "r", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_SetCell_{}}, codes.NotFound},
		{"add of nil", "r", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_AddToCell_{}}, codes.NotFound},
		{"add without values", "r", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_AddToCell_{
			AddToCell: &bigtablepb.Mutation_AddToCell{FamilyName: "sum"},
		}}, codes.InvalidArgument},
		{"delete of nil", "r", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{}}, codes.NotFound},
		{"delete family of nil", "r", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{}}, codes.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.mutate(tt.row, setCell("f", "before", 0, "v"), tt.mut, setCell("f", "after", 0, "v"))
			if got := status.Code(err); got != tt.want {
				t.Errorf("answered %v (%v), want %v", got, err, tt.want)
			}
			resp, err := r.MutateRowsAll(r.ctx, &bigtablepb.MutateRowsRequest{TableName: fullName, Entries: []*bigtablepb.MutateRowsRequest_Entry{
				{RowKey: []byte(tt.row), Mutations: []*bigtablepb.Mutation{setCell("f", "before", 0, "v"), tt.mut}},
			}})
			if err != nil {
				t.Fatalf("in bulk: %v", err)
			}
			if got := codes.Code(resp.Entries[0].Status.Code); got != tt.want {
				t.Errorf("in bulk: got %v, want %v", got, tt.want)
			}
			if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != 0 {
				t.Errorf("after the refused request, the table holds %.100q, want nothing", got)
			}
		})
	}
}

func TestRequestRefusals(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	many := make([]*bigtablepb.Mutation, 100_001)
	for i := range many {
		many[i] = setCell("f", "q", 0, "v")
	}
	if got := status.Code(r.mutate("r", many...)); got != codes.InvalidArgument {
		t.Errorf("100,001 mutations: got %v, want InvalidArgument", got)
	}
	if got := status.Code(r.mutate("r")); got != codes.InvalidArgument {
		t.Errorf("no mutations: got %v, want InvalidArgument", got)
	}
	if err := r.mutate("r", many[1:]...); err != nil {
		t.Errorf("100,000 mutations: %v", err)
	}
	for name, req := range map[string]*bigtablepb.MutateRowsRequest{
		"no entries": {TableName: fullName}, "nil entries": {TableName: fullName, Entries: []*bigtablepb.MutateRowsRequest_Entry{nil}},
		"too many": {TableName: fullName, Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: []byte("a"), Mutations: many[:50_000]}, {RowKey: []byte("b"), Mutations: many[:50_001]}}},
	} {
		if _, err := r.MutateRowsAll(r.ctx, req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("bulk, %s: %v, want InvalidArgument", name, err)
		}
	}
	if _, err := r.MutateRowsAll(r.ctx, nil); status.Code(err) != codes.NotFound {
		t.Errorf("nil request: %v, want NotFound", err)
	}
}

// An invalid entry does not affect other entries, and entries of one row are applied in order.
func TestBulkEntriesAreSeparate(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	del := bigtable.NewMutation()
	del.DeleteRow()
	add := func(n int64) *bigtable.Mutation {
		m := bigtable.NewMutation()
		m.AddIntToCell("sum", "n", 1000, n)
		return m
	}
	keys := []string{"a", "b", "a", "a", "c", "s", "s", "d", "d"}
	muts := []*bigtable.Mutation{
		set("f", "q", 1000, "1"), set("nope", "q", 1000, "x"), del, set("f", "q", 2000, "2"), set("sum", "q", 0, "x"), add(5), add(7),
		set("f", "q", 1000, "gone"), del,
	}
	errs, err := tbl.ApplyBulk(r.ctx, keys, muts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []codes.Code{0, codes.NotFound, 0, 0, codes.InvalidArgument, 0, 0, 0, 0} {
		if got := status.Code(errs[i]); got != want {
			t.Errorf("entry %d: got %v, want %v", i, got, want)
		}
	}
	want := []string{"a f:q@2000=2", "s sum:n@1000=" + be(12)}
	if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestAggregates(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for _, n := range []int64{5, -3, 9, 0} {
		for _, family := range []string{"sum", "min", "max"} {
			if err := r.mutate("r", addCell(family, "n", 1000, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.mutate("r", mergeCell("sum", "n", 1000, be(100)), mergeCell("max", "n", 1000, be(100)), addCell("sum", "n", 2000, 1)); err != nil {
		t.Fatal(err)
	}
	want := []string{"r max:n@1000=" + be(100), "r min:n@1000=" + be(-3), "r sum:n@2000=" + be(1), "r sum:n@1000=" + be(111)}
	if got := dump(t, r, bigtable.SingleRow("r")); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	null := mergeCell("min", "n", 1000, "")
	null.GetMergeToCell().Input = &bigtablepb.Value{}
	if err := errors.Join(r.mutate("r", null), r.mutate("none", null)); err != nil {
		t.Errorf("merging NULL: got %v, want nil", err)
	}
	if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
		t.Errorf("after merging NULL: %q, want %q", got, want)
	}
	// In one request, a deletion deletes only the cells before it.
	if err := r.mutate("r", addCell("sum", "n", 1000, 1), deleteColumn("sum", "n", 0, 0), addCell("sum", "n", 1000, 2), addCell("sum", "n", 1000, 2)); err != nil {
		t.Fatal(err)
	}
	got := dump(t, r, bigtable.SingleRow("r"), bigtable.RowFilter(bigtable.FamilyFilter("sum")))
	if want := []string{"r sum:n@1000=" + be(4)}; !slices.Equal(got, want) {
		t.Errorf("after delete and add: %q, want %q", got, want)
	}
	if err := r.mutate("o", addCell("sum", "n", 0, math.MaxInt64), addCell("sum", "n", 0, 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, r, bigtable.SingleRow("o")), []string{"o sum:n@0=" + be(math.MinInt64)}; !slices.Equal(got, want) {
		t.Errorf("sum beyond int64: got %q, want it to wrap around to %q", got, want)
	}
}

func TestDeletes(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for _, wide := range []int{5, 2000} {
		t.Run(fmt.Sprint(wide), func(t *testing.T) {
			fill := func() {
				var muts []*bigtablepb.Mutation
				for i := range wide {
					muts = append(muts, setCell("f", "q", int64(i+1)*1000, "v"))
				}
				muts = append(muts, setCell("f", "r", 1000, "r"), setCell("g", "q", 1000, "g"))
				if err := r.mutate("row", muts...); err != nil {
					t.Fatal(err)
				}
				if err := r.mutate("row\x00", setCell("f", "q", 1000, "neighbour")); err != nil {
					t.Fatal(err)
				}
			}
			count := func() int { return len(dump(t, r, bigtable.SingleRow("row"))) }
			for _, tt := range []struct {
				name string
				mut  *bigtablepb.Mutation
				want int
			}{
				{"from 3 to 5", deleteColumn("f", "q", 3000, 5000), wide}, // two of wide+2
				{"from 3", deleteColumn("f", "q", 3000, 0), 4},
				{"to 3", deleteColumn("f", "q", 0, 3000), wide},
				{"column", deleteColumn("f", "q", 0, 0), 2},
				{"other column", deleteColumn("f", "r", 0, 0), wide + 1},
				{"family", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{DeleteFromFamily: &bigtablepb.Mutation_DeleteFromFamily{FamilyName: "f"}}}, 1},
				{"row", &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromRow_{}}, 0},
			} {
				fill()
				if err := r.mutate("row", tt.mut); err != nil {
					t.Fatal(err)
				}
				if got := count(); got != tt.want {
					t.Errorf("after delete %s: got %d cells, want %d", tt.name, got, tt.want)
				}
				if got := len(dump(t, r, bigtable.SingleRow("row\x00"))); got != 1 {
					t.Errorf("after delete %s: got %d cells in the next row, want 1", tt.name, got)
				}
			}
		})
	}
}

func TestCheckAndMutate(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	apply(t, r, "r", set("f", "q", 1000, "v"))
	cond := func(f bigtable.Filter, row string) bool {
		t.Helper()
		m := bigtable.NewCondMutation(f, set("f", "true", 1000, "t"), set("f", "false", 1000, "f"))
		var matched bool
		if err := tbl.Apply(r.ctx, row, m, bigtable.GetCondMutationResult(&matched)); err != nil {
			t.Fatal(err)
		}
		return matched
	}
	if !cond(bigtable.ValueFilter("v"), "r") || cond(bigtable.ValueFilter("w"), "r") || cond(bigtable.PassAllFilter(), "empty") {
		t.Error("got a wrong match, want one for value v of row r only")
	}
	want := []string{"empty f:false@1000=f", "r f:false@1000=f", "r f:q@1000=v", "r f:true@1000=t"}
	if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	// Without a predicate, any cell of the row matches.
	for row, want := range map[string]bool{"r": true, "none": false} {
		resp, err := r.CheckAndMutateRow(r.ctx, &bigtablepb.CheckAndMutateRowRequest{
			TableName: fullName, RowKey: []byte(row),
			TrueMutations: []*bigtablepb.Mutation{setCell("g", "q", 0, "")},
		})
		if err != nil || resp.PredicateMatched != want {
			t.Errorf("row %q without a predicate: got %v, %v, want %v", row, resp, err, want)
		}
	}
	for name, req := range map[string]*bigtablepb.CheckAndMutateRowRequest{
		"no mutations":   {TableName: fullName, RowKey: []byte("r")},
		"no row":         {TableName: fullName, TrueMutations: []*bigtablepb.Mutation{setCell("f", "q", 0, "")}},
		"unused invalid": {TableName: fullName, RowKey: []byte("r"), TrueMutations: []*bigtablepb.Mutation{setCell("f", "q", 0, "")}, FalseMutations: []*bigtablepb.Mutation{setCell("f", "q", 1, "")}},
	} {
		if _, err := r.CheckAndMutateRow(r.ctx, req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
}

func TestReadModifyWrite(t *testing.T) {
	now := time.UnixMicro(7_000_500)
	r := open(t, engine.Options{Clock: func() time.Time { return now }})
	tbl := r.create(t)
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment("f", "n", 5)
	rmw.Increment("f", "n", -2)
	rmw.AppendValue("g", "s", []byte("a"))
	rmw.AppendValue("g", "s", []byte("b"))
	row, err := tbl.ApplyReadModifyWrite(r.ctx, "r", rmw)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(row["f"], row["g"]), fmt.Sprintf("[{r f:n 7000000 %v []}] [{r g:s 7000000 [97 98] []}]", []byte(be(3))); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
	// The rule applies to the newest cell, even if its timestamp is in the future.
	apply(t, r, "r", set("f", "n", 9_000_000, be(100)))
	rmw = bigtable.NewReadModifyWrite()
	rmw.Increment("f", "n", 1)
	if _, err := tbl.ApplyReadModifyWrite(r.ctx, "r", rmw); err != nil {
		t.Fatal(err)
	}
	want := []string{"r f:n@9000000=" + be(101), "r f:n@7000000=" + be(3), "r g:s@7000000=ab"}
	if got := dump(t, r, bigtable.SingleRow("r")); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	rule := func(f, q string, n int64) *bigtablepb.ReadModifyWriteRule {
		return &bigtablepb.ReadModifyWriteRule{FamilyName: f, ColumnQualifier: []byte(q), Rule: &bigtablepb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: n}}
	}
	for _, tt := range []struct {
		name  string
		rules []*bigtablepb.ReadModifyWriteRule
		want  codes.Code
	}{
		{"none", nil, codes.InvalidArgument},
		{"nil", []*bigtablepb.ReadModifyWriteRule{nil}, codes.NotFound},
		{"unset", []*bigtablepb.ReadModifyWriteRule{{FamilyName: "f"}}, codes.InvalidArgument},
		{"unknown family", []*bigtablepb.ReadModifyWriteRule{rule("x", "q", 1)}, codes.NotFound},
		{"aggregate", []*bigtablepb.ReadModifyWriteRule{rule("sum", "q", 1)}, codes.InvalidArgument},
		{"not a number, after a valid rule", []*bigtablepb.ReadModifyWriteRule{rule("f", "n", 1), rule("g", "s", 1)}, codes.FailedPrecondition},
	} {
		_, err := r.ReadModifyWriteRow(r.ctx, &bigtablepb.ReadModifyWriteRowRequest{TableName: fullName, RowKey: []byte("r"), Rules: tt.rules})
		if status.Code(err) != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if got := dump(t, r, bigtable.SingleRow("r")); !slices.Equal(got, want) {
		t.Errorf("after refusals: %q, want %q", got, want)
	}
}

func TestServerTime(t *testing.T) {
	r := open(t, engine.Options{Clock: func() time.Time { return time.UnixMicro(1_234_567) }})
	r.create(t)
	auto := setCell("f", "auto", 7_654, "v")
	auto.TimestampOrigin = bigtablepb.Mutation_CLIENT_AUTO_GENERATED
	if err := r.mutate("r", setCell("f", "server", -1, "v"), auto); err != nil {
		t.Fatal(err)
	}
	want := []string{"r f:auto@7000=v", "r f:server@1234000=v"}
	if got := dump(t, r, bigtable.SingleRow("r")); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// Concurrent writes that read before they write lose no update, alone or in bulk.
func TestConcurrentWritesToOneRow(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				m := bigtable.NewMutation()
				m.AddIntToCell("sum", "n", 0, 1)
				if w%2 == 0 {
					if err := tbl.Apply(r.ctx, "r", m); err != nil {
						t.Error(err)
					}
				} else if errs, err := tbl.ApplyBulk(r.ctx, []string{"r", fmt.Sprint(w, i)}, []*bigtable.Mutation{m, set("f", "q", 0, "v")}); err != nil || errs != nil {
					t.Error(err, errs)
				}
				rmw := bigtable.NewReadModifyWrite()
				rmw.Increment("f", "n", 1)
				if _, err := tbl.ApplyReadModifyWrite(r.ctx, "r", rmw); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	row, err := tbl.ReadRow(r.ctx, "r", bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"sum", "f"} {
		if got := binary.BigEndian.Uint64(row[family][0].Value); got != writers*each {
			t.Errorf("%s: got %d after %d additions of 1", family, got, writers*each)
		}
	}
}

// The engine neither keeps nor changes a request: it belongs to the caller.
func TestRequestsAreNotKept(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	req := &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte("row"), Mutations: []*bigtablepb.Mutation{setCell("f", "q", 1000, "value")}}
	if _, err := r.MutateRow(r.ctx, req); err != nil {
		t.Fatal(err)
	}
	c := req.Mutations[0].GetSetCell()
	copy(req.RowKey, "xxx")
	copy(c.ColumnQualifier, "x")
	copy(c.Value, "xxxxx")
	if got, want := dump(t, r, bigtable.InfiniteRange("")), []string{"row f:q@1000=value"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// A request larger than one Pebble batch is applied in several batches and answered once.
func TestLargeBulk(t *testing.T) {
	testkit.Plain(t)
	r := open(t, engine.Options{})
	tbl := r.create(t)
	var keys []string
	var muts []*bigtable.Mutation
	for i := range 6 {
		keys = append(keys, fmt.Sprint("row", i))
		muts = append(muts, set("f", "q", 1000, strings.Repeat(fmt.Sprint(i), 12<<20)))
	}
	if errs, err := tbl.ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
		t.Fatal(err, errs)
	}
	for i, key := range keys {
		row, err := tbl.ReadRow(r.ctx, key)
		if err != nil || len(row["f"]) != 1 || len(row["f"][0].Value) != 12<<20 || row["f"][0].Value[0] != byte('0'+i) {
			t.Errorf("row %d: got another value than was written (%v)", i, err)
		}
	}
}
