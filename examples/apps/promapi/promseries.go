package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// promSource is the series that remote write stores. It implements source.
type promSource struct {
	store  *tsdb.Store
	schema *tsdb.Schema[sample]
	series *cache[map[string]*series] // of one metric, by the text of their labels
	metric *cache[[]string]
	active *cache[map[tsdb.Entity]bool] // with samples in a span, by metric and span
}

func newPromSource(store *tsdb.Store, schema *tsdb.Schema[sample]) *promSource {
	return &promSource{store, schema, newCache[map[string]*series](listedFor), newCache[[]string](listedFor), newCache[map[tsdb.Entity]bool](listedFor)}
}

// listedFor is how long lists of series are used before they are read again.
const listedFor = 30 * time.Second

// atOnce is how many requests of a query read series at the same time.
const atOnce = 16

// names returns the parts of the keys after the kind. It costs a few rows for each name, whatever the number of its
// series.
func (p *promSource) names(ctx context.Context, id tenant.ID) ([]string, error) {
	return p.metric.get(ctx, id, "", func(ctx context.Context) ([]string, int, error) {
		var names []string
		for name, err := range p.schema.For(p.store, id).Under(tsdb.NewPrefix(samplesKind)).Children(ctx) {
			if err != nil {
				return nil, 0, err
			}
			if names = append(names, name); len(names) > mostCached {
				return nil, 0, tooManySeriesError{}
			}
		}
		return names, len(names), nil
	})
}

func (p *promSource) list(ctx context.Context, id tenant.ID, metric string, _ []*labels.Matcher, when span) ([]*series, error) {
	all, err := p.series.get(ctx, id, metric, func(ctx context.Context) (map[string]*series, int, error) {
		all := map[string]*series{}
		for e, err := range p.schema.For(p.store, id).Under(tsdb.NewPrefix(samplesKind, metric)).Entities(ctx, tsdb.AllTime()) {
			if err != nil {
				return nil, 0, err
			}
			s, err := seriesOf(e)
			if err != nil {
				return nil, 0, fmt.Errorf("metric %.100q: %w", metric, err)
			}
			all[s.from.(string)] = s
			if len(all) > mostCached {
				return nil, 0, tooManySeriesError{}
			}
		}
		return all, len(all), nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]*series, 0, len(all))
	for _, s := range all {
		list = append(list, s)
	}
	return p.inSpan(ctx, id, metric, list, when)
}

func (p *promSource) candidates(ctx context.Context, id tenant.ID, metric string, matchers []*labels.Matcher) ([]*series, error) {
	return p.list(ctx, id, metric, matchers, span{})
}

// seriesOf returns the series of an entity.
func seriesOf(e tsdb.Entity) (*series, error) {
	parts := e.Parts()
	ls, err := parseLabels(parts[1], parts[2])
	return &series{labels: ls, entity: e, from: parts[2]}, err
}

// noteWritten drops the lists that lack a series which was just written, so that a client finds it at once.
func (p *promSource) noteWritten(id tenant.ID, ls labels.Labels) {
	name := ls.Get(model.MetricNameLabel)
	if names, ok := p.metric.peek(id, ""); ok {
		if _, found := slices.BinarySearchFunc(names, name, strings.Compare); !found {
			p.metric.drop(id, "")
		}
	}
	if all, ok := p.series.peek(id, name); ok {
		var text [256]byte
		if all[string(appendLabels(text[:0], ls))] == nil {
			p.series.drop(id, name)
			p.active.forget(id)
		}
	}
}

// forget drops all that is cached of a tenant.
func (p *promSource) forget(id tenant.ID) {
	p.series.forget(id)
	p.metric.forget(id)
	p.active.forget(id)
}

// complete does nothing: the labels of these series are in their keys.
func (p *promSource) complete(_ context.Context, _ tenant.ID, of []*series, _ *newest) ([]*series, error) {
	return of, nil
}

// togetherFrom is the number of series from which most series of a metric are read together.
const togetherFrom = 8

func (p *promSource) read(ctx context.Context, id tenant.ID, of []*series, most bool, when reach, b *budget) ([]*selected, error) {
	repo, in := p.schema.For(p.store, id), when.Interval
	if most && len(of) >= togetherFrom {
		return p.readTogether(ctx, repo, of, in, b)
	}
	all := make([]*selected, len(of))
	err := parallel(ctx, len(of), func(ctx context.Context, i int) error {
		all[i] = &selected{series: of[i]}
		for pt, err := range repo.Range(ctx, of[i].entity, in) {
			if err != nil {
				return err
			}
			if err := b.takeSamples(pt.Value.weight()); err != nil {
				return err
			}
			all[i].points.add(pt.Time.UnixMilli(), pt.Value)
		}
		all[i].points.reverse()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, p.hint(ctx, repo, all, in)
}

// readTogether reads all series of a metric, and leaves those out that do not match.
func (p *promSource) readTogether(ctx context.Context, repo *tsdb.Repository[sample], of []*series, in tsdb.Interval, b *budget) ([]*selected, error) {
	byEntity := make(map[tsdb.Entity]*selected, len(of))
	all := make([]*selected, len(of))
	for i, s := range of {
		all[i] = &selected{series: s}
		byEntity[s.entity] = all[i]
	}
	prefix := tsdb.NewPrefix(of[0].entity.Parts()[:2]...)
	for pt, err := range repo.Under(prefix).Range(ctx, in) {
		if err != nil {
			return nil, err
		}
		s := byEntity[pt.Entity]
		if s == nil {
			continue
		}
		if err := b.takeSamples(pt.Value.weight()); err != nil {
			return nil, err
		}
		s.points.add(pt.Time.UnixMilli(), pt.Value)
	}
	for _, s := range all {
		s.points.reverse()
	}
	return all, p.hint(ctx, repo, all, in)
}

// parallel calls do for 0 to n-1, several at a time, and returns the first error after all have ended.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error { return do(inner, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err() // some were not called, perhaps
}
