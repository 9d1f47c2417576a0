package rollup

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A stored bucket knows only its own numbers. A read joins each bucket with its neighbours, so a late point changes
// what is stored of one bucket only.

// joins reports whether a measure has aggregates for which a bucket needs its neighbours.
func (r *Rollup[T]) joins() bool {
	return slices.ContainsFunc(r.measures, func(m Measure[T]) bool { return m.has(joinedAggregates) })
}

// inWindows returns the measures as package window joins and shows them.
func (r *Rollup[T]) inWindows() []window.Measure[T] {
	out := make([]window.Measure[T], len(r.measures))
	for i := range r.measures {
		out[i] = r.measures[i].inWindows(r.measures[i].Aggregates)
	}
	return out
}

func (m *Measure[T]) inWindows(kept window.Aggregates) window.Measure[T] {
	return window.Measure[T]{Name: m.Name, Kind: m.Kind, Aggregates: kept, Linear: m.Linear, MaxGap: m.MaxGap, Decimals: m.Decimals}
}

// joined returns buckets joined with their neighbours, and with their gaps filled.
func (l *level[T]) joined(
	ctx context.Context, e tsdb.Entity, in tsdb.Interval, order tsdb.Order, buckets iter.Seq2[window.Bucket, error], opts window.Options,
) iter.Seq2[window.Bucket, error] {
	ends := func(before bool, needed []bool) ([]inside.JoinNumber, error) {
		path, err := l.path(e)
		if err != nil {
			return nil, err
		}
		for i := range needed {
			needed[i] = needed[i] && l.measures[i].has(window.Ends)
		}
		return l.withoutSketches().nearest(ctx, path, in, before, needed, nil)
	}
	return inside.Of[*window.Aggregator[T]](nil).Join(buckets, l.grid, l.whole(in), order, opts, l.inWindows(), ends)
}

// joinedTotal joins a total with the numbers before and after its interval.
func (l *level[T]) joinedTotal(ctx context.Context, e tsdb.Entity, in tsdb.Interval, total window.Bucket) (window.Bucket, error) {
	if !l.joins() {
		return total, nil
	}
	alone := func(yield func(window.Bucket, error) bool) { yield(total, nil) }
	for b, err := range l.joined(ctx, e, in, tsdb.OldestFirst, iter.Seq2[window.Bucket, error](alone), window.Options{}) {
		b.Partial = false
		return b, err
	}
	return total, nil
}

// nearBuckets is how many buckets next to an interval are read first for the nearest numbers. Most entities have a
// number there; for the others, up to farBuckets stored buckets are read.
const (
	nearBuckets = 4
	farBuckets  = 1000
)

// nearest returns the nearest number before or after the buckets of an interval, of each of some measures for which it
// is needed. The rollup keeps the ends of these. pick returns a bucket with the measures; nil stands for those of the
// rollup.
func (l *level[T]) nearest(
	ctx context.Context, path string, in tsdb.Interval, before bool, needed []bool, pick func(bucket) bucket,
) ([]inside.JoinNumber, error) {
	s := l.spanOf(in)
	width := nearBuckets * l.width().Milliseconds()
	near, far := span{max(0, s.from-width), s.from}, span{0, max(0, s.from-width)}
	if !before {
		near, far = span{s.to, s.to + width}, span{s.to + width, math.MaxInt64}
	}
	out := make([]inside.JoinNumber, len(needed))
	missing, read := 0, 0
	for _, is := range needed {
		if is {
			missing++
		}
	}
	for _, s := range []span{near, far} {
		if missing == 0 || s.empty() {
			continue
		}
		err := l.read(ctx, path, s, before, func(b bucket) (bool, error) {
			if pick != nil {
				b = pick(b)
			}
			missing -= take(out, needed, &b, before)
			read++
			return missing > 0 && read < farBuckets, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// take takes the last or the first numbers of a bucket for needed measures that have none yet, and returns for how many
// measures nothing more is to be read.
func take(out []inside.JoinNumber, needed []bool, b *bucket, last bool) (taken int) {
	for i := range out {
		v := &b.values[i]
		if !needed[i] || out[i].Found {
			continue
		}
		if v.missing&(window.Count|window.Ends) != 0 { // the nearest number is not known
			needed[i] = false
			taken++
			if b.changed != 0 {
				out[i].Changed = time.UnixMilli(b.changed).UTC()
			}
			continue
		}
		if v.count == 0 {
			continue
		}
		units, at := v.first, v.firstAt
		if last {
			units, at = v.last, v.lastAt
		}
		out[i] = inside.JoinNumber{Found: true, Time: time.UnixMilli(b.start).Add(time.Duration(at)).UTC(), Units: units}
		taken++
	}
	return taken
}
