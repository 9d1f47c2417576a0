package main

import (
	"context"
	"iter"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/under"
)

func (s *mappedSource) read(ctx context.Context, id tenant.ID, of []*series, most bool, in tsdb.Interval, b *budget) ([]*selected, error) {
	own := of[0].from.(*from)
	if own.texts != nil {
		return s.readTexts(ctx, id, own.metric, of, in, b)
	}
	if own.aggregate != nil {
		return s.readBuckets(ctx, id, own.metric, of, in, b)
	}
	repo := own.number.schema.For(s.store, id)
	all, byEntity := make([]*selected, len(of)), make(map[tsdb.Entity]*selected, len(of))
	for i, one := range of {
		all[i] = &selected{series: one}
		byEntity[one.entity] = all[i]
		most = most && one.from.(*from).prefix == own.prefix
	}
	add := func(to *selected, points iter.Seq2[tsdb.Point[codec.Value], error]) error {
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
			x, ok := p.Value.Number()
			if one == nil || !ok {
				continue
			}
			if err := b.takeSamples(1); err != nil {
				return err
			}
			one.points.add(p.Time.UnixMilli(), sample{float: x})
		}
		return nil
	}
	var err error
	if most && len(of) >= togetherFrom {
		parts := own.parts(of)
		err = parallel(ctx, len(parts), func(ctx context.Context, i int) error { return add(nil, under.Range(ctx, repo, parts[i], in)) })
	} else {
		err = parallel(ctx, len(of), func(ctx context.Context, i int) error { return add(all[i], repo.Range(ctx, of[i].entity, in)) })
	}
	for _, one := range all {
		one.points.reverse()
	}
	return all, err
}

// mostParts is into how many parts a read of many series is divided.
const mostParts = 8

// parts returns prefixes that together have the series of one prefix, so that they are read at the same time: one for each value of the
// next key field, if there are a few with many series each.
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

// readTexts returns a series with the value 1 for each set of texts that the points of an entity have. A series ends when a point has
// other texts, so an entity never has two at once, in spite of the lookback.
func (s *mappedSource) readTexts(ctx context.Context, id tenant.ID, m *metric, of []*series, in tsdb.Interval, b *budget) ([]*selected, error) {
	parts := make([][]*selected, len(of))
	err := parallel(ctx, len(of), func(ctx context.Context, i int) error {
		byTexts := map[string]*selected{}
		var newer *selected // of the point before, which is the newer one
		var since int64     // time of that point
		for p, err := range m.whole.For(s.store, id).Range(ctx, of[i].entity, in) {
			if _, bad := asPointError(err); bad {
				continue
			}
			if err != nil {
				return err
			}
			if err := b.takeSamples(1); err != nil {
				return err
			}
			ls := m.withTexts(of[i].labels, p.Value)
			key := string(ls.Bytes(nil))
			one := byTexts[key]
			if one == nil {
				if err := b.takeSeries(1); err != nil {
					return err
				}
				one = &selected{series: &series{labels: ls, entity: of[i].entity}}
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
	var all []*selected
	for _, part := range parts {
		all = append(all, part...)
	}
	return all, err
}

// withTexts adds the texts of a payload to labels.
func (m *metric) withTexts(ls labels.Labels, fields codec.Record) labels.Labels {
	b := labels.NewBuilder(ls)
	for _, t := range m.texts {
		if v, ok := fields.Lookup(strings.Join(t.path, ".")); ok {
			if text, isText := v.Str(); isText {
				b.Set(t.label, text)
			}
		}
	}
	return b.Labels()
}

// complete returns the series of texts as they are now: with the texts of each entity's newest point.
func (s *mappedSource) complete(ctx context.Context, id tenant.ID, of []*series) ([]*series, error) {
	m := of[0].from.(*from).metric
	entities := make([]tsdb.Entity, len(of))
	for i, one := range of {
		entities[i] = one.entity
	}
	found, err := m.whole.For(s.store, id).LatestMany(ctx, entities)
	if found == nil {
		return nil, err
	}
	out := make([]*series, len(of))
	for i, one := range of {
		out[i] = one
		if found[i].Err == nil {
			out[i] = &series{labels: m.withTexts(one.labels, found[i].Point.Value), entity: one.entity, from: one.from}
		}
	}
	return out, nil
}
