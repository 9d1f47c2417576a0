package web

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestFiguresOfLines: what a legend says of a line of windows is true of the points in its interval, not of the
// windows: an entity that sent ten times as often in one part has a mean to which that part adds ten times as much. The
// newest number is that of the field, not of the newest point.
func TestFiguresOfLines(t *testing.T) {
	type sample struct {
		N *float64 `json:"n,omitempty"`
		M float64  `json:"m"`
	}
	of := func(s sample) (float64, bool) {
		if s.N == nil {
			return 0, false
		}
		return *s.N, true
	}
	minutes := rollup.MustDefine("minutes", window.Every(time.Minute), []rollup.Measure[sample]{{Name: "n", Of: of, Max: 1e6}}, rollup.Options{})
	rolled := tsdb.MustDefine("rolled", tsdb.Key("device"), codec.JSON[sample](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{minutes}})
	p := newPage(t, func(c *Config) { c.Known = []Known{Knows(rolled, window.Measure[sample]{Name: "n", Of: of})} })
	if err := p.store.Ensure(t.Context(), rolled); err != nil {
		t.Fatal(err)
	}
	p.login("secret-of-acme")
	ctx := tenant.NewContext(t.Context(), acme)
	type point struct {
		at time.Time
		n  *float64
	}
	var all []point
	for i := range 3000 {
		at := noon.Add(time.Duration(i) * 4 * time.Second)
		if i >= 400 && i%10 > 0 { // after 27 minutes, a tenth
			continue
		}
		n := new(float64(i * i % 997))
		if i > 2900 {
			n = nil // the newest points lack the field
		}
		all = append(all, point{at, n})
	}
	var points []tsdb.Point[sample]
	var raw []tsdb.Point[map[string]any]
	for _, one := range all {
		value := map[string]any{"m": 1}
		if one.n != nil {
			value["n"] = *one.n
		}
		points = append(points, tsdb.Point[sample]{Entity: tsdb.NewEntity("d"), Time: one.at, Value: sample{one.n, 1}})
		raw = append(raw, tsdb.Point[map[string]any]{Entity: roof, Time: one.at, Value: value})
	}
	if _, err := rolled.For(p.store, acme).PutMany(ctx, points); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.For(p.store, acme).PutMany(ctx, raw); err != nil {
		t.Fatal(err)
	}
	from, to := noon.Add(130*time.Second), noon.Add(11990*time.Second) // neither is where a bucket begins
	for _, c := range []struct{ name, entity, rollup string }{{"readings", roof.String(), ""}, {"rolled", "d", "minutes"}} {
		var got struct {
			Lines []struct {
				Rollup  string
				Figures *lineFigures
			}
			Window float64 `json:"window_ms"`
		}
		p.read(strings.Replace(address("lines", "entity", c.entity, "field", "n", "field", "m", "from", stampOf(from), "to", stampOf(to), "columns", "50"), "readings", c.name, 1), &got)
		f := got.Lines[0].Figures
		if got.Window == 0 || got.Lines[0].Rollup != c.rollup || f == nil || f.Last == nil || got.Lines[1].Figures == nil {
			t.Fatalf("%s: windows of %v ms from %q with the figures %+v", c.name, got.Window, got.Lines[0].Rollup, f)
		}
		if c.rollup == "" && (f.From != millis(from) || f.To != millis(to)) || f.From > millis(from) || f.To < millis(to) || f.To-f.From > millis(to)-millis(from)+2*got.Window {
			t.Errorf("%s: the figures stand for %v to %v, asked for %v to %v", c.name, f.From, f.To, millis(from), millis(to))
		}
		var n int64
		var sum, last float64
		low, high := math.Inf(1), math.Inf(-1)
		for _, one := range all {
			if x := millis(one.at); one.n != nil && x >= f.From && x < f.To {
				n, sum, low, high, last = n+1, sum+*one.n, min(low, *one.n), max(high, *one.n), *one.n
			}
		}
		if f.Count != n || f.Min != low || f.Max != high || math.Abs(f.Mean-sum/float64(n)) > 1e-9*high || *f.Last != last {
			t.Errorf("%s: %d points from %v to %v, mean %v, last %v; want %d from %v to %v, mean %v, last %v",
				c.name, f.Count, f.Min, f.Max, f.Mean, *f.Last, n, low, high, sum/float64(n), last)
		}
	}
}
