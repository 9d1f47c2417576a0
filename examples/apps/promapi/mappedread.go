package main

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/value"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

func (s *mappedSource) read(ctx context.Context, id tenant.ID, of []*series, most bool, in reach, b *budget) (all []*selected, err error) {
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
	in     reach
	budget *budget
}

func (r *mappedRead) read(ctx context.Context) ([]*selected, error) {
	m := r.metric.metric
	switch {
	case m.aggregate != nil:
		return r.readBuckets(ctx, r.id, m, r.of, r.in.Interval, r.budget)
	case m.texts != nil:
		return r.readTexts(ctx)
	case m.number != nil:
		return r.readNumber(ctx, m.number)
	}
	return r.search(ctx)
}

func (r *mappedRead) readNumber(ctx context.Context, n *number) ([]*selected, error) {
	var newest []*selected
	left, err := r.fromHeads(ctx, func(one *series, f *tsdb.Fields[codec.Record]) (bool, error) {
		v, _ := f.Value.Lookup(n.field)
		at, ok := f.Times.Of(n.field)
		x, isNumber := v.AsNumber().Number()
		switch {
		case !ok || at.UnixMilli() < r.in.from: // no point of the interval has it
			return true, nil
		case !isNumber: // an older one of the interval may have a number
			return false, nil
		}
		to := &selected{series: one}
		newest = append(newest, to)
		return true, r.add(to, at.UnixMilli(), sample{float: x})
	})
	if err != nil || len(left.of) == 0 {
		return newest, err
	}
	add := func(to *selected, at int64, v codec.Value) error {
		if x, ok := v.Number(); ok {
			return r.add(to, at, sample{float: x})
		}
		return nil
	}
	all, err := []*selected(nil), error(nil)
	if r.metric.described.NullClears {
		all, err = readPoints(ctx, left, r.metric.whole, func(to *selected, at int64, fields codec.Record) error {
			v, _ := fields.Lookup(n.field)
			if r.ends(v) {
				return r.add(to, at, ended)
			}
			return add(to, at, v.AsNumber())
		})
	} else {
		all, err = readPoints(ctx, left, n.schema, add)
	}
	return append(newest, all...), err
}

// ended is the sample that ends a series.
var ended = sample{float: math.Float64frombits(value.StaleNaN)}

// ends reports whether a value says that the field has none from now on.
func (r *mappedRead) ends(v codec.Value) bool {
	return v.Kind() == codec.KindNull && r.metric.described.NullClears
}

// add adds a sample, which counts against the limit.
func (r *mappedRead) add(to *selected, at int64, s sample) error {
	if err := r.budget.takeSamples(s.weight()); err != nil {
		return err
	}
	to.points.add(at, s)
	return nil
}

// search reads the points whole, and finds the metric in them: a histogram, or a field that none of the newest ones
// has.
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
			switch {
			case isNumber:
				s, some = sample{float: n}, true
			case r.ends(v) && !some:
				s, some = ended, true
				continue
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
		err = parallel(ctx, len(parts), func(ctx context.Context, i int) error {
			return read(nil, repo.Under(parts[i]).Range(ctx, r.in.Interval))
		})
	} else {
		err = parallel(ctx, len(r.of), func(ctx context.Context, i int) error {
			return read(all[i], repo.Range(ctx, r.of[i].entity, r.in.Interval))
		})
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
