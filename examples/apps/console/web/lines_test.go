package web

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// reading is the type that a program with the schema has.
type reading struct {
	N float64 `json:"n"`
	M float64 `json:"m"`
}

// drawnLine is a line as a page gets it.
type drawnLine struct {
	Rollup    string
	T         []float64
	V, Lo, Hi []*float64
}

func (l drawnLine) gaps() (n int) {
	for _, v := range l.V {
		if v == nil {
			n++
		}
	}
	return n
}

type drawnLines struct {
	Lines  []drawnLine
	Window float64 `json:"window_ms"`
	Gap    float64 `json:"gap_ms"`
}

// TestLines: a chart that can show all points gets them. One of few columns gets the mean, the lowest and the highest
// number of windows, from a rollup that the program knows. A silence is a gap in both.
func TestLines(t *testing.T) {
	of := func(r reading) (float64, bool) { return r.N, true }
	minutes := rollup.MustDefine("minutes", window.Every(time.Minute), []rollup.Measure[reading]{{Name: "n", Of: of, Max: 1e6}}, rollup.Options{})
	rolled := tsdb.MustDefine("rolled", tsdb.Key("device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{minutes}})
	p := newPage(t, func(c *Config) { c.Known = []Known{Knows(rolled, window.Measure[reading]{Name: "n", Of: of})} })
	if err := p.store.Ensure(t.Context(), rolled); err != nil {
		t.Fatal(err)
	}
	p.login("secret-of-acme")
	ctx := tenant.NewContext(t.Context(), acme)
	var points []tsdb.Point[reading]
	var raw []tsdb.Point[map[string]any]
	for i := range 1000 {
		if i >= 400 && i < 600 {
			continue
		}
		at := noon.Add(time.Duration(i) * 4 * time.Second)
		points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity("d"), Time: at, Value: reading{float64(i), 1}})
		raw = append(raw, tsdb.Point[map[string]any]{Entity: roof, Time: at, Value: map[string]any{"n": i, "m": 1}})
	}
	if _, err := rolled.For(p.store, acme).PutMany(ctx, points); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.For(p.store, acme).PutMany(ctx, raw); err != nil {
		t.Fatal(err)
	}
	interval := []string{"field", "n", "field", "m", "from", stampOf(noon), "to", stampOf(noon.Add(4000 * time.Second)), "columns", "50"}
	of50 := append(slices.Clone(interval), "entity", "berlin/roof-7")
	var got drawnLines
	check := func(what, rollup string, window float64, gaps int) {
		t.Helper()
		if len(got.Lines) != 2 || got.Window != window {
			t.Fatalf("%s: %d lines of windows of %v ms, want 2 of %v", what, len(got.Lines), got.Window, window)
		}
		for i, l := range got.Lines {
			if l.gaps() != gaps || !slices.IsSorted(l.T) || len(l.V) != len(l.T) {
				t.Errorf("%s, line %d: %d gaps at %v, want %d", what, i, l.gaps(), l.T, gaps)
			}
			if i == 0 && l.Rollup != rollup || i == 1 && l.Rollup != "" {
				t.Errorf("%s, line %d: from the rollup %q, want %q for the first", what, i, l.Rollup, rollup)
			}
		}
		for i, v := range got.Lines[0].V {
			if v == nil || window == 0 {
				continue
			}
			lo, hi := got.Lines[0].Lo[i], got.Lines[0].Hi[i]
			// The numbers rise by one each four seconds, so the time says which they are.
			if n := (got.Lines[0].T[i] - millis(noon)) / 4000; math.Abs(*v-n) > window/8000 || *lo > *v || *hi < *v || *hi-*lo > window/4000 {
				t.Errorf("%s: %v, from %v to %v at %v; want about %v", what, *v, *lo, *hi, got.Lines[0].T[i], n)
			}
		}
		if last := got.Lines[0]; *last.V[len(last.V)-1] != 999 || last.T[len(last.T)-1] != millis(noon.Add(3996*time.Second)) {
			t.Errorf("%s: the line ends with %v at %v, want the newest number", what, *last.V[len(last.V)-1], last.T[len(last.T)-1])
		}
	}
	p.read(address("lines", of50...), &got)
	check("50 columns", "", 120_000, 1)
	p.read(address("lines", append(of50, "gap", "0s")...), &got)
	check("50 columns without gaps", "", 120_000, 0)
	of50[len(of50)-3] = "400"
	p.read(address("lines", of50...), &got)
	if check("400 columns", "", 0, 1); len(got.Lines[0].T) != len(raw)+1 {
		t.Errorf("400 columns have %d samples, want all %d points and a gap", len(got.Lines[0].T), len(raw))
	}
	p.read(strings.Replace(address("lines", append(interval, "entity", "d")...), "readings", "rolled", 1), &got)
	check("a rollup", "minutes", 120_000, 1)
}

