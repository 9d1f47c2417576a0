package main

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

func (s *mappedSource) read(ctx context.Context, id tenant.ID, of []*series, most bool, in tsdb.Interval, b *budget) (all []*selected, err error) {
	dataset := "" // that has samples
	for len(of) > 0 {
		own := of[0].from.(*from)
		n := 1
		for n < len(of) && of[n].from.(*from).of == own.of {
			n++
		}
		r := mappedRead{s, id, own, of[:n], most, in, b}
		found, err := r.read(ctx)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, func(one *selected) bool { return len(one.points.times) > 0 }) {
			if dataset != "" {
				return nil, clashError(own.name, bothDatasets(dataset, own.of))
			}
			dataset = own.of
		}
		all = append(all, found...)
		of = of[n:]
	}
	return all, nil
}

// mappedRead is a read of series of one metric.
type mappedRead struct {
	*mappedSource
	id     tenant.ID
	metric *from // of the first series
	of     []*series
	most   bool
	in     tsdb.Interval
	budget *budget
}

func (r *mappedRead) read(ctx context.Context) ([]*selected, error) {
	m := r.metric.metric
	switch {
	case m.aggregate != nil:
		return r.readBuckets(ctx, r.id, m, r.of, r.in, r.budget)
	case m.texts != nil:
		return r.readTexts(ctx)
	case m.number != nil:
		return r.readNumber(ctx, m.number)
	}
	return r.search(ctx)
}

func (r *mappedRead) readNumber(ctx context.Context, n *number) ([]*selected, error) {
	return readPoints(ctx, r, n.schema, func(to *selected, at int64, v codec.Value) error {
		x, ok := v.Number()
		if !ok {
			return nil
		}
		return r.add(to, at, sample{float: x})
	})
}

// add adds a sample, which counts against the limit.
func (r *mappedRead) add(to *selected, at int64, s sample) error {
	if err := r.budget.takeSamples(s.weight()); err != nil {
		return err
	}
	to.points.add(at, s)
	return nil
}

// search reads the points whole, and finds the metric in them: a histogram, or a field that none of the newest ones has.
func (r *mappedRead) search(ctx context.Context) ([]*selected, error) {
	m := r.metric.metric
	var mu sync.Mutex
	found := map[string]kinds{} // of fields that make the metric
	note := func(name string, isNumber bool) {
		mu.Lock()
		defer mu.Unlock()
		k := found[name]
		found[name] = kinds{k.number || isNumber, k.text || !isNumber}
	}
	buckets := map[*series]*bucketSeries{}
	if m.mayBeBuckets() {
		for _, one := range r.of {
			buckets[one] = newBucketSeries(one)
		}
	}
	all, err := readPoints(ctx, r, m.whole, func(to *selected, at int64, fields codec.Record) error {
		var s sample
		some := false
		for name, v := range fields.All() {
			if histogram, ok := strings.CutSuffix(name, scaleSuffix); ok && histogram != "" && m.isMetricOf(m.name, histogram) {
				if h := nativeHistogram(fields, histogram); h != nil && !some {
					s, some = sample{fraction: h}, true
					note(histogramName{histogram, true}.shownAs(), true)
				}
			}
			if !m.isMetricOf(m.name, name) {
				continue
			}
			n, isNumber := v.AsNumber().Number()
			if isNumber {
				s, some = sample{float: n}, true
			}
			note(name, isNumber)
		}
		if b := buckets[to.series]; b != nil {
			err := b.add(r, at, fields, func(histogram string) { note(histogramName{field: histogram}.shownAs(), true) })
			if err != nil {
				return err
			}
		}
		if !some {
			return nil
		}
		return r.add(to, at, s)
	})
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(found))
	if len(names) == 1 && found[names[0]].text && m.options.Messages != nil { // it may be an enum, which has a number, too
		n, err := m.mapped.number(names[0])
		if err != nil {
			return nil, err
		}
		return r.readNumber(ctx, n)
	}
	numbers := slices.DeleteFunc(names, func(name string) bool { return !found[name].number })
	switch {
	case len(numbers) > 1:
		return nil, clashError(m.name, bothFields(numbers[0], numbers[1], m.of))
	case len(numbers) == 0 && m.isInfo():
		return r.readTexts(ctx)
	}
	for _, one := range r.of {
		if b := buckets[one]; b != nil {
			for _, s := range b.list {
				s.points.reverse()
			}
			all = append(all, b.list...)
		}
	}
	return all, nil
}

