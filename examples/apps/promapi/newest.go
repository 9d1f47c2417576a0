package main

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// fromHeads calls take with the newest fields of each entity, if the dataset's heads have them and the expression is
// evaluated at one time. It returns the read without those series that take could use. Entities that have newer points
// than the read are left, too.
func (r *mappedRead) fromHeads(ctx context.Context, take func(one *series, f *tsdb.Fields[codec.Record]) (bool, error)) (left *mappedRead, err error) {
	if !r.in.once() || !r.metric.headsHaveFields() {
		return r, nil
	}
	entities := make([]tsdb.Entity, len(r.of))
	for i, one := range r.of {
		entities[i] = one.entity
	}
	found, err := r.metric.whole.For(r.store, r.id).LatestFieldsMany(ctx, entities, tsdb.FieldOptions{})
	if found == nil {
		return nil, err
	}
	without := *r
	without.of, without.most = nil, false
	for i := range found {
		f, ok := &found[i], false
		if f.Err == nil && f.Times.Newest().UnixMilli() <= r.in.to && (f.Back.IsZero() || f.Back.UnixMilli() < r.in.from) {
			if ok, err = take(r.of[i], f); err != nil {
				return nil, err
			}
		}
		if !ok {
			without.of = append(without.of, r.of[i])
		}
	}
	return &without, nil
}

func (m *mapped) headsHaveFields() bool { return m.described.Head != nil && m.described.Head.Fields }

// newest are the newest values of the fields of entities that a request has read, by dataset: the metrics of a dataset
// share them.
type newest struct {
	lookback time.Duration
	budget   *budget
	of       map[string]map[tsdb.Entity]codec.Record
}

func newNewest(lookback time.Duration, b *budget) *newest {
	return &newest{lookback, b, map[string]map[tsdb.Entity]codec.Record{}}
}

// complete returns the series of texts, or of buckets, as they are at each entity's newest point: with the newest value
// of each field that is not older than the lookback then.
func (s *mappedSource) complete(ctx context.Context, id tenant.ID, of []*series, read *newest) ([]*series, error) {
	m := of[0].from.(*from).metric
	known := read.of[m.of]
	if known == nil {
		known = map[tsdb.Entity]codec.Record{}
		read.of[m.of] = known
	}
	var lacking []tsdb.Entity
	for _, one := range of {
		if _, ok := known[one.entity]; !ok {
			lacking = append(lacking, one.entity)
		}
	}
	n := newestRead{m, m.whole.For(s.store, id), read, lacking}
	found, err := n.read(ctx)
	if err != nil {
		return nil, err
	}
	for i, e := range lacking {
		known[e] = found[i]
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

// newestRead reads the newest values of entities. One without a point that can be read has none.
type newestRead struct {
	metric   *metric
	repo     *tsdb.Repository[codec.Record]
	options  *newest
	entities []tsdb.Entity
}

func (n *newestRead) read(ctx context.Context) ([]codec.Record, error) {
	if len(n.entities) == 0 {
		return nil, nil
	}
	all := make([]codec.Record, len(n.entities))
	if n.metric.headsHaveFields() {
		found, err := n.repo.LatestFieldsMany(ctx, n.entities, tsdb.FieldOptions{})
		if found == nil {
			return nil, err
		}
		for i := range found {
			f := &found[i]
			all[i] = withoutOldBuckets(within(f, n.from(f.Times.Newest())), func(name string) time.Time {
				at, _ := f.Times.Of(name)
				return at
			})
		}
		return all, nil
	}
	found, err := n.repo.LatestMany(ctx, n.entities, 1)
	if found == nil {
		return nil, err
	}
	return all, parallel(ctx, len(found), func(ctx context.Context, i int) (err error) {
		if len(found[i].Points) > 0 {
			all[i], err = n.since(ctx, n.entities[i], n.from(found[i].Points[0].Time))
		}
		return err
	})
}

// from is the time in ms of the oldest values that count at a point.
func (n *newestRead) from(newest time.Time) int64 {
	return max(0, newest.UnixMilli()-n.options.lookback.Milliseconds()+1)
}

// since returns the newest value of each field that points at or after a time have.
func (n *newestRead) since(ctx context.Context, e tsdb.Entity, from int64) (codec.Record, error) {
	var all []codec.Field
	times := map[string]time.Time{}
	for p, err := range n.repo.Range(ctx, e, tsdb.Since(time.UnixMilli(from))) {
		if _, bad := asPointError(err); bad {
			continue
		}
		if err == nil {
			err = n.options.budget.takeSamples(1)
		}
		if err != nil {
			return codec.Record{}, err
		}
		for name, v := range p.Value.All() {
			_, known := times[name]
			if known || v.Kind() == codec.KindNull && !n.metric.described.NullClears {
				continue
			}
			times[name], all = p.Time, append(all, codec.Field{Name: name, Value: v})
		}
	}
	return withoutOldBuckets(codec.NewRecord(all...), func(name string) time.Time { return times[name] }), nil
}

// withoutOldBuckets leaves out the buckets of a histogram that its newest point does not have.
func withoutOldBuckets(fields codec.Record, at func(name string) time.Time) codec.Record {
	var current []codec.Field
	for name, v := range fields.All() {
		if histogram, _, ok := bucketOf(name); !ok || at(name).Equal(at(histogram+countSuffix)) {
			current = append(current, codec.Field{Name: name, Value: v})
		}
	}
	return codec.NewRecord(current...)
}
