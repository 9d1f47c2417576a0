package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// mapped is a dataset of another program as metrics: trucks_speed for the field speed of the dataset trucks. Its key
// fields are labels.
type mapped struct {
	dataset   tsdb.Dataset
	described dynamic.Description
	of        string   // its name
	name      string   // of its metrics
	labels    []string // of the key fields
	options   dynamic.Options
	whole     *tsdb.Schema[codec.Record] // nil if its payloads cannot be read
	entities  *tsdb.Schema[struct{}]     // of what can be listed, and of the rollups
	stored    map[string]*rollup.Rollup[struct{}]
	rollups   map[string]*rollupMetric // by the name of the metric

	mu      sync.Mutex
	numbers map[string]*number // by their fields
}

// mappedSource is all datasets of the catalogue but that of remote write. It implements source.
type mappedSource struct {
	store     *tsdb.Store
	catalogue *catalogue
	fields    *cache[*fields]   // by the name of the dataset
	entities  *cache[[]*series] // by dataset, prefix and span; the labels are those of the key
	series    *cache[[]*series] // by metric, prefix and span
}

// sampledFor is how long the fields of a tenant's payloads are used before they are sampled again.
const sampledFor = time.Minute

func newMappedSource(c *catalogue) *mappedSource {
	return &mappedSource{c.store, c, newCache[*fields](sampledFor), newCache[[]*series](listedFor), newCache[[]*series](listedFor)}
}

// forget drops all that is cached of a tenant.
func (s *mappedSource) forget(id tenant.ID) {
	s.fields.forget(id)
	s.entities.forget(id)
	s.series.forget(id)
}

func (s *mappedSource) fieldsOf(ctx context.Context, id tenant.ID, m *mapped) (*fields, error) {
	return s.fields.get(ctx, id, m.of, func(ctx context.Context) (*fields, int, error) {
		f, err := m.fieldsOf(ctx, s.store, id)
		return f, sampled, err
	})
}

