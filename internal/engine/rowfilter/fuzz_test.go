package rowfilter_test

import (
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// Whatever bytes a client sends as a filter, the process survives, and Compile returns a filter or a status.
func FuzzCompile(f *testing.F) {
	for _, m := range []*btpb.RowFilter{
		chainOf(family("d90"), qualifier(`a\C*`), timestamps(1, 5), columnLimit(1)),
		interleaveOf(chainOf(label("x"), sinkAll(true)), columns("A", "a", "b", "[]")),
		conditionOf(values("a", "b", "()"), strip(true), rowOffset(2)),
		{Filter: &btpb.RowFilter_Chain_{}},
		{Filter: &btpb.RowFilter_TimestampRangeFilter{}},
		{Filter: &btpb.RowFilter_ValueRangeFilter{}},
		mask("\xff"), rowKey(`[[:alpha:]\Q]+`), sample(0.5),
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte("row"))
	}
	f.Fuzz(func(t *testing.T, msg, key []byte) {
		var m btpb.RowFilter
		if proto.Unmarshal(msg, &m) != nil {
			return
		}
		filter, err := rowfilter.Compile(&m)
		if err != nil {
			if c := status.Code(err); c != codes.InvalidArgument && c != codes.Unimplemented {
				t.Fatalf("got code %v, want InvalidArgument or Unimplemented: %v", c, err)
			}
			return
		}
		for range 2 {
			filter.Apply(key, sampleRow())
		}
		filter.Apply(nil, nil)
		filter.Bounds()
	})
}

// Messages that cannot arrive over the network, but that a caller in the same process can pass.
func TestCompileSurvivesNil(t *testing.T) {
	for _, m := range []*btpb.RowFilter{
		nil,
		{},
		chainOf(nil, nil), interleaveOf(nil, nil), conditionOf(nil, nil, nil),
		{Filter: &btpb.RowFilter_Chain_{}},
		{Filter: &btpb.RowFilter_Interleave_{}},
		{Filter: &btpb.RowFilter_Condition_{}},
		{Filter: &btpb.RowFilter_ColumnRangeFilter{}},
		{Filter: &btpb.RowFilter_TimestampRangeFilter{}},
		{Filter: &btpb.RowFilter_ValueRangeFilter{}},
		{Filter: &btpb.RowFilter_ValueBitmaskFilter{}},
	} {
		if f, err := rowfilter.Compile(m); err == nil {
			f.Apply([]byte("row"), sampleRow())
			f.Bounds()
		}
	}
}
