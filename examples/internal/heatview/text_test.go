package heatview

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// TestText: a picture of blocks has a block for each part of the time in which rows were written, at their key, and the
// strongest load has the darkest block.
func TestText(t *testing.T) {
	from := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	var counts []Count
	for n := range 40 {
		key := func(device string) [][]byte {
			return [][]byte{fmt.Appendf(nil, "acme#readings#berlin#%s#7443056836731319018", device)}
		}
		if n < 10 {
			counts = append(counts, Count{At: from.Add(time.Duration(n) * time.Second), Kind: reads, Rows: 10, Keys: key("early")})
		}
		counts = append(counts, Count{At: from.Add(time.Duration(n) * time.Second), Kind: writes, Rows: 1000, Keys: key("steady\x1b[31m")})
	}
	counts = append(counts, Count{At: from.Add(20 * time.Second), Kind: reads, Rows: 90_000, Keys: [][]byte{[]byte("globex#events!head#x#")}})
	r := FromCounts(from, from.Add(40*time.Second), time.Second, counts)
	var out strings.Builder
	if err := WriteText(&out, r, TextOptions{Width: 70}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	cells := func(i int) string { _, after, _ := strings.Cut(lines[i], "▕"); return after }
	if len(lines) != 7 || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("the picture is\n%s", out.String())
	}
	for i, want := range []struct{ label, cells string }{
		{"acme readings berlin#", strings.Repeat("░", 10) + strings.Repeat(" ", 30)},
		{"berlin#steady?[31m", strings.Repeat("▓", 40)},
		{"globex events!head x", strings.Repeat(" ", 20) + "█" + strings.Repeat(" ", 19)},
	} {
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), want.label) && !strings.HasPrefix(lines[i], want.label) || cells(i) != want.cells {
			t.Errorf("line %d is %q, want %q and %q", i, lines[i], want.label, want.cells)
		}
	}
	if !strings.Contains(lines[3], "2026-06-01 12:00:00") || !strings.HasSuffix(lines[3], "12:00:40") || !strings.Contains(lines[4], "a block is 1s") || !strings.Contains(lines[5], "40000 writes") {
		t.Errorf("the picture is\n%s", out.String())
	}
	for _, o := range []TextOptions{{}, {Width: 20, Lines: 1}, {Width: 1, Lines: -3, By: "tenant"}, {Width: 300, Lines: 100, By: "dataset", Colour: true}} {
		out.Reset()
		if err := WriteText(&out, r, o); err != nil || strings.Contains(out.String(), "\x1b[31m") || o.Colour != strings.Contains(out.String(), "\x1b[38;2;") {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
		for _, line := range strings.Split(out.String(), "\n")[:1] {
			if n := utf8.RuneCountInString(line); !o.Colour && n > max(o.Width, 80) {
				t.Errorf("%+v: a line of %d characters", o, n)
			}
		}
	}
	out.Reset()
	if err := WriteText(&out, &heat.Recording{}, TextOptions{}); err != nil || out.String() != "Nothing was recorded.\n" {
		t.Errorf("of nothing the picture is %q, %v", out.String(), err)
	}
}
