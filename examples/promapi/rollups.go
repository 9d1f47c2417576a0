package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// shownRollups are the rollups that are metrics. The catalogue does not have the functions that compute the buckets which are still
// open, so a program needs their definitions: put yours here.
func shownRollups() []rolledUp {
	return []rolledUp{showRollup(demoTrucks, demoHours, "hours", everyHour)}
}

// rolledUp is a rollup of a dataset, without the type of its points.
type rolledUp struct {
	dataset, name string
	grid          window.Grid
	described     dynamic.Description
	buckets       func(ctx context.Context, store *tsdb.Store, id tenant.ID, e tsdb.Entity, in tsdb.Interval) iter.Seq2[window.Bucket, error]
}

// showRollup returns a rollup of a schema, with the name and the grid of its definition.
func showRollup[T any](schema *tsdb.Schema[T], r *rollup.Rollup[T], name string, grid window.Grid) rolledUp {
	return rolledUp{
		dataset: schema.Name(), name: name, grid: grid, described: dynamic.Describe(schema),
		buckets: func(ctx context.Context, store *tsdb.Store, id tenant.ID, e tsdb.Entity, in tsdb.Interval) iter.Seq2[window.Bucket, error] {
			return rollup.For(r, schema.For(store, id)).Buckets(ctx, e, in)
		},
	}
}

// aggregate is one aggregate of one measure of a rollup: a metric such as trucks:speed_kmh:avg_1h.
type aggregate struct {
	rolledUp
	measure int
	needs   window.Aggregates
	value   func(window.Summary) float64
}

// aggregates are those of which a metric is made, by its suffix.
var aggregates = []struct {
	suffix string
	needs  window.Aggregates
	value  func(window.Summary) float64
}{
	{"count", window.Count, func(s window.Summary) float64 { return float64(s.Count) }},
	{"sum", window.Sum, func(s window.Summary) float64 { return s.Sum }},
	{"avg", window.Mean, func(s window.Summary) float64 { return s.Mean }},
	{"min", window.Min, func(s window.Summary) float64 { return s.Min }},
	{"max", window.Max, func(s window.Summary) float64 { return s.Max }},
	{"first", window.Ends, func(s window.Summary) float64 { return s.First }},
	{"last", window.Ends, func(s window.Summary) float64 { return s.Last }},
	{"stddev", window.StdDev, func(s window.Summary) float64 { return s.StdDev }},
	{"delta", window.Delta, func(s window.Summary) float64 { return s.Delta }},
	{"increase", window.Increase, func(s window.Summary) float64 { return s.Increase }},
}

// addRollups adds the metrics of the rollups of a dataset.
func (m *mapped) addRollups(shown []rolledUp) error {
	m.rollups = map[string]*aggregate{}
	for _, r := range shown {
		if r.dataset != m.of {
			continue
		}
		for _, of := range r.described.Rollups {
			if of.Name != r.name {
				continue
			}
			for i, measure := range of.Measures {
				kept := map[string]bool{}
				for _, name := range measure.Aggregates {
					kept[name] = true
				}
				for _, a := range aggregates {
					if !keeps(kept, a.needs) {
						continue
					}
					name := fmt.Sprintf("%s:%s:%s_%s", m.name, promName(measure.Name), a.suffix, promName(shortWidth(of.Every)))
					if other := m.rollups[name]; other != nil {
						return fmt.Errorf("the rollups %s and %s of dataset %s would both make the metric %s", other.name, r.name, m.of, name)
					}
					m.rollups[name] = &aggregate{r, i, a.needs, a.value}
				}
			}
		}
	}
	return nil
}

// shortWidth returns a width without zeros: 1h for 1h0m0s.
func shortWidth(every string) string {
	if rest, ok := strings.CutSuffix(every, "m0s"); ok {
		every = rest + "m"
	}
	if rest, ok := strings.CutSuffix(every, "h0m"); ok {
		every = rest + "h"
	}
	return every
}

func keeps(kept map[string]bool, needs window.Aggregates) bool {
	for _, name := range needs.Names() {
		if !kept[name] {
			return false
		}
	}
	return true
}

// readBuckets returns the buckets that end in an interval, each at the time of its end. Buckets that have not ended are left out.
func (s *mappedSource) readBuckets(ctx context.Context, id tenant.ID, a *aggregate, of []*series, in tsdb.Interval, b *budget) ([]*selected, error) {
	from, _ := in.Start()
	to, _ := in.End()
	now := time.Now()
	if to.After(now) {
		to = now.Add(time.Millisecond)
	}
	all := make([]*selected, len(of))
	for i, one := range of {
		all[i] = &selected{series: one}
	}
	if !from.Before(to) {
		return all, nil
	}
	begin := a.grid.Prev(from)
	if begin.Before(time.UnixMilli(0)) {
		begin = time.UnixMilli(0)
	}
	err := parallel(ctx, len(of), func(ctx context.Context, i int) error {
		for bucket, err := range a.buckets(ctx, s.store, id, of[i].entity, tsdb.Between(begin, to)) {
			if err != nil {
				return err
			}
			if err := b.takeSamples(1); err != nil {
				return err
			}
			sum := bucket.Values[a.measure]
			if bucket.End.Before(from) || !bucket.End.Before(to) || sum.Count == 0 || sum.Missing&a.needs != 0 || sum.Overflow {
				continue
			}
			all[i].points.add(bucket.End.UnixMilli(), sample{float: a.value(sum)})
		}
		all[i].points.reverse()
		return nil
	})
	return all, err
}