// readPoints returns the series with what add adds of each point, newest first.
func readPoints[T any](ctx context.Context, r *mappedRead, schema *tsdb.Schema[T], add func(to *selected, at int64, v T) error) ([]*selected, error) {
	repo, most := schema.For(r.store, r.id), r.most
	all, byEntity := make([]*selected, len(r.of)), make(map[tsdb.Entity]*selected, len(r.of))
	for i, one := range r.of {
		all[i] = &selected{series: one}
		byEntity[one.entity] = all[i]
		most = most && one.from.(*from).prefix == r.metric.prefix
	}
	read := func(to *selected, points iter.Seq2[tsdb.Point[T], error]) error {
		for p, err := range points {
			if _, bad := asPointError(err); bad {
				continue // a payload that cannot be read has no number
			}
			if err != nil {
				return err
			}
			one := to
			if one == nil {
				one = byEntity[p.Entity]
			}
			if one == nil {
				continue
			}
			if err := add(one, p.Time.UnixMilli(), p.Value); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if most && len(r.of) >= togetherFrom {
		parts := r.metric.parts(r.of)
		err = parallel(ctx, len(parts), func(ctx context.Context, i int) error { return read(nil, repo.Under(parts[i]).Range(ctx, r.in)) })
	} else {
		err = parallel(ctx, len(r.of), func(ctx context.Context, i int) error { return read(all[i], repo.Range(ctx, r.of[i].entity, r.in)) })
	}
	for _, one := range all {
		one.points.reverse()
	}
	return all, err
}

// mostParts is into how many parts a read of many series is divided.
const mostParts = 8

// parts returns prefixes that together have the series of one prefix, so that they are read at the same time: one for
// each value of the next key field, if there are a few with many series each.
func (f *from) parts(of []*series) []tsdb.Prefix {
	if f.depth+1 >= len(f.labels) {
		return []tsdb.Prefix{f.prefix}
	}
	var parts []tsdb.Prefix
	for _, one := range of {
		p := tsdb.NewPrefix(one.entity.Parts()[:f.depth+1]...)
		if len(parts) > 0 && parts[len(parts)-1] == p {
			continue // series are in the order of their keys
		}
		if parts = append(parts, p); len(parts) > mostParts || len(of) < len(parts)*togetherFrom {
			return []tsdb.Prefix{f.prefix}
		}
	}
	return parts
}

// readTexts returns a series with the value 1 for each set of texts that the points of an entity have. A series ends
// when a point has other texts, so an entity never has two at once, in spite of the lookback. If neither a newest point
// nor one that is read has a text, there are no series.
func (r *mappedRead) readTexts(ctx context.Context) ([]*selected, error) {
	m := r.metric.metric
	parts := make([][]*selected, len(r.of))
	var some atomic.Bool // a point has a text
	err := parallel(ctx, len(r.of), func(ctx context.Context, i int) error {
		byTexts := map[string]*selected{}
		var newer *selected // of the point before, which is the newer one
		var since int64     // time of that point
		for p, err := range m.whole.For(r.store, r.id).Range(ctx, r.of[i].entity, r.in) {
			if _, bad := asPointError(err); bad {
				continue
			}
			if err != nil {
				return err
			}
			if err := r.budget.takeSamples(1); err != nil {
				return err
			}
			ls := m.withTexts(r.of[i].labels, p.Value)
			if ls.Len() > r.of[i].labels.Len() {
				some.Store(true)
			}
			key := string(ls.Bytes(nil))
			one := byTexts[key]
			if one == nil {
				if err := r.budget.takeSeries(1); err != nil {
					return err
				}
				one = &selected{series: &series{labels: ls, entity: r.of[i].entity, open: true}}
				byTexts[key] = one
				parts[i] = append(parts[i], one)
			}
			if newer != nil && newer != one {
				one.points.add(since, sample{float: math.Float64frombits(value.StaleNaN)})
			}
			newer, since = one, p.Time.UnixMilli()
			one.points.add(since, sample{float: 1})
		}
		for _, one := range parts[i] {
			one.points.reverse()
		}
		return nil
	})
	if err != nil || m.texts == nil && !some.Load() {
		return nil, err
	}
	return slices.Concat(parts...), nil
}

// withTexts adds the texts of a payload to labels: those that the newest payloads have, too, and then all others.
func (m *metric) withTexts(ls labels.Labels, fields codec.Record) labels.Labels {
	b := labels.NewBuilder(ls)
	used := m.takenLabels()
	known := map[string]bool{}
	for _, t := range m.texts {
		used[t.label], known[t.field] = true, true
		v, _ := fields.Lookup(t.field)
		if text, ok := v.Str(); ok {
			b.Set(t.label, text)
		}
	}
	for name, v := range fields.All() {
		if text, ok := v.Str(); ok && !known[name] {
			if _, isPart := histogramOf(fields, name, v); !isPart {
				b.Set(used.label(name), text)
			}
		}
	}
	return b.Labels()
}

// newest are the newest points of entities that a request has read, by dataset: the metrics of a dataset share them.
type newest map[string]map[tsdb.Entity]codec.Record

// complete returns the series of texts, or of buckets, as they are now: as each entity's newest point has them.
func (s *mappedSource) complete(ctx context.Context, id tenant.ID, of []*series, read newest) ([]*series, error) {
	m := of[0].from.(*from).metric
	known := read[m.of]
	if known == nil {
		known = map[tsdb.Entity]codec.Record{}
		read[m.of] = known
	}
	var lacking []tsdb.Entity
	for _, one := range of {
		if _, ok := known[one.entity]; !ok {
			lacking = append(lacking, one.entity)
		}
	}
	found, err := m.whole.For(s.store, id).LatestMany(ctx, lacking, 1)
	if found == nil && len(lacking) > 0 {
		return nil, err
	}
	for i, e := range lacking {
		var value codec.Record // of an entity without a point that can be read
		if found[i].Err == nil && len(found[i].Points) > 0 {
			value = found[i].Points[0].Value
		}
		known[e] = value
	}
	out := make([]*series, 0, len(of))
	for _, one := range of {
		if m.mayBeBuckets() {
			out = append(out, m.withBuckets(one, known[one.entity])...)
		} else {
			out = append(out, &series{labels: m.withTexts(one.labels, known[one.entity]), entity: one.entity, from: one.from})
		}
	}
	return out, nil
}
