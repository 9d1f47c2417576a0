package conformance

import (
	"time"

	"cloud.google.com/go/bigtable"
)

// filter returns a random filter that the fake evaluates correctly. The fake takes the families of a row in random
// order, so limits over a row follow a filter for one family. It loses labels under a strip filter. Which copies a
// limit takes is unspecified, so no limit follows an interleave. limits says whether limits are allowed.
func (g *generator) filter(depth int, limits bool) bigtable.Filter {
	n := 16
	if depth == 0 {
		n = 11
	}
	switch g.r.IntN(n) {
	case 0:
		return bigtable.PassAllFilter()
	case 1:
		return bigtable.RowKeyFilter(pick(g, []string{"a.*", `a\C*`, `\C`, "b|c", `.\C+`, "[^a]+", "\xff+"}))
	case 2:
		return bigtable.FamilyFilter(pick(g, []string{"a", "b", "s", "a|b", "[as]", ".*", "r"}))
	case 3, 4:
		return bigtable.ColumnFilter(pick(g, []string{"p", "p.*", `p\C*`, "p|q", `\C`, "", `[^p]*`, "\xff"}))
	case 5:
		return bigtable.ValueFilter(pick(g, []string{"x", "x+", `\C*`, ".*", `\C`, "", `[^x]\C*`, "\xff\\C"}))
	case 6:
		start, end := pick(g, diffQuals), pick(g, diffQuals)
		if end != "" && start > end {
			start, end = end, start
		}
		return bigtable.ColumnRangeFilter(pick(g, []string{"a", "b", "s", "none"}), start, end)
	case 7:
		start, end := pick(g, diffValues), pick(g, diffValues)
		if end != "" && start > end {
			start, end = end, start
		}
		if end == "" { // The service reads an empty end as unbounded, the fake as the smallest value.
			return bigtable.ValueRangeFilter([]byte(start), nil)
		}
		return bigtable.ValueRangeFilter([]byte(start), []byte(end))
	case 8:
		if g.micros {
			return bigtable.BlockAllFilter()
		}
		start := g.r.Int64N(8)
		end := time.Time{}
		if g.r.IntN(2) == 0 {
			end = time.UnixMilli(start + 1 + g.r.Int64N(4))
		}
		return bigtable.TimestampRangeFilter(time.UnixMilli(start), end)
	case 9:
		if limits {
			return bigtable.LatestNFilter(1 + g.r.IntN(3))
		}
		return bigtable.StripValueFilter()
	case 10:
		return bigtable.StripValueFilter()
	case 11:
		if !limits {
			return bigtable.PassAllFilter()
		}
		count := bigtable.CellsPerRowLimitFilter(1 + g.r.IntN(4))
		if g.r.IntN(2) == 0 {
			count = bigtable.CellsPerRowOffsetFilter(1 + g.r.IntN(4))
		}
		return bigtable.ChainFilters(bigtable.FamilyFilter(pick(g, []string{"a", "b", "s"})), g.filter(0, true), count)
	case 12:
		return bigtable.ChainFilters(g.filter(0, limits), bigtable.LabelFilter(pick(g, []string{"l", "m"})))
	case 13:
		return g.chain(depth, limits)
	case 14:
		return bigtable.InterleaveFilters(g.filter(depth-1, limits), g.filter(depth-1, limits))
	}
	var then, other bigtable.Filter
	if n := g.r.IntN(3); n == 0 {
		then = g.filter(depth-1, limits)
	} else if other = g.filter(depth-1, limits); n == 1 {
		then = g.filter(depth-1, limits)
	}
	return bigtable.ConditionFilter(g.filter(depth-1, limits), then, other)
}

// chain returns a chain of simple filters, with at most one other filter at its end.
func (g *generator) chain(depth int, limits bool) bigtable.Filter {
	var out []bigtable.Filter
	for range 1 + g.r.IntN(3) {
		out = append(out, g.filter(0, limits))
	}
	return bigtable.ChainFilters(append(out, g.filter(depth-1, limits))...)
}
