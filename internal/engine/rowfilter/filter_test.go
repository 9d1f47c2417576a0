package rowfilter_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

func sampleRow() []rowfilter.Cell {
	return row("A:a@3=x", "A:a@2=y", "A:a@1=z", "A:b@2=", "B:a@9=x", "B:c@8=yy", "B:c@7=q")
}

const whole = "A:a@3=x A:a@2=y A:a@1=z A:b@2= B:a@9=x B:c@8=yy B:c@7=q"

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter *btpb.RowFilter
		want   string
	}{
		{"no filter", nil, whole},
		{"an unset filter", &btpb.RowFilter{}, whole},
		{"pass", pass(true), whole},
		{"block", block(true), ""},
		{"row key", rowKey("r.w"), whole},
		{"row key must match completely", rowKey("ro"), ""},
		{"family", family("B"), "B:a@9=x B:c@8=yy B:c@7=q"},
		{"family must match completely", family("AB?C"), ""},
		{"families", family("A|B"), whole},
		{"qualifier", qualifier("a|c"), "A:a@3=x A:a@2=y A:a@1=z B:a@9=x B:c@8=yy B:c@7=q"},
		{"value", value("x|y+"), "A:a@3=x A:a@2=y B:a@9=x B:c@8=yy"},
		{"empty value", value(""), "A:b@2="},
		{"columns half open", columns("A", "a", "b", "[)"), "A:a@3=x A:a@2=y A:a@1=z"},
		{"columns closed", columns("A", "a", "b", "[]"), "A:a@3=x A:a@2=y A:a@1=z A:b@2="},
		{"columns open", columns("A", "a", "b", "()"), ""},
		{"columns open below", columns("A", "a", "b", "(]"), "A:b@2="},
		{"columns without an end", columns("B", "b", "", "[)"), "B:c@8=yy B:c@7=q"},
		{"timestamps", timestamps(2, 8), "A:a@3=x A:a@2=y A:b@2= B:c@7=q"},
		{"timestamps without an end", timestamps(8, 0), "B:a@9=x B:c@8=yy"},
		{"values", values("x", "yy", "[)"), "A:a@3=x A:a@2=y B:a@9=x"},
		{"values closed", values("y", "yy", "(]"), "B:c@8=yy"},
		{"mask", mask("\x01"), "A:a@2=y B:c@7=q"},
		{"row offset", rowOffset(4), "B:a@9=x B:c@8=yy B:c@7=q"},
		{"row offset past the end", rowOffset(7), ""},
		{"row limit", rowLimit(2), "A:a@3=x A:a@2=y"},
		{"column limit", columnLimit(1), "A:a@3=x A:b@2= B:a@9=x B:c@8=yy"},
		{"strip", chainOf(family("A"), strip(true)), "A:a@3= A:a@2= A:a@1= A:b@2="},
		{"label", chainOf(rowLimit(1), label("l-1")), "A:a@3=x/l-1"},
		{"a chain applies filters in order: limit, range", chainOf(family("A"), columnLimit(1), timestamps(0, 3)), "A:b@2="},
		{"a chain applies filters in order: range, limit", chainOf(family("A"), timestamps(0, 3), columnLimit(1)), "A:a@2=y A:b@2="},
		{
			"interleave merges in order and repeats cells",
			interleaveOf(family("B"), columnLimit(1)),
			"A:a@3=x A:b@2= B:a@9=x B:a@9=x B:c@8=yy B:c@8=yy B:c@7=q",
		},
		{
			"interleave labels copies",
			chainOf(columns("B", "a", "a", "[]"), interleaveOf(label("one"), label("two"))),
			"B:a@9=x/one B:a@9=x/two",
		},
		{
			"limits count each copy", chainOf(interleaveOf(pass(true), pass(true)), columnLimit(2), family("A")),
			"A:a@3=x A:a@3=x A:b@2= A:b@2=",
		},
		{"condition true", conditionOf(value("q"), family("A"), family("B")), "A:a@3=x A:a@2=y A:a@1=z A:b@2="},
		{
			"condition false", conditionOf(value("none"), family("A"), columnLimit(1)),
			"A:a@3=x A:b@2= B:a@9=x B:c@8=yy",
		},
		{"condition without an else", conditionOf(block(true), pass(true), nil), ""},
		{
			"condition does not change its input", conditionOf(chainOf(strip(true), qualifier("c")), value("yy"), nil),
			"B:c@8=yy",
		},
		{"sink alone", sinkAll(true), whole},
		{
			"nothing passes a sink", chainOf(family("A"), sinkAll(true), block(true)),
			"A:a@3=x A:a@2=y A:a@1=z A:b@2=",
		},
		{
			"the documented example of a sink",
			chainOf(family("A"), interleaveOf(pass(true), chainOf(label("foo"), sinkAll(true))), qualifier("b")),
			"A:a@3=x/foo A:a@2=y/foo A:a@1=z/foo A:b@2= A:b@2=/foo",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := rowfilter.Compile(tt.filter)
			if err != nil {
				t.Fatalf("compiling a valid filter: %v", err)
			}
			for range 2 { // the second time with reused memory
				if got := show(f.Apply([]byte("row"), sampleRow())); got != tt.want {
					t.Fatalf("wrong cells:\n got %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	deep := pass(true)
	for range 20 {
		deep = chainOf(pass(true), deep)
	}
	conditions := pass(true)
	for range 20 {
		conditions = conditionOf(pass(true), conditions, nil)
	}
	for _, tt := range []struct {
		name   string
		filter *btpb.RowFilter
		want   string
	}{
		{"chain of one", chainOf(pass(true)), "at least two"},
		{"empty chain", &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{}}, "at least two"},
		{"interleave of one", interleaveOf(pass(true)), "at least two"},
		{"empty condition", &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{}}, "predicate_filter must be set"},
		{"condition without an outcome", conditionOf(pass(true), nil, nil), "true_filter or false_filter"},
		{"sink off", sinkAll(false), "must be true"},
		{"sink in a predicate", conditionOf(sinkAll(true), pass(true), nil), "sink cannot be nested"},
		{"sink below a condition", conditionOf(pass(true), chainOf(pass(true), sinkAll(true)), nil), "sink cannot be nested"},
		{"pass off", pass(false), "must be true"},
		{"block off", block(false), "must be true"},
		{"strip off", strip(false), "must be true"},
		{"empty row key", rowKey(""), "must not be empty"},
		{"bad row key", rowKey("("), "row_key_regex_filter"},
		{"bad family", family("a**"), "family_name_regex_filter"},
		{"colon in a family", family("(?:a)"), "must not contain ':'"},
		{"bad qualifier", qualifier("[z-a]"), "column_qualifier_regex_filter"},
		{"bad value", value(`\`), "value_regex_filter"},
		{"an unbalanced group", value("a)|(b"), "value_regex_filter"},
		{"sample 0", sample(0), "between 0.0 and 1.0"},
		{"sample 1", sample(1), "between 0.0 and 1.0"},
		{"sample not a number", sample(math.NaN()), "between 0.0 and 1.0"},
		{"columns without a family", columns("", "a", "b", "[)"), "family_name must be set"},
		{"no columns", &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{}}, "family_name must be set"},
		{"columns reversed", columns("A", "b", "a", "[]"), "less than its end"},
		{"values reversed", values("b", "a", "[]"), "less than its end"},
		{"timestamps reversed", timestamps(2, 1), "must be less"},
		{"no mask", &btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{}}, "mask must not be empty"},
		{"negative offset", rowOffset(-1), "must be >= 0"},
		{"row limit 0", rowLimit(0), "must be > 0"},
		{"column limit 0", columnLimit(0), "must be > 0"},
		{"empty label", label(""), "must match RE2"},
		{"upper-case label", label("A"), "must match RE2"},
		{"label with a newline", label("a\n"), "must match RE2"},
		{"long label", label("a123456789012345"), "at most 15"},
		{"two labels", chainOf(label("a"), label("b")), "no more than one"},
		{"two labels, one nested", chainOf(interleaveOf(pass(true), label("a")), label("b")), "no more than one"},
		{"too deep", deep, "deeper than 20"},
		{"conditions too deep", conditions, "deeper than 20"},
		{"too long", value(strings.Repeat("a", 20477)), "filter has 20481 bytes, at most 20480"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := rowfilter.Compile(tt.filter)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("wrong error:\n got %v\nwant InvalidArgument: …%s…",
					err, tt.want)
			}
			if f != nil {
				t.Error("got a filter together with an error, want nil")
			}
		})
	}
}

func TestCompileAcceptsDepth20(t *testing.T) {
	f := pass(true)
	for range 19 {
		f = chainOf(pass(true), f)
	}
	if _, err := rowfilter.Compile(f); err != nil {
		t.Errorf("20 levels: got %v, want nil", err)
	}
	if _, err := rowfilter.Compile(interleaveOf(label("a"), label("b"))); err != nil {
		t.Errorf("two labels on two copies: got %v, want nil", err)
	}
}

func TestSample(t *testing.T) {
	f, err := rowfilter.Compile(sample(0.25))
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for range 4000 {
		switch n := len(f.Apply([]byte("row"), row("A:a@1=x", "A:b@1=x"))); n {
		case 2:
			passed++
		case 1:
			t.Fatal("got a part of a sampled row, want all of it or nothing")
		}
	}
	if passed < 800 || passed > 1200 {
		t.Errorf("a sample of a quarter: got %d of 4000 rows", passed)
	}
}

func TestNilFilter(t *testing.T) {
	var f *rowfilter.Filter
	if got := show(f.Apply([]byte("row"), sampleRow())); got != whole {
		t.Errorf("nil filter: got cells %s, want all", got)
	}
	if b := f.Bounds(); b.None() || b.Families != nil {
		t.Errorf("nil filter: got bounds %+v, want none", b)
	}
}

// A filter that only a newer API knows is refused: it must not pass what it should not.
func TestUnknownFilter(t *testing.T) {
	newer := new(btpb.RowFilter)
	if err := proto.Unmarshal(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1), newer); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*btpb.RowFilter{
		"alone": newer, "in a chain": chainOf(value("x"), newer), "as a predicate": conditionOf(newer, value("x"), nil),
	} {
		if _, err := rowfilter.Compile(f); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: got %v, want Unimplemented", name, err)
		}
	}
}

// Apply does not allocate for each row: otherwise every scan would create garbage.
func TestApplyDoesNotAllocate(t *testing.T) {
	for name, m := range map[string]*btpb.RowFilter{
		"family":  chainOf(family("d90"), timestamps(5, 0), columnLimit(1)),
		"columns": chainOf(columns("d90", "a", "b", "[)"), timestamps(5, 0), columnLimit(1)),
		"quoted":  chainOf(family(`d90|d\-30`), qualifier(`p\.json`), timestamps(5, 100), rowLimit(1)),
	} {
		f, err := rowfilter.Compile(m)
		if err != nil {
			t.Fatal(err)
		}
		key, cells := []byte("row"), row("c:a@3=x", "d90:a@9=x", "d90:a@8=x", "d90:p.json@4=x")
		if n := testing.AllocsPerRun(100, func() { f.Apply(key, cells) }); n != 0 {
			t.Errorf("%s: got %v allocations a row, want 0", name, n)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	cells := row("c:a@3=x", "d90:a@9=x", "d90:a@8=x", "d90:p.json@4=x")
	scratch := make([]rowfilter.Cell, len(cells))
	for name, m := range map[string]*btpb.RowFilter{
		"literal": chainOf(family("d90"), timestamps(5, 0), columnLimit(1)),
		"regexp":  chainOf(family("d[0-9]+"), timestamps(5, 0), columnLimit(1)),
	} {
		b.Run(name, func(b *testing.B) {
			f, err := rowfilter.Compile(m)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			key := []byte("row")
			for b.Loop() {
				copy(scratch, cells)
				f.Apply(key, scratch)
			}
		})
	}
}

// TestInterleavesDoNotMultiply checks that a small filter cannot use up the memory.
func TestInterleavesDoNotMultiply(t *testing.T) {
	pass := &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	twice := &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{pass, pass}}}}
	chain := func(n int) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: slices.Repeat([]*btpb.RowFilter{twice}, n)}}}
	}
	if _, err := rowfilter.Compile(chain(20)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a million copies of a cell: got %v, want InvalidArgument", err)
	}
	f, err := rowfilter.Compile(chain(5))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Apply([]byte("r"), []rowfilter.Cell{{Family: "f", Value: []byte("v")}}); len(got) != 32 {
		t.Errorf("got %d copies of a cell, want 32", len(got))
	}
}
