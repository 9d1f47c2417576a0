package rowfilter_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// expressions are the patterns of the random filters, each with a Go function that matches the same texts.
var expressions = []struct {
	expr  string
	match func(string) bool
}{
	{"a", func(s string) bool { return s == "a" }},
	{"a|b", func(s string) bool { return s == "a" || s == "b" }},
	{"[b-d]", func(s string) bool { return s == "b" || s == "c" || s == "d" }},
	{`a\C*`, func(s string) bool { return strings.HasPrefix(s, "a") }},
	{`.*`, func(s string) bool { return !strings.Contains(s, "\n") }},
	{`\C*b`, func(s string) bool { return strings.HasSuffix(s, "b") }},
	{`[^a]*`, func(s string) bool { return !strings.Contains(s, "a") }},
	{`\C`, func(s string) bool { return len(s) == 1 }},
	{"\xff?", func(s string) bool { return s == "\xff" || s == "" }},
}

func expression(expr string) func(string) bool {
	for _, e := range expressions {
		if e.expr == expr {
			return e.match
		}
	}
	panic("no function for pattern " + expr)
}

var texts = []string{"", "a", "b", "c", "ab", "a\n", "\xff", "a\xffb"}

// randomFilter returns a filter that Compile accepts.
func randomFilter(r *rand.Rand, depth int, sinks, labels bool) *btpb.RowFilter {
	expr := func() string { return expressions[r.IntN(len(expressions))].expr }
	fam := func() string { return string(rune('a' + r.IntN(3))) }
	span := func(f func(start, end, ends string) *btpb.RowFilter) *btpb.RowFilter {
		start, end := texts[r.IntN(len(texts))], texts[r.IntN(len(texts))]
		if end != "" && start > end {
			start, end = end, start
		}
		return f(start, end, []string{"[]", "[)", "(]", "()"}[r.IntN(4)])
	}
	n := 16
	if depth > 0 {
		n = 24
	}
	switch r.IntN(n) {
	case 0:
		return pass(true)
	case 1:
		return block(true)
	case 2:
		return rowKey(expr())
	case 3:
		return family([]string{"a", "b", "a|c", "[a-b]", "[^a]*", ".*"}[r.IntN(6)])
	case 4:
		return qualifier(expr())
	case 5:
		return span(func(s, e, ends string) *btpb.RowFilter { return columns(fam(), s, e, ends) })
	case 6, 7:
		start := r.Int64N(6)
		return timestamps(start, []int64{0, start + r.Int64N(4)}[r.IntN(2)])
	case 8:
		return value(expr())
	case 9:
		return span(values)
	case 10:
		return rowOffset(r.Int32N(4))
	case 11:
		return rowLimit(1 + r.Int32N(6))
	case 12, 13:
		return columnLimit(1 + r.Int32N(3))
	case 14:
		if sinks {
			return sinkAll(true)
		}
		return strip(true)
	case 15:
		if labels {
			return label(string(rune('k' + r.IntN(3))))
		}
		return mask(texts[1+r.IntN(len(texts)-1)])
	case 16, 17, 18, 19:
		fs := make([]*btpb.RowFilter, 2+r.IntN(3))
		labelled := r.IntN(len(fs))
		for i := range fs {
			fs[i] = randomFilter(r, depth-1, sinks, labels && i == labelled)
		}
		return chainOf(fs...)
	case 20, 21:
		fs := make([]*btpb.RowFilter, 2+r.IntN(2))
		for i := range fs {
			fs[i] = randomFilter(r, depth-1, sinks, labels)
		}
		return interleaveOf(fs...)
	}
	c := conditionOf(randomFilter(r, depth-1, false, labels), nil, nil).GetCondition()
	outcome := r.IntN(3)
	if outcome != 0 {
		c.TrueFilter = randomFilter(r, depth-1, false, labels)
	}
	if outcome != 1 {
		c.FalseFilter = randomFilter(r, depth-1, false, labels)
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: c}}
}

