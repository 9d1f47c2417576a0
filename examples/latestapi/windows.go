package main

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones, also on systems without them

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxBuckets is the largest number of windows of one response.
const maxBuckets = 10_000

// aggregate is one number of a measure in a window, and the aggregates of package window that it belongs to.
type aggregate struct {
	name string
	kept window.Aggregates
	of   func(window.Summary) float64
}

// aggregates are all of them. The kind of a measure decides which it has.
var aggregates = []aggregate{
	{"count", window.Count, func(s window.Summary) float64 { return float64(s.Count) }},
	{"sum", window.Sum, func(s window.Summary) float64 { return s.Sum }},
	{"mean", window.Sum, func(s window.Summary) float64 { return s.Mean }},
	{"min", window.Min, func(s window.Summary) float64 { return s.Min }},
	{"max", window.Max, func(s window.Summary) float64 { return s.Max }},
	{"first", window.Ends, func(s window.Summary) float64 { return s.First }},
	{"last", window.Ends, func(s window.Summary) float64 { return s.Last }},
	{"stddev", window.StdDev, func(s window.Summary) float64 { return s.StdDev }},
	{"delta", window.Delta, func(s window.Summary) float64 { return s.Delta }},
	{"increase", window.Increase, func(s window.Summary) float64 { return s.Increase }},
	{"rate", window.Increase, func(s window.Summary) float64 { return s.Rate }},
	{"resets", window.Increase, func(s window.Summary) float64 { return float64(s.Resets) }},
	{"integral", window.Integral, func(s window.Summary) float64 { return s.Integral }},
	{"time_mean", window.Integral, func(s window.Summary) float64 { return s.TimeMean }},
	{"p50", window.Quantiles, func(s window.Summary) float64 { return s.Quantile(0.5) }},
	{"p90", window.Quantiles, func(s window.Summary) float64 { return s.Quantile(0.9) }},
	{"p95", window.Quantiles, func(s window.Summary) float64 { return s.Quantile(0.95) }},
	{"p99", window.Quantiles, func(s window.Summary) float64 { return s.Quantile(0.99) }},
}

// aggregates parses the aggregates to show. Without the parameter, each measure shows those of its kind, and kept is 0.
func (p *params) aggregates() (shown []aggregate, kept window.Aggregates) {
	names := make([]string, len(aggregates))
	for i, a := range aggregates {
		names[i] = a.name
	}
	_, named := p.values["aggregates"]
	picked := p.list("aggregates", names)
	for _, a := range aggregates {
		if slices.Contains(picked, a.name) {
			shown = append(shown, a)
			kept |= a.kept
		}
	}
	if !named {
		kept = 0
	}
	return shown, kept
}

// bucket is a window as clients see it. Its values are by measure, then by aggregate; null where there is nothing.
type bucket struct {
	Start   time.Time                      `json:"start"`
	End     time.Time                      `json:"end"`
	Points  int64                          `json:"points"`
	Bad     int64                          `json:"bad,omitempty"`
	Partial bool                           `json:"partial,omitempty"`
	Values  map[string]map[string]*float64 `json:"values"`
	Filled  []string                       `json:"filled,omitempty"`
}

// windows answers GET: aggregates of an entity's points by the hour, the day or any other width, in a time zone.
func (s *server) windows(w http.ResponseWriter, r request) error {
	p := r.params
	q := selection{Entity: p.entity(r.dataset), In: p.bounded(), Order: p.order(tsdb.OldestFirst)}
	grid := p.grid()
	names := p.list("measures", r.dataset.measures())
	shown, kept := p.aggregates()
	opts := window.Options{Gaps: p.gaps(), MaxGap: p.duration("max_gap"), MaxFilled: maxBuckets}
	if err := p.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	seq, err := r.dataset.windows(r.Context(), r.tenant, q, grid, names, kept, opts)
	if bad, ok := errors.AsType[*tsdb.InvalidError](err); ok && strings.HasPrefix(bad.Field, "Aggregates") {
		p.refuse("aggregates", bad.Value, bad.Limit)
		return p.check()
	}
	if err != nil {
		return err
	}
	answer := struct {
		Buckets []bucket `json:"buckets"`
	}{[]bucket{}}
	for b, err := range seq {
		if _, unreadable := errors.AsType[*tsdb.PointError](err); unreadable {
			continue // its bucket counts it as bad
		}
		if err != nil {
			return err
		}
		if len(answer.Buckets) == maxBuckets {
			return window.ErrTooManyFilled
		}
		answer.Buckets = append(answer.Buckets, bucketOf(b, shown))
	}
	return write(w, answer)
}

func bucketOf(b window.Bucket, shown []aggregate) bucket {
	out := bucket{Start: b.Start, End: b.End, Points: b.Points, Bad: b.Bad, Partial: b.Partial, Values: map[string]map[string]*float64{}}
	for _, s := range b.Values {
		values := map[string]*float64{}
		for _, a := range shown {
			if s.Aggregates&a.kept == 0 {
				continue
			}
			values[a.name] = nil
			if x := a.of(s); !math.IsNaN(x) && !math.IsInf(x, 0) {
				values[a.name] = &x
			}
		}
		out.Values[s.Name] = values
		if s.Filled {
			out.Filled = append(out.Filled, s.Name)
		}
	}
	return out
}

// grid reads every, which is required, and zone.
func (p *params) grid() window.Grid {
	every, _ := p.text("every")
	grid, err := window.Parse(every)
	if err != nil {
		p.refuse("every", shown(every), "a duration, or a number with d, w or mo: 15m, 1h, 1d, 1w, 1mo")
		return grid
	}
	name, ok := p.text("zone")
	if !ok {
		return grid
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // Local would be the server's zone
		p.refuse("zone", shown(name), "a name of the time zone database, as Europe/Berlin")
		return grid
	}
	grid = grid.In(zone)
	if err := grid.Check(); err != nil {
		p.refuse("every", shown(every)+" in a zone", "a width that divides a day, or days, weeks or months")
	}
	return grid
}

// gaps reads how gaps are filled.
func (p *params) gaps() (g window.Gaps) {
	if text, ok := p.text("gaps"); ok {
		if g.UnmarshalText([]byte(text)) != nil {
			p.refuse("gaps", shown(text), "leave-out, null, previous or linear")
		}
	}
	return g
}

// list reads some of the known names, separated by commas; the default is all.
func (p *params) list(name string, known []string) []string {
	text, ok := p.text(name)
	if !ok {
		return known
	}
	names := strings.Split(text, ",")
	for i, n := range names {
		if !slices.Contains(known, n) || slices.Contains(names[:i], n) {
			p.refuse(name, shown(text), "some of "+strings.Join(known, ", ")+", with commas")
		}
	}
	return names
}
