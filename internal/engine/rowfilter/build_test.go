package rowfilter_test

import (
	"fmt"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// The functions below build filter messages.

func chainOf(fs ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: fs}}}
}

func interleaveOf(fs ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: fs}}}
}

func conditionOf(predicate, then, otherwise *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
		PredicateFilter: predicate, TrueFilter: then, FalseFilter: otherwise,
	}}}
}

func sinkAll(b bool) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: b}}
}

func pass(b bool) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: b}}
}

func block(b bool) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: b}}
}

func rowKey(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(p)}}
}

func sample(p float64) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_RowSampleFilter{RowSampleFilter: p}}
}

func family(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: p}}
}

func qualifier(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(p)}}
}

func value(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(p)}}
}

func timestamps(start, end int64) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
		StartTimestampMicros: start, EndTimestampMicros: end,
	}}}
}

// columns is the range of qualifiers from start to end. A square bracket in ends includes that end, a round one
// excludes it.
func columns(fam, start, end, ends string) *btpb.RowFilter {
	r := &btpb.ColumnRange{
		FamilyName: fam, StartQualifier: &btpb.ColumnRange_StartQualifierOpen{StartQualifierOpen: []byte(start)},
		EndQualifier: &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: []byte(end)},
	}
	if ends[0] == '[' {
		r.StartQualifier = &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(start)}
	}
	if ends[1] == ']' {
		r.EndQualifier = &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte(end)}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
}

func values(start, end, ends string) *btpb.RowFilter {
	r := &btpb.ValueRange{
		StartValue: &btpb.ValueRange_StartValueOpen{StartValueOpen: []byte(start)},
		EndValue:   &btpb.ValueRange_EndValueOpen{EndValueOpen: []byte(end)},
	}
	if ends[0] == '[' {
		r.StartValue = &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte(start)}
	}
	if ends[1] == ']' {
		r.EndValue = &btpb.ValueRange_EndValueClosed{EndValueClosed: []byte(end)}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: r}}
}

func mask(m string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{ValueBitmaskFilter: &btpb.ValueBitmask{Mask: []byte(m)}}}
}

func rowOffset(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: n}}
}

func rowLimit(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: n}}
}

func columnLimit(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: n}}
}

func strip(b bool) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: b}}
}

func label(l string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: l}}
}

// cell parses "family:qualifier@timestamp=value".
func cell(s string) rowfilter.Cell {
	var c rowfilter.Cell
	head, val, _ := strings.Cut(s, "=")
	col, ts, _ := strings.Cut(head, "@")
	fam, q, _ := strings.Cut(col, ":")
	fmt.Sscan(ts, &c.Timestamp)
	c.Family, c.Qualifier, c.Value = fam, []byte(q), []byte(val)
	return c
}

func row(cells ...string) []rowfilter.Cell {
	out := make([]rowfilter.Cell, len(cells))
	for i, s := range cells {
		out[i] = cell(s)
	}
	return out
}

// show formats cells as cell parses them, followed by their labels.
func show(cells []rowfilter.Cell) string {
	var out []string
	for _, c := range cells {
		s := fmt.Sprintf("%s:%s@%d=%s", c.Family, c.Qualifier, c.Timestamp, c.Value)
		for _, l := range c.Labels {
			s += "/" + l
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
