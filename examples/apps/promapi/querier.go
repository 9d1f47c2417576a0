package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// source is a kind of series: those of remote write, or those of the other datasets. A source reads only what belongs
// to the tenant of the call.
type source interface {
	// names returns the names of the tenant's metrics, in any order.
	names(ctx context.Context, id tenant.ID) ([]string, error)
	// list returns the series of a metric that may match, and that have samples in a span. The caller filters them, and
	// does not change them.
	list(ctx context.Context, id tenant.ID, metric string, matchers []*labels.Matcher, when span) ([]*series, error)
	// candidates is list for a query that names the metric, which may be one that names does not return: the series may
	// have no samples.
	candidates(ctx context.Context, id tenant.ID, metric string, matchers []*labels.Matcher) ([]*series, error)
	// read returns the samples of series of one metric. Most reports that they are most series of the metric.
	read(ctx context.Context, id tenant.ID, of []*series, most bool, in reach, b *budget) ([]*selected, error)
	// complete returns open series with the labels that they have now. One may be several. The points for it are read
	// unless the request has read them.
	complete(ctx context.Context, id tenant.ID, of []*series, read *newest) ([]*series, error)
	// forget drops what is cached of a tenant.
	forget(id tenant.ID)
}

// series is one series. It is immutable.
type series struct {
	labels labels.Labels
	entity tsdb.Entity
	from   any  // what its source keeps of it
	open   bool // its points have more labels
}

// budget bounds what one request may read. It is safe for concurrent use.
type budget struct {
	series, samples atomic.Int64 // left
}

func newBudget(series, samples int64) *budget {
	b := new(budget)
	b.series.Store(series)
	b.samples.Store(samples)
	return b
}

// tooManySeriesError says that a request selects more series than it may.
type tooManySeriesError struct{}

func (tooManySeriesError) Error() string {
	return "the request selects more series than -max-series allows, or a metric has too many to list; add matchers"
}

func (b *budget) takeSeries(n int) error {
	if b.series.Add(-int64(n)) < 0 {
		return tooManySeriesError{}
	}
	return nil
}

func (b *budget) takeSamples(n int) error {
	if b.samples.Add(-int64(n)) < 0 {
		return promql.ErrTooManySamples("the store; -max-samples is the limit")
	}
	return nil
}

// queryable is the series of one tenant, for one request. It implements storage.Queryable.
type queryable struct {
	tenant   tenant.ID
	sources  []source
	budget   *budget
	lookback time.Duration // how long a value counts
}

// reach is the time of the samples that are read.
type reach struct {
	tsdb.Interval
	from, to int64 // the same in ms, both included
	lookback int64 // how long a value counts, in ms
	every    bool  // all samples count, not only the newest at each time of the evaluation
}

// once reports whether only the newest sample counts: the expression is evaluated at one time.
func (r reach) once() bool { return !r.every && r.to-r.from < r.lookback }

func (q *queryable) Querier(from, to int64) (storage.Querier, error) {
	return &querier{queryable: q, from: from, to: to}, nil
}

// querier implements storage.Querier.
type querier struct {
	*queryable
	from, to int64 // in ms, both included
	when     span  // for which series are listed
	newest   *newest
}

func (q *querier) Close() error { return nil }

// Select reads the samples of all series that match. It reads them before it returns, so that nothing keeps running
// after it.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	from, to, every := q.from, q.to, true
	if hints != nil {
		from, to, every = hints.Start, hints.End, hints.Range > 0
	}
	found, err := q.samples(ctx, from, to, every, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return &seriesList{left: found}
}

// samples returns the series that match and have samples from one time to another, both included, in the order of their
// labels. Every is reach.every.
func (q *querier) samples(ctx context.Context, from, to int64, every bool, matchers []*labels.Matcher) ([]*selected, error) {
	if to < 0 || to < from {
		return nil, nil
	}
	from, to = max(0, from), min(to, lastTime.UnixMilli())
	in := reach{tsdb.Between(time.UnixMilli(from), time.UnixMilli(to+1)), from, to, q.lookback.Milliseconds(), every} // the whole last millisecond
	var all []*selected
	written := map[string]bool{} // by remote write: their names are not searched in the payloads of other datasets
	list := func(src source, name string) ([]*series, error) {
		if written[name] {
			return src.list(ctx, q.tenant, name, matchers, span{})
		}
		found, err := src.candidates(ctx, q.tenant, name, matchers)
		written[name] = len(found) > 0
		return found, err
	}
	err := q.matching(ctx, matchers, list, func(src source, matching []*series, most bool) error {
		if err := q.budget.takeSeries(len(matching)); err != nil {
			return err
		}
		found, err := src.read(ctx, q.tenant, matching, most, in, q.budget)
		for _, s := range found {
			if len(s.points.times) > 0 && (!s.open || matches(s.labels, matchers)) {
				all = append(all, s)
			}
		}
		return stored(err)
	})
	slices.SortFunc(all, func(a, b *selected) int { return labels.Compare(a.labels, b.labels) })
	return all, err
}

