package bt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// rangesOf returns the ranges of a request as text.
func rangesOf(r *btpb.ReadRowsRequest) string {
	var all []string
	for _, rr := range r.Rows.GetRowRanges() {
		all = append(all, fmt.Sprintf("%s-%s", rr.GetStartKeyClosed(), rr.GetEndKeyOpen()))
	}
	return strings.ReplaceAll(strings.Join(all, " "), "\x00", "+")
}

// TestFirstRows: a read of the first rows of ranges sends these ranges, and after a break those that are left. It sends
// nothing if none is left.
func TestFirstRows(t *testing.T) {
	guarded, _ := playing(t)
	row := func(key string) *response { return chunks(cell(key, "f:q", "1=")) }
	broken := func(keys ...string) attempt {
		a := attempt{cut: true}
		for _, key := range keys {
			a.responses = append(a.responses, row(key))
		}
		return a
	}
	ranges := []Range{{"a", "b"}, {"c", "d"}, {"e", "f"}}
	for name, c := range map[string]struct {
		first  attempt
		second []string // keys
		asks   string   // of the request after the break; empty for none
	}{
		"before the first row":       {broken(), []string{"a1"}, "a-b c-d e-f"},
		"within the first range":     {broken("a1"), []string{"c1"}, "a1+-b c-d e-f"},
		"at the start of the second": {broken("a1", "c"), []string{"e1"}, "c+-d e-f"},
		"within the last range":      {broken("a1", "c1", "e5"), nil, "e5+-f"},
		"between ranges":             {attempt{responses: []*response{row("a1"), scannedTo("b5")}, cut: true}, []string{"c1"}, "c-d e-f"},
		"at the end of a range":      {attempt{responses: []*response{row("a1"), scannedTo("b")}, cut: true}, []string{"c1"}, "c-d e-f"},
		"behind all ranges":          {attempt{responses: []*response{row("e1"), scannedTo("f")}, cut: true}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{attempts: []attempt{c.first, {}}}
			for _, key := range c.second {
				p.attempts[1].responses = append(p.attempts[1].responses, row(key))
			}
			given := slices.Clone(ranges)
			rows, err := readPlay(t, guarded, p, Scan{First: given}, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := len(c.first.responses) + len(c.second)
			for _, r := range c.first.responses {
				if r.LastScannedRowKey != nil {
					want--
				}
			}
			if len(rows) != want {
				t.Errorf("%d rows, want %d: %q", len(rows), want, rows)
			}
			if got := rangesOf(p.requests[0]); got != "a-b c-d e-f" {
				t.Errorf("the first request asks for %s", got)
			}
			switch {
			case c.asks == "" && len(p.requests) != 1:
				t.Errorf("a request for %s, after all ranges were read", rangesOf(p.requests[1]))
			case c.asks != "" && (len(p.requests) != 2 || rangesOf(p.requests[1]) != c.asks):
				t.Errorf("%d requests, the last for %s; want one for %s", len(p.requests), rangesOf(p.requests[len(p.requests)-1]), c.asks)
			}
			if !slices.Equal(given, ranges) {
				t.Errorf("the caller's ranges became %v", given)
			}
		})
	}
}

// TestFirstRowsWithoutGuard: without a guard, a read of the first rows of ranges asks for what lies between the first
// and the last of them.
func TestFirstRowsWithoutGuard(t *testing.T) {
	_, plain := playing(t)
	p := &play{attempts: []attempt{{}}}
	table := New(plain, plain, plain, Timeouts{Read: time.Minute})
	err := table.Read(context.WithValue(t.Context(), playKey{}, p), Scan{First: []Range{{"a", "b"}, {"e", "f"}}}, func(*Row) bool { return true })
	if len(p.requests) != 1 || rangesOf(p.requests[0]) != "a-f" || err != nil {
		t.Errorf("error %v after requests %v, want one for a-f", err, p.requests)
	}
}

// TestFirstRowsAreWanted: only a read of first rows says so to an engine in the same process.
func TestFirstRowsAreWanted(t *testing.T) {
	guarded, _ := playing(t)
	for _, scan := range []Scan{{}, {First: []Range{{"a", "b"}}}} {
		p := &play{}
		if _, err := readPlay(t, guarded, p, scan, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := p.wanted, scan.First != nil; got != want {
			t.Errorf("with ranges %v the engine is asked for first rows: %t, want %t", scan.First, got, want)
		}
	}
}

// TestRangesShareOneArray: the keys of all ranges are in one array that is as long as they are.
func TestRangesShareOneArray(t *testing.T) {
	set := rowSet([]Range{{"a", "bb"}, {"ccc", "dddd"}})
	first := set.RowRanges[0].GetStartKeyClosed()
	if n := testing.AllocsPerRun(10, func() { rowSet([]Range{{"a", "bb"}, {"ccc", "dddd"}}) }); n > 5 {
		t.Errorf("%v allocations", n)
	}
	if got := string(append(first, 'x')); got != "ax" || string(set.RowRanges[0].GetEndKeyOpen()) != "bb" {
		t.Errorf("an appended byte changes the next key to %s", set.RowRanges[0].GetEndKeyOpen())
	}
}

// TestDeadlineOfALaterParent: the deadline is its own if the parent's is later.
func TestDeadlineOfALaterParent(t *testing.T) {
	at := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(t.Context(), at.Add(time.Hour))
	defer cancel()
	d := &deadline{Context: parent, at: at}
	defer d.stop()
	if got, ok := d.Deadline(); !ok || !got.Equal(at) {
		t.Errorf("Deadline = %v, want %v", got, at)
	}
}
