package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones, also on systems without them

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxBuckets is the largest number of windows, or of aligned rows, of one response.
const maxBuckets = 10_000

// windowQuery is the windows that a request asks for.
type windowQuery struct {
	In    tsdb.Interval
	Order tsdb.Order
	Grid  window.Grid
	Names []string              // of the measures
	Shown []aggregate.Aggregate // those to show
	Kept  window.Aggregates     // those to compute; 0 for the default of each measure's kind
	Opts  window.Options
}

// windowQuery reads the parameters of windows.
func (p *params) windowQuery(of dataset) windowQuery {
	q := windowQuery{In: p.bounded(), Order: p.order(tsdb.OldestFirst), Grid: p.grid(), Names: p.list("measures", of.measures())}
	_, named := p.values["aggregates"]
	q.Shown, q.Kept = aggregate.Named(p.list("aggregates", aggregate.Names()))
	if !named {
		q.Kept = 0
	}
	q.Opts = window.Options{Gaps: p.gaps(), MaxGap: p.duration("max_gap"), MaxFilled: maxBuckets}
	return q
}

// explain names the parameter of which a definition of windows was refused.
func (p *params) explain(err error) error {
	if bad, ok := errors.AsType[*tsdb.InvalidError](err); ok && strings.HasPrefix(bad.Field, "Aggregates") {
		p.refuse("aggregates", bad.Value, bad.Limit)
		return p.check()
	}
	return err
}

// windows answers GET: aggregates of an entity's points by the hour, the day or any other width, in a time zone. They
// are read from a rollup where one fits.
func (s *server) windows(w http.ResponseWriter, r request) error {
	p := r.params
	e, q := p.entity(r.dataset), p.windowQuery(r.dataset)
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	found, err := r.dataset.windows(r.Context(), r.tenant, e, q)
	if err != nil {
		return p.explain(err)
	}
	if as == asCSV {
		return s.sendCSV(w, r, found.columns.Header(), rowsOf(readable(found.buckets), func(b window.Bucket) []string { return found.columns.Row(&b) }))
	}
	answer := struct {
		Rollup  string             `json:"rollup,omitempty"`
		Buckets []aggregate.Bucket `json:"buckets"`
	}{found.rollup, []aggregate.Bucket{}}
	buckets, err := collected(readable(found.buckets))
	if err != nil {
		return err
	}
	for i := range buckets {
		answer.Buckets = append(answer.Buckets, found.columns.Bucket(&buckets[i]))
	}
	return write(w, answer)
}

// readable leaves out the errors of single points: windows count them as bad, and aligned rows do not depend on them. A
// sequence ends with any other error, with an empty window or row.
func readable[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for x, err := range seq {
			if _, bad := errors.AsType[*tsdb.PointError](err); !bad && !yield(x, err) {
				return
			}
		}
	}
}

// collected returns the elements of a sequence for one response. Without any it is not nil, for JSON.
func collected[T any](found iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for x, err := range found {
		if err == nil && len(all) == maxBuckets {
			err = window.ErrTooManyFilled
		}
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// aggregator returns the aggregator of a query, and the columns of its windows.
func (s served[T]) aggregator(q windowQuery) (*window.Aggregator[T], aggregate.Columns, error) {
	var measures []window.Measure[T]
	var columns aggregate.Columns
	for _, m := range s.of {
		if !slices.Contains(q.Names, m.Name) {
			continue
		}
		if m.Aggregates = q.Kept; q.Kept != 0 {
			m.Aggregates |= window.Count
		} else if m.Text != nil {
			m.Aggregates = window.Count | window.Ends | window.Durations
		}
		kept, err := m.Kind.Resolve(m.Aggregates)
		if err != nil {
			return nil, nil, err
		}
		measures, columns = append(measures, m), columns.With(m.Name, kept, q.Shown)
	}
	by, err := window.New(q.Grid, measures, q.Opts)
	return by, columns, err
}

// windows are windows to read, of one entity.
type windows struct {
	rollup  string // that they are read from; "" for the points
	columns aggregate.Columns
	buckets iter.Seq2[window.Bucket, error]
}

func (s served[T]) windows(ctx context.Context, id tenant.ID, e tsdb.Entity, q windowQuery) (found windows, err error) {
	by, columns, err := s.aggregator(q)
	if err != nil {
		return found, err
	}
	repo := s.schema.For(s.store, id)
	found.rollup, err = by.Source(ctx, repo, q.In)
	found.columns, found.buckets = columns, by.Read(ctx, repo, e, q.In, q.Order)
	return found, err
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