// putYear stores a point each five minutes of a year, with three numbers and a state, except for nine days.
func putYear(t testing.TB, p *page, e tsdb.Entity, from time.Time) (points int) {
	t.Helper()
	ctx := tenant.NewContext(context.Background(), acme)
	var part []tsdb.Point[map[string]any]
	for n := range 365 * 288 {
		x := float64(n)
		if n < 200*288 || n >= 209*288 {
			part = append(part, tsdb.Point[map[string]any]{Entity: e, Time: from.Add(time.Duration(n) * 5 * time.Minute), Value: map[string]any{
				"temp": 20 + 10*math.Sin(x/288*2*math.Pi) + 3*math.Sin(x), "constant": 7, "count": n, "state": []string{"on", "off"}[n/300%2],
			}})
		}
		if len(part) == 1000 || n == 365*288-1 {
			if _, err := schema.For(p.store, acme).PutMany(ctx, part); err != nil {
				t.Fatal(err)
			}
			points += len(part)
			part = part[:0]
		}
	}
	return points
}

// TestYear: a year of 102,528 points is read once for all numbers. Each line has its means within the lowest and the
// highest numbers, and breaks at the nine days without points. A constant stays one.
func TestYear(t *testing.T) {
	testkit.Plain(t)
	p := newPage(t, func(c *Config) { c.Timeout = time.Minute })
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	n := putYear(t, p, roof, from)
	p.login("secret-of-acme")
	p.conn.Reset()
	began := time.Now()
	var got drawnLines
	p.read(address("lines", "entity", roof.String(), "field", "constant", "field", "count", "field", "temp", "from", stampOf(from), "to", stampOf(from.AddDate(1, 0, 0)), "columns", "1200"), &got)
	t.Logf("%d points of three numbers in %v", n, time.Since(began).Round(time.Millisecond))
	if read := p.conn.Counts().RowsReturned; read > int64(n)+500 {
		t.Errorf("%d rows were read for %d points", read, n)
	}
	if got.Window != inMillis(12*time.Hour) || len(got.Lines) != 3 {
		t.Fatalf("%d lines of windows of %v ms, want 3 of half a day", len(got.Lines), got.Window)
	}
	for i, l := range got.Lines {
		if len(l.T) < 700 || len(l.T) > 800 || l.gaps() != 1 {
			t.Errorf("line %d has %d samples and %d gaps, want two a day and one gap", i, len(l.T), l.gaps())
		}
		for j, v := range l.V {
			if v == nil {
				silence := time.Duration(l.T[j+1]-l.T[j-1]) * time.Millisecond
				if silence < 9*day || silence > 10*day {
					t.Errorf("line %d has a gap of %v, want nine days", i, silence)
				}
			} else if *l.Lo[j] > *v || *l.Hi[j] < *v {
				t.Errorf("line %d: the mean %v is not from %v to %v", i, *v, *l.Lo[j], *l.Hi[j])
			} else if i == 0 && (*v != 7 || *l.Lo[j] != 7 || *l.Hi[j] != 7) {
				t.Errorf("the constant is %v, from %v to %v", *v, *l.Lo[j], *l.Hi[j])
			}
		}
	}
}