func randomRow(r *rand.Rand) []rowfilter.Cell {
	var out []rowfilter.Cell
	for _, fam := range []string{"a", "b", "c"} {
		for _, q := range texts {
			if r.IntN(2) == 0 {
				continue
			}
			for ts := int64(8); ts >= 0; ts-- {
				if r.IntN(3) == 0 {
					out = append(out, rowfilter.Cell{Family: fam, Qualifier: []byte(q), Timestamp: ts, Value: []byte(texts[r.IntN(len(texts))])})
				}
			}
		}
	}
	slices.SortStableFunc(out, cellOrder)
	return out
}

func cellOrder(a, b rowfilter.Cell) int {
	return cmp.Or(cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
}

// model evaluates a filter as documented, and copies cells at every step.
type model struct {
	row  string
	sunk []rowfilter.Cell
}

func (m *model) where(in []rowfilter.Cell, ok func(c rowfilter.Cell) bool) (out []rowfilter.Cell) {
	for _, c := range in {
		if ok(c) {
			out = append(out, c)
		}
	}
	return out
}

func within(s, start, end, ends string) bool {
	return (s > start || s == start && ends[0] == '[') && (end == "" || s < end || s == end && ends[1] == ']')
}

func (m *model) apply(f *btpb.RowFilter, in []rowfilter.Cell) (out []rowfilter.Cell) {
	switch t := f.Filter.(type) {
	case *btpb.RowFilter_PassAllFilter:
		return in
	case *btpb.RowFilter_BlockAllFilter:
		return nil
	case *btpb.RowFilter_RowKeyRegexFilter:
		return m.where(in, func(rowfilter.Cell) bool { return expression(string(t.RowKeyRegexFilter))(m.row) })
	case *btpb.RowFilter_FamilyNameRegexFilter:
		names := map[string]string{"a": "a", "b": "b", "a|c": "ac", "[a-b]": "ab", "[^a]*": "bc", ".*": "abc"}
		return m.where(in, func(c rowfilter.Cell) bool { return strings.Contains(names[t.FamilyNameRegexFilter], c.Family) })
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		return m.where(in, func(c rowfilter.Cell) bool {
			return expression(string(t.ColumnQualifierRegexFilter))(string(c.Qualifier))
		})
	case *btpb.RowFilter_ColumnRangeFilter:
		r, ends := t.ColumnRangeFilter, []byte("()")
		if _, ok := r.StartQualifier.(*btpb.ColumnRange_StartQualifierClosed); ok {
			ends[0] = '['
		}
		if _, ok := r.EndQualifier.(*btpb.ColumnRange_EndQualifierClosed); ok {
			ends[1] = ']'
		}
		start := string(r.GetStartQualifierClosed()) + string(r.GetStartQualifierOpen())
		end := string(r.GetEndQualifierClosed()) + string(r.GetEndQualifierOpen())
		return m.where(in, func(c rowfilter.Cell) bool {
			return c.Family == r.FamilyName && within(string(c.Qualifier), start, end, string(ends))
		})
	case *btpb.RowFilter_ValueRangeFilter:
		r, ends := t.ValueRangeFilter, []byte("()")
		if _, ok := r.StartValue.(*btpb.ValueRange_StartValueClosed); ok {
			ends[0] = '['
		}
		if _, ok := r.EndValue.(*btpb.ValueRange_EndValueClosed); ok {
			ends[1] = ']'
		}
		start := string(r.GetStartValueClosed()) + string(r.GetStartValueOpen())
		end := string(r.GetEndValueClosed()) + string(r.GetEndValueOpen())
		return m.where(in, func(c rowfilter.Cell) bool { return within(string(c.Value), start, end, string(ends)) })
	case *btpb.RowFilter_TimestampRangeFilter:
		start, end := t.TimestampRangeFilter.StartTimestampMicros, t.TimestampRangeFilter.EndTimestampMicros
		return m.where(in, func(c rowfilter.Cell) bool { return c.Timestamp >= start && (end == 0 || c.Timestamp < end) })
	case *btpb.RowFilter_ValueRegexFilter:
		return m.where(in, func(c rowfilter.Cell) bool { return expression(string(t.ValueRegexFilter))(string(c.Value)) })
	case *btpb.RowFilter_ValueBitmaskFilter:
		return m.where(in, func(c rowfilter.Cell) bool {
			ok := len(c.Value) == len(t.ValueBitmaskFilter.Mask)
			for i := 0; ok && i < len(c.Value); i++ {
				ok = c.Value[i]&t.ValueBitmaskFilter.Mask[i] == t.ValueBitmaskFilter.Mask[i]
			}
			return ok
		})
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		n := int32(0)
		return m.where(in, func(rowfilter.Cell) bool { n++; return n > t.CellsPerRowOffsetFilter })
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		n := int32(0)
		return m.where(in, func(rowfilter.Cell) bool { n++; return n <= t.CellsPerRowLimitFilter })
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		n := map[string]int32{}
		return m.where(in, func(c rowfilter.Cell) bool {
			n[c.Family+":"+string(c.Qualifier)]++
			return n[c.Family+":"+string(c.Qualifier)] <= t.CellsPerColumnLimitFilter
		})
	case *btpb.RowFilter_StripValueTransformer:
		for _, c := range in {
			c.Value = nil
			out = append(out, c)
		}
		return out
	case *btpb.RowFilter_ApplyLabelTransformer:
		for _, c := range in {
			c.Labels = []string{t.ApplyLabelTransformer}
			out = append(out, c)
		}
		return out
	case *btpb.RowFilter_Sink:
		m.sunk = append(m.sunk, in...)
		return nil
	case *btpb.RowFilter_Chain_:
		for _, sub := range t.Chain.Filters {
			in = m.apply(sub, in)
		}
		return in
	case *btpb.RowFilter_Interleave_:
		for _, sub := range t.Interleave.Filters {
			out = append(out, m.apply(sub, in)...)
		}
		slices.SortStableFunc(out, cellOrder)
		return out
	case *btpb.RowFilter_Condition_:
		branch := t.Condition.FalseFilter
		if len(m.apply(t.Condition.PredicateFilter, in)) > 0 {
			branch = t.Condition.TrueFilter
		}
		if branch == nil {
			return nil
		}
		return m.apply(branch, in)
	}
	panic(fmt.Sprintf("no model of %T", f.Filter))
}

// reduce removes the cells outside the bounds.
func reduce(b rowfilter.Bounds, in []rowfilter.Cell) (out []rowfilter.Cell) {
	n := map[string]int{}
	for _, c := range in {
		col := c.Family + ":" + string(c.Qualifier)
		if !b.Contains(&c) || b.CellsPerColumn > 0 && n[col] == b.CellsPerColumn {
			continue
		}
		n[col]++
		out = append(out, c)
	}
	return out
}

// checkFilter compares a random filter with the model, over some rows and over the same rows reduced to the filter's
// bounds.
func checkFilter(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	msg := randomFilter(r, 3, r.IntN(3) == 0, true)
	f, err := rowfilter.Compile(msg)
	if err != nil {
		t.Fatalf("seed %d: compiling a valid filter: %v\n%s", seed, err, prototext.Format(msg))
	}
	for range 4 {
		cells, m := randomRow(r), &model{row: texts[1+r.IntN(len(texts)-1)]}
		out := slices.Clone(m.apply(msg, slices.Clone(cells)))
		out = append(out, m.sunk...)
		slices.SortStableFunc(out, cellOrder)
		want := show(out)
		if got := show(f.Apply([]byte(m.row), slices.Clone(cells))); got != want {
			t.Fatalf("seed %d: wrong cells of row %q\n   %q\n got %q\nwant %q\n%s",
				seed, m.row, show(cells), got, want, prototext.Format(msg))
		}
		if got := show(f.Apply([]byte(m.row), reduce(f.Bounds(), cells))); got != want {
			t.Fatalf("seed %d: wrong cells after leaving out those outside the bounds\n   %q\nbounds %+v\n got %q\nwant %q\n%s",
				seed, show(cells), f.Bounds(), got, want, prototext.Format(msg))
		}
	}
}

func TestApplyIsTheModel(t *testing.T) {
	testkit.Plain(t)
	n := uint64(4000)
	if testing.Short() {
		n = 500
	}
	for seed := range n {
		checkFilter(t, seed)
	}
}

func FuzzApplyIsTheModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkFilter)
}
