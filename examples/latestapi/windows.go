package main

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones, also on systems without them

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxBuckets is the largest number of windows of one response.
const maxBuckets = 10_000

// aggregates parses the aggregates to show. Without the parameter, each measure shows those of its kind, and kept is 0.
func (p *params) aggregates() (shown []aggregate.Aggregate, kept window.Aggregates) {
	_, named := p.values["aggregates"]
	shown, kept = aggregate.Named(p.list("aggregates", aggregate.Names()))
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
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
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
	if as == asCSV {
		columns, rows := table(r.dataset, names, shown, kept, answer.Buckets)
		return s.sendCSV(w, r, columns, whole(rows))
	}
	return write(w, answer)
}

// table returns windows as rows: their times, their points, and each aggregate that a measure has.
func table(of dataset, names []string, shown []aggregate.Aggregate, kept window.Aggregates, buckets []bucket) (columns []string, rows [][]string) {
	columns = []string{"start", "end", "points", "bad", "partial"}
	rows = make([][]string, len(buckets))
	for i, b := range buckets {
		rows[i] = []string{
			b.Start.Format(time.RFC3339), b.End.Format(time.RFC3339), strconv.FormatInt(b.Points, 10), strconv.FormatInt(b.Bad, 10), strconv.FormatBool(b.Partial),
		}
	}
	for _, name := range names {
		for _, a := range shown {
			if has, err := of.kind(name).Resolve(kept); err != nil || has&a.Kept == 0 {
				continue
			}
			columns = append(columns, name+"."+a.Name)
			for i, b := range buckets {
				rows[i] = append(rows[i], decimal(b.Values[name][a.Name]))
			}
		}
	}
	for i, b := range buckets {
		rows[i] = append(rows[i], strings.Join(b.Filled, " "))
	}
	return append(columns, "filled"), rows
}

func bucketOf(b window.Bucket, shown []aggregate.Aggregate) bucket {
	out := bucket{Start: b.Start, End: b.End, Points: b.Points, Bad: b.Bad, Partial: b.Partial, Values: map[string]map[string]*float64{}}
	for _, s := range b.Values {
		values := map[string]*float64{}
		for _, a := range shown {
			if s.Aggregates&a.Kept == 0 {
				continue
			}
			values[a.Name] = nil
			if x, ok := a.Number(&s); ok {
				values[a.Name] = &x
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