func (s *mappedSource) names(ctx context.Context, id tenant.ID) ([]string, error) {
	var names []string
	for _, m := range s.catalogue.current(ctx) {
		f, err := s.fieldsOf(ctx, id, m)
		if err != nil {
			return nil, err
		}
		for name := range f.numbers {
			names = append(names, name)
		}
		for name := range f.histograms {
			if f.numbers[name] == nil {
				names = append(names, name)
			}
		}
		if len(f.texts) > 0 {
			names = append(names, m.name+infoSuffix)
		}
		for name, a := range m.rollups {
			some := !a.events && len(f.numbers)+len(f.texts) > 0
			if !some { // its payloads cannot be read, the tenant has none, or events are added, which need not be points
				entities, err := s.entitiesUnder(ctx, id, m, a, tsdb.AllEntities(), span{})
				if err != nil {
					return nil, err
				}
				some = len(entities) > 0
			}
			if some {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// metric is what a name stands for: a number, texts, or an aggregate of a rollup. Without them it is a histogram, or a
// name that no field of the newest payloads makes: their points are read whole. Older payloads may have such a field.
type metric struct {
	*mapped
	name      string
	number    *number
	texts     []text
	aggregate *rollupMetric
}

// isInfo reports whether the name is that of texts.
func (m *metric) isInfo() bool { return m.name == m.mapped.name+infoSuffix }

// find returns the metric of a name, or nil. A name that stands for two things is an error. Others are the metrics that
// the name would be if older payloads had the field.
func (s *mappedSource) find(ctx context.Context, id tenant.ID, name string) (found *metric, others []*metric, err error) {
	for _, m := range s.catalogue.current(ctx) {
		if a := m.rollups[name]; a != nil {
			return &metric{mapped: m, name: name, aggregate: a}, nil, nil // no field has a colon in its metric
		}
		if m.whole == nil || name != m.name && !strings.HasPrefix(name, m.name+"_") {
			continue
		}
		f, err := s.fieldsOf(ctx, id, m)
		if err != nil {
			return nil, nil, err
		}
		if both := f.clash[name]; both != "" {
			return nil, nil, clashError(name, both)
		}
		one := &metric{mapped: m, name: name, number: f.numbers[name]}
		_, isHistogram := f.histograms[name]
		switch {
		case isHistogram:
			one.number = nil // some points may have a number
		case one.number == nil && one.isInfo():
			one.texts = f.texts
		}
		if one.number == nil && one.texts == nil && !isHistogram {
			others = append(others, one)
			continue
		}
		if found != nil {
			return nil, nil, clashError(name, bothDatasets(found.of, m.of))
		}
		found = one
	}
	return found, others, nil
}

func bothDatasets(a, b string) string {
	return fmt.Sprintf("a field of dataset %s and one of dataset %s", a, b)
}

// from is what the source keeps of a series.
type from struct {
	*metric
	prefix tsdb.Prefix // under which it was listed
	depth  int         // how many parts of keys the prefix has
}

func (s *mappedSource) list(ctx context.Context, id tenant.ID, name string, matchers []*labels.Matcher, when span) ([]*series, error) {
	m, _, err := s.find(ctx, id, name)
	if err != nil || m == nil {
		return nil, err
	}
	return s.seriesOf(ctx, id, m, matchers, when)
}

func (s *mappedSource) candidates(ctx context.Context, id tenant.ID, name string, matchers []*labels.Matcher) (all []*series, err error) {
	m, others, err := s.find(ctx, id, name)
	if err != nil {
		return nil, err
	}
	if m != nil {
		others = []*metric{m}
	}
	for _, m := range others {
		part, err := s.seriesOf(ctx, id, m, matchers, span{})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// seriesOf returns the series of a metric that may match.
func (s *mappedSource) seriesOf(ctx context.Context, id tenant.ID, m *metric, matchers []*labels.Matcher, when span) (all []*series, err error) {
	if m.aggregate != nil {
		when = span{} // a rollup is older than the points that are left
	}
	prefixes, depth := m.prefixes(matchers)
	for _, p := range prefixes {
		part, err := s.series.get(ctx, id, m.name+"\x00"+m.of+"\x00"+p.String()+when.String(), func(ctx context.Context) ([]*series, int, error) {
			entities, err := s.entitiesUnder(ctx, id, m.mapped, m.aggregate, p, when)
			if err != nil {
				return nil, 0, err
			}
			own := from{m, p, depth}
			open := m.number == nil && (m.isInfo() || m.mayBeBuckets())
			b := labels.NewBuilder(labels.EmptyLabels())
			part := make([]*series, len(entities))
			for i, e := range entities {
				b.Reset(e.labels)
				part[i] = &series{labels: b.Set(model.MetricNameLabel, m.name).Labels(), entity: e.entity, from: &own, open: open}
			}
			return part, len(part), nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// entitiesUnder returns the entities under a prefix that have points in a span, with the labels of their keys. For an
// aggregate of events they are those that have events.
func (s *mappedSource) entitiesUnder(ctx context.Context, id tenant.ID, m *mapped, a *rollupMetric, p tsdb.Prefix, when span) ([]*series, error) {
	if when.ends() {
		all, err := s.entitiesUnder(ctx, id, m, a, p, span{})
		if err != nil {
			return nil, err
		}
		when = when.of(len(all))
	}
	repo, of := m.entities.For(s.store, id), m.of
	if a != nil && a.events {
		of += "\x00" + a.rollup.Name()
	}
	return s.entities.get(ctx, id, of+"\x00"+p.String()+when.String(), func(ctx context.Context) ([]*series, int, error) {
		var all []*series
		parts, into := make([]string, len(m.labels)), make([]any, len(m.labels))
		for i := range parts {
			into[i] = &parts[i]
		}
		b := labels.NewScratchBuilder(len(parts))
		found := entitiesIn(ctx, repo, p, when)
		if a != nil && a.events {
			found = rollup.For(a.rollup, repo).Entities(ctx, p)
		}
		for e, err := range found {
			if err != nil {
				return nil, 0, err
			}
			if m.dataset.Scan(e, into...) != nil {
				copy(parts, e.Parts()) // parts that do not fit are shown as stored
			}
			b.Reset()
			for i, part := range parts {
				b.Add(m.labels[i], part)
			}
			b.Sort()
			all = append(all, &series{labels: b.Labels(), entity: e})
			if len(all) > mostCached {
				return nil, 0, tooManySeriesError{}
			}
		}
		return all, len(all), nil
	})
}

// mostPrefixes is into how many prefixes matchers are turned.
const mostPrefixes = 64

// prefixes returns the prefixes under which all matching entities are, and how many parts of keys they have. Matchers
// that list the values of the first key fields decide.
func (m *mapped) prefixes(matchers []*labels.Matcher) (out []tsdb.Prefix, depth int) {
	all := [][]any{nil}
	for _, label := range m.labels[:len(m.labels)-1] {
		values := valuesOf(label, matchers)
		if values == nil || len(all)*len(values) > mostPrefixes {
			break
		}
		var longer [][]any
		for _, parts := range all {
			for _, v := range values {
				longer = append(longer, append(slices.Clone(parts), v))
			}
		}
		all = longer
	}
	if len(all[0]) == 0 {
		return []tsdb.Prefix{tsdb.AllEntities()}, 0
	}
	for _, parts := range all {
		if p, err := m.dataset.Prefix(parts...); err == nil && !slices.Contains(out, p) { // a value that the field cannot have matches nothing
			out = append(out, p)
		}
	}
	return out, len(all[0])
}

// valuesOf returns the values that matchers allow for a label, or nil for any.
func valuesOf(label string, matchers []*labels.Matcher) []string {
	for _, m := range matchers {
		if m.Name != label || m.Matches("") {
			continue
		}
		if set := setOf(m); set != nil {
			slices.Sort(set)
			return slices.Compact(set)
		}
	}
	return nil
}

func asPointError(err error) (*tsdb.PointError, bool) { return errors.AsType[*tsdb.PointError](err) }
