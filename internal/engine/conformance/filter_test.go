package conformance

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

func TestFilters(t *testing.T) {
	at := func(n int64) time.Time { return time.UnixMilli(n) }
	for _, tt := range []struct {
		name   string
		filter bigtable.Filter
		want   string
		needs  []fault
	}{
		{"pass", bigtable.PassAllFilter(), "r a:p@3=x a:p@2=y a:q@1=z b:p@2=xx b:s@1=; s a:p@1=other", nil},
		{"block", bigtable.BlockAllFilter(), "", nil},
		{"row key", bigtable.RowKeyFilter("[r-t]"), "r a:p@3=x a:p@2=y a:q@1=z b:p@2=xx b:s@1=; s a:p@1=other", nil},
		{"row key of another row", bigtable.RowKeyFilter("s.*"), "s a:p@1=other", nil},
		{"family", bigtable.FamilyFilter("b"), "r b:p@2=xx b:s@1=", nil},
		{"qualifier", bigtable.ColumnFilter("q|s"), "r a:q@1=z b:s@1=", nil},
		{"value", bigtable.ValueFilter("x+"), "r a:p@3=x b:p@2=xx", nil},
		{"latest", bigtable.LatestNFilter(1), "r a:p@3=x a:q@1=z b:p@2=xx b:s@1=; s a:p@1=other", nil},
		{"times", bigtable.TimestampRangeFilter(at(2), at(3)), "r a:p@2=y b:p@2=xx", nil},
		{"times without an end", bigtable.TimestampRangeFilter(at(3), time.Time{}), "r a:p@3=x", nil},
		{"columns", bigtable.ColumnRangeFilter("a", "p", "q"), "r a:p@3=x a:p@2=y; s a:p@1=other", nil},
		{"columns without an end", bigtable.ColumnRangeFilter("b", "q", ""), "r b:s@1=", nil},
		{"values", bigtable.ValueRangeFilter([]byte("x"), []byte("y")), "r a:p@3=x b:p@2=xx", nil},
		{"values without an end", bigtable.ValueRangeFilter([]byte("y"), nil), "r a:p@2=y a:q@1=z", nil},
		{"first cells", bigtable.CellsPerRowLimitFilter(4), "r a:p@3=x a:p@2=y a:q@1=z b:p@2=xx; s a:p@1=other", []fault{faultRowCells}},
		{"all but the first cells", bigtable.CellsPerRowOffsetFilter(2), "r a:q@1=z b:p@2=xx b:s@1=", []fault{faultRowCells}},
		{"strip", bigtable.ChainFilters(bigtable.FamilyFilter("b"), bigtable.StripValueFilter()), "r b:p@2= b:s@1=", nil},
		{"label", bigtable.ChainFilters(bigtable.ColumnFilter("q"), bigtable.LabelFilter("l-1")), "r a:q@1=z/l-1", nil},
		{"latest in a range", bigtable.ChainFilters(bigtable.TimestampRangeFilter(at(0), at(3)), bigtable.ColumnFilter("p"),
			bigtable.LatestNFilter(1)), "r a:p@2=y b:p@2=xx; s a:p@1=other", nil},
		{"a range of the latest", bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.TimestampRangeFilter(at(0), at(3)),
			bigtable.ColumnFilter("p")), "r b:p@2=xx; s a:p@1=other", nil},
		{
			"interleave", bigtable.InterleaveFilters(bigtable.ValueFilter("x"), bigtable.FamilyFilter("a")),
			"r a:p@3=x a:p@3=x a:p@2=y a:q@1=z; s a:p@1=other", nil,
		},
		{
			"a row through neither part", bigtable.InterleaveFilters(bigtable.ValueFilter("none"), bigtable.FamilyFilter("b")),
			"r b:p@2=xx b:s@1=", nil,
		},
		{
			"condition", bigtable.ConditionFilter(bigtable.FamilyFilter("b"), bigtable.ColumnFilter("q"), bigtable.LabelFilter("no-b")),
			"r a:q@1=z; s a:p@1=other/no-b", nil,
		},
		{
			"condition without an else", bigtable.ConditionFilter(bigtable.FamilyFilter("b"), bigtable.PassAllFilter(), nil),
			"r a:p@3=x a:p@2=y a:q@1=z b:p@2=xx b:s@1=", nil,
		},
		{
			"condition without a then", bigtable.ConditionFilter(bigtable.FamilyFilter("b"), nil, bigtable.PassAllFilter()),
			"s a:p@1=other", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.needs(tt.needs...)
				tbl := e.create("t", "a", "b")
				e.put(tbl, "r", "a:p@3=x", "a:p@2=y", "a:q@1=z", "b:p@2=xx", "b:s@1=")
				e.put(tbl, "s", "a:p@1=other")
				want(t, e.filtered(tbl, tt.filter), tt.want, "a filtered read returns the wrong cells")
			})
		})
	}
}

// Filters that the Go client cannot express.
func TestRawFilters(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultFilters)
		tbl := e.create("t", "a")
		e.put(tbl, "r", "a:p@2=\x03", "a:q@1=\x01")
		for _, tt := range []struct {
			name   string
			filter *bigtablepb.RowFilter
			want   int
		}{
			{"bits", &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_ValueBitmaskFilter{
				ValueBitmaskFilter: &bigtablepb.ValueBitmask{Mask: []byte{2}},
			}}, 1},
			{"sink", &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_Chain_{Chain: &bigtablepb.RowFilter_Chain{
				Filters: []*bigtablepb.RowFilter{
					{Filter: &bigtablepb.RowFilter_Sink{Sink: true}},
					{Filter: &bigtablepb.RowFilter_BlockAllFilter{BlockAllFilter: true}},
				},
			}}}, 2},
			{"unset", &bigtablepb.RowFilter{}, 2},
		} {
			stream, err := e.data.ReadRows(e.ctx, &bigtablepb.ReadRowsRequest{TableName: tableName("t"), Filter: tt.filter})
			if err != nil {
				t.Fatal(err)
			}
			resp, err := stream.Recv()
			if err != nil || len(resp.Chunks) != tt.want {
				t.Errorf("%s: got %v, %v, want %d cells", tt.name, resp, err, tt.want)
			}
			stream.Recv()
		}
	})
}

// An invalid filter is refused before anything is read, even if the table is empty.
func TestRefusedFilters(t *testing.T) {
	deep := bigtable.PassAllFilter()
	for range 25 {
		deep = bigtable.ChainFilters(bigtable.PassAllFilter(), deep)
	}
	for name, f := range map[string]bigtable.Filter{
		"pattern":    bigtable.ValueFilter("("),
		"label":      bigtable.LabelFilter("UPPER"),
		"two labels": bigtable.ChainFilters(bigtable.LabelFilter("a"), bigtable.LabelFilter("b")),
		"limit":      bigtable.LatestNFilter(0),
		"sample":     bigtable.RowSampleFilter(2),
		"short":      bigtable.ChainFilters(bigtable.PassAllFilter()),
		"deep":       deep,
		"long":       bigtable.ValueFilter(strings.Repeat("a", 20481)),
	} {
		each(t, func(t *testing.T, e *env) {
			e.needs(faultFilterChecks)
			tbl := e.create("t", "a")
			err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return true }, bigtable.RowFilter(f))
			wantCode(t, err, codes.InvalidArgument, name+": an invalid filter is accepted in a read")
			err = tbl.Apply(e.ctx, "r", bigtable.NewCondMutation(f, set("a:q@1=x"), nil))
			wantCode(t, err, codes.InvalidArgument, name+": an invalid filter is accepted in a predicate")
		})
	}
}
