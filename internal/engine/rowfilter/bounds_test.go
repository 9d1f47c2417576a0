package rowfilter_test

import (
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// Wide bounds make reads slow. Bounds narrower than the filter make them wrong.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter *btpb.RowFilter
		want   string
	}{
		{"no bounds", value("x"), `all ""- 0-0 0`},
		{"latest of a column", chainOf(family("d90"), qualifier("p"), timestamps(5, 0), columnLimit(1)), `[d90] "p"-"p\x00" 5-0 1`},
		{"several names", chainOf(family("a|b"), family("b|c")), `[b] ""- 0-0 0`},
		{"disjoint names", chainOf(family("a"), family("b")), `[] ""- 0-0 0`},
		{"a range of columns", columns("f", "a", "c", "(]"), `[f] "a\x00"-"c\x00" 0-0 0`},
		{"a prefix", qualifier(`ab\C*`), `all "ab"-"ac" 0-0 0`},
		{"disjoint columns", chainOf(qualifier("a"), qualifier("b")), `[] ""- 0-0 0`},
		{"times before 1970", timestamps(-10, -5), `[] ""- 0-0 0`},
		{"blocked", block(true), `[] ""- 0-0 0`},
		{"a row limit bounds each column", chainOf(family("f"), rowLimit(3)), `[f] ""- 0-0 3`},
		{"no limit after a value filter", chainOf(value("x"), columnLimit(1)), `all ""- 0-0 0`},
		{"no limit after a mask of values", chainOf(mask("\x01"), columnLimit(1)), `all ""- 0-0 0`},
		{"no limit after a range of values", chainOf(values("a", "b", "[]"), columnLimit(1)), `all ""- 0-0 0`},
		{"a limit, an end of times and a smaller limit", chainOf(columnLimit(2), timestamps(0, 9), columnLimit(1)), `all ""- 0-0 2`},
		{"after a limit, only the oldest cells go", chainOf(columnLimit(2), timestamps(3, 9)), `all ""- 3-0 2`},
		{"no narrowing after a row limit", chainOf(rowLimit(2), family("f"), timestamps(3, 9)), `all ""- 0-0 2`},
		{"no narrowing after an offset", chainOf(rowOffset(1), family("f"), columnLimit(1)), `all ""- 0-0 0`},
		{"copies", interleaveOf(chainOf(family("a"), columnLimit(1)), chainOf(family("b"), columnLimit(2))), `[a b] ""- 0-0 2`},
		{"copies with different ends", interleaveOf(chainOf(timestamps(0, 5), columnLimit(1)), columnLimit(1)), `all ""- 0-0 0`},
		{"a condition needs all of its parts", conditionOf(family("a"), family("b"), family("c")), `[a b c] ""- 0-0 0`},
		{"a sink keeps its cells", chainOf(sinkAll(true), block(true)), `all ""- 0-0 0`},
	} {
		f, err := rowfilter.Compile(tt.filter)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := showBounds(f.Bounds()); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// The end of a prefix that ends with the last byte is the end of what is before that byte.
func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xfe": "a\xff", "a\xff": "b", "a\xff\xff": "b", "\xff": "", "": ""} {
		if got := rowfilter.PrefixEnd([]byte(prefix)); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("PrefixEnd(%q) = %q, want %q", prefix, got, want)
		}
	}
}

func showBounds(b rowfilter.Bounds) string {
	families, end := "all", ""
	if b.Families != nil {
		families = fmt.Sprint(b.Families)
	}
	if b.EndQualifier != nil {
		end = fmt.Sprintf("%q", b.EndQualifier)
	}
	return fmt.Sprintf("%s %q-%s %d-%d %d", families, b.StartQualifier, end, b.StartTimestamp, b.EndTimestamp, b.CellsPerColumn)
}