// each calls visit with the matching series of each metric, with all their labels. They count against the limit of
// series.
func (q *querier) each(ctx context.Context, matchers []*labels.Matcher, visit func(matching []*series) error) error {
	if q.newest == nil {
		q.newest = newNewest(q.lookback, q.budget)
	}
	list := func(src source, name string) ([]*series, error) {
		return src.list(ctx, q.tenant, name, matchers, q.when)
	}
	return q.matching(ctx, matchers, list, func(src source, matching []*series, _ bool) error {
		if err := q.budget.takeSeries(len(matching)); err != nil {
			return err
		}
		if !matching[0].open {
			return visit(matching)
		}
		if err := q.budget.takeSamples(len(matching)); err != nil { // a point of each
			return err
		}
		all, err := src.complete(ctx, q.tenant, matching, q.newest)
		if err != nil {
			return stored(err)
		}
		if err := q.budget.takeSeries(max(0, len(all)-len(matching))); err != nil { // a bucket is a series
			return err
		}
		return visit(slices.DeleteFunc(all, func(s *series) bool { return !matches(s.labels, matchers) }))
	})
}

// matching calls visit with the listed series of each metric that match, as far as their labels are known, and whether
// they are most of it.
func (q *querier) matching(
	ctx context.Context, matchers []*labels.Matcher, list func(source, string) ([]*series, error), visit func(src source, matching []*series, most bool) error,
) error {
	for _, src := range q.sources {
		names, err := q.metrics(ctx, src, matchers)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			listed, err := list(src, name)
			if err != nil {
				return stored(err)
			}
			matching := listed
			if others := withoutName(matchers); len(others) > 0 {
				matching = nil
				for _, s := range listed {
					if s.matches(others) {
						matching = append(matching, s)
					}
				}
			}
			if len(matching) == 0 {
				continue
			}
			if err := visit(src, matching, 2*len(matching) > len(listed)); err != nil {
				return err
			}
		}
	}
	return nil
}

// metrics returns the names of the metrics that match. Names that matchers list are not looked up.
func (q *querier) metrics(ctx context.Context, src source, matchers []*labels.Matcher) ([]string, error) {
	var candidates []string
	listed := false
	for _, m := range matchers {
		if m.Name != model.MetricNameLabel {
			continue
		}
		if set := setOf(m); set != nil {
			candidates, listed = set, true
			break
		}
	}
	if !listed {
		var err error
		if candidates, err = src.names(ctx, q.tenant); err != nil {
			return nil, stored(err)
		}
	}
	return slices.Sorted(maps.Keys(fitting(candidates, matchers))), nil
}

// fitting returns those of some names of metrics that match.
func fitting(candidates []string, matchers []*labels.Matcher) map[string]bool {
	names := map[string]bool{}
	for _, name := range candidates {
		fits := name != ""
		for _, m := range matchers {
			fits = fits && (m.Name != model.MetricNameLabel || m.Matches(name))
		}
		if fits {
			names[name] = true
		}
	}
	return names
}

// setOf returns the values of a matcher that allows only these, or nil.
func setOf(m *labels.Matcher) []string {
	switch m.Type {
	case labels.MatchEqual:
		return []string{m.Value}
	case labels.MatchRegexp:
		return m.SetMatches()
	}
	return nil
}

func withoutName(matchers []*labels.Matcher) []*labels.Matcher {
	return slices.DeleteFunc(slices.Clone(matchers), func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })
}

// matches reports whether the series may match. Labels that an open one lacks are not compared.
func (s *series) matches(matchers []*labels.Matcher) bool {
	if !s.open {
		return matches(s.labels, matchers)
	}
	for _, m := range matchers {
		if v := s.labels.Get(m.Name); v != "" && !m.Matches(v) {
			return false
		}
	}
	return true
}

func matches(ls labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues returns the values of a label of the series that match.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values := map[string]bool{}
	if name == model.MetricNameLabel && len(withoutName(matchers)) == 0 {
		for _, src := range q.sources { // also for names that matchers list: there may be no such metric
			names, err := src.names(ctx, q.tenant)
			if err != nil {
				return nil, nil, stored(err)
			}
			maps.Copy(values, fitting(names, matchers))
		}
	} else if err := q.each(ctx, matchers, func(matching []*series) error {
		for _, s := range matching {
			if v := s.labels.Get(name); v != "" {
				values[v] = true
			}
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	return limited(slices.Sorted(maps.Keys(values)), hints), nil, nil
}

// LabelNames returns the names of the labels of the series that match.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names := map[string]bool{}
	err := q.each(ctx, matchers, func(matching []*series) error {
		for _, s := range matching {
			s.labels.Range(func(l labels.Label) { names[l.Name] = true })
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return limited(slices.Sorted(maps.Keys(names)), hints), nil, nil
}

func limited(list []string, hints *storage.LabelHints) []string {
	if hints != nil && hints.Limit > 0 && len(list) > hints.Limit {
		list = list[:hints.Limit]
	}
	return list
}

// errStored marks the errors of the store, which PromQL passes on.
var errStored = errors.New("read the store")

func stored(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errStored, err)
}
