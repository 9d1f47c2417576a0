package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// rollupMetric is one aggregate of one measure of a rollup: a metric such as trucks:speed_kmh:avg_1h.
type rollupMetric struct {
	rollup  *rollup.Rollup[struct{}]
	events  bool // events are added to it, which need not be points
	measure int  // -1 for the number of points
	needs   window.Aggregates
	value   func(*window.Summary) float64
}

// unmeasured are the aggregates of which no metric is made.
var unmeasured = []string{"rate", "resets", "time_mean", "p95", "states"}

// addRollups adds the metrics of the rollups of the dataset. Only stored buckets are read, so a metric never has an old
// number.
func (m *mapped) addRollups() (err error) {
	m.rollups = map[string]*rollupMetric{}
	if m.stored, m.entities, err = dynamic.Rollups(m.dataset, m.options); err != nil {
		return err
	}
	for _, of := range m.described.Rollups {
		r := m.stored[of.Name]
		if r == nil {
			continue
		}
		width := promName(shortWidth(of.Every))
		events := of.Kind != "derived"
		if len(of.Measures) == 0 {
			if err := m.addAggregate(m.name+":count_"+width, &rollupMetric{rollup: r, events: events, measure: -1}); err != nil {
				return err
			}
		}
		for i, measure := range of.Measures {
			kept := map[string]bool{}
			for _, name := range measure.Aggregates {
				kept[name] = true
			}
			for _, a := range aggregate.All {
				suffix, needs := a.Name, a.Kept
				if suffix == "mean" {
					suffix, needs = "avg", window.Mean
				}
				if slices.Contains(unmeasured, a.Name) || !keeps(kept, needs) {
					continue
				}
				name := fmt.Sprintf("%s:%s:%s_%s", m.name, promName(measure.Name), suffix, width)
				if err := m.addAggregate(name, &rollupMetric{r, events, i, needs, a.Of}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *mapped) addAggregate(name string, a *rollupMetric) error {
	if other := m.rollups[name]; other != nil {
		return clashingNames(fmt.Sprintf("the rollups %s and %s of dataset %s would both make the metric %s", other.rollup.Name(), a.rollup.Name(), m.of, name))
	}
	m.rollups[name] = a
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
	for _, name := range strings.FieldsFunc(needs.String(), func(r rune) bool { return r == '+' }) {
		if !kept[name] {
			return false
		}
	}
	return true
}

// lastYear is the last year of the calendar of buckets.
const lastYear = 9999

// readBuckets returns the buckets that end in an interval, each at the time of its end. Buckets that are open, or that
// changed since they were stored, are left out. So are changes of which the number before the bucket is not known.
func (s *mappedSource) readBuckets(ctx context.Context, id tenant.ID, m *metric, of []*series, in tsdb.Interval, b *budget) ([]*selected, error) {
	a := m.aggregate
	from, _ := in.Start()
	to, _ := in.End()
	all := make([]*selected, len(of))
	for i, one := range of {
		all[i] = &selected{series: one}
	}
	if from.Year() > lastYear {
		return all, nil
	}
	buckets := rollup.For(a.rollup, m.entities.For(s.store, id))
	starts := tsdb.Between(maxTime(before(a.rollup.Grid(), from), epoch), to) // of the buckets that end in the interval, and some more
	err := parallel(ctx, len(of), func(ctx context.Context, i int) error {
		for bucket, err := range buckets.Buckets(ctx, of[i].entity, starts) {
			if err != nil {
				return err
			}
			if err := b.takeSamples(1); err != nil {
				return err
			}
			if v, ok := a.of(bucket); ok && !bucket.End.Before(from) && bucket.End.Before(to) {
				all[i].points.add(bucket.End.UnixMilli(), sample{float: v})
			}
		}
		all[i].points.reverse()
		return nil
	})
	return all, err
}

// of returns the value of a bucket, if it is known.
func (a *rollupMetric) of(bucket window.Bucket) (float64, bool) {
	switch {
	case bucket.Open:
		return 0, false
	case a.measure < 0:
		return float64(bucket.Points), bucket.Points > 0 && bucket.Incomplete == nil
	}
	sum := &bucket.Values[a.measure]
	if sum.Count == 0 || sum.Missing&a.needs != 0 || sum.Overflow {
		return 0, false
	}
	if a.needs&(window.Delta|window.Increase) != 0 && !sum.Since.Before(sum.FirstTime) {
		return 0, false
	}
	return a.value(sum), true
}

// before returns the start of the bucket before the one that contains t.
func before(g window.Grid, t time.Time) time.Time { return g.Start(g.Start(t).Add(-1)) }
