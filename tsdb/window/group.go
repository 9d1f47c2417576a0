package window

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// groupConcurrency is how many entities of a group are read at once.
const groupConcurrency = 16

// ReadGroup returns the buckets of several entities as one: each entity is aggregated on its own, as [Aggregator.Read]
// does from the points, and then their buckets are added up. No rollup is read. Counters are joined with their own
// earlier numbers only, and the increase of a site is the sum of the increases of its meters. For all groups under a
// prefix see [Aggregator.ReadGroups].
//
// Of the group, in each bucket:
//
//   - Points, Bad, Count, Sum, Increase, Resets, Delta, Integral, Covered and the times in each state are sums, and Min
//     and Max those of all numbers, as the percentiles are. Rate is the sum of the entities' rates.
//   - Mean and StdDev are those of all numbers, so an entity that sends more often weighs more. TimeMean weighs each
//     entity by the time that it covers: use it for the mean over entities. Integral divided by the seconds of the
//     bucket is the mean total of the group, such as the load of a site.
//   - First, Last and their times are not computed, because they are of one entity. Since is the earliest one.
//   - Entities is how many have points in the bucket.
//
// Gaps are filled once the entities are added up: an entity that is silent is not carried on.
//
// The interval has a start and an end, and at most Options.MaxFilled buckets; more end the sequence with
// [ErrTooManyFilled]. All of them are in memory, once for the group and for each entity that is read at the same time:
// 16, or as many as a tsdb.Concurrency says. It costs as much as Read from the points for each entity. Points that do
// not decode are counted as Bad and not yielded. An entity that is given twice counts twice. Any error ends the
// sequence.
func (a *Aggregator[T]) ReadGroup(ctx context.Context, from Ranger[T], entities []tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		total, frame, err := a.readGroup(ctxerr.Given(ctx), from, entities, in, opts)
		if err != nil {
			yield(Bucket{}, err)
			return
		}
		each := func(yield func(Bucket, error) bool) {
			for _, b := range total {
				if (a.opts.Gaps != LeaveOut || b.Points+b.Bad > 0) && !yield(b, nil) {
					return
				}
			}
		}
		for b, err := range fill(each, frame, a.opts, nil) {
			if !yield(b, err) {
				return
			}
		}
	}
}

func (a *Aggregator[T]) readGroup(ctx context.Context, from Ranger[T], entities []tsdb.Entity, in tsdb.Interval, opts []tsdb.ReadOption) ([]Bucket, frame, error) {
	if a == nil || len(a.measures) == 0 {
		return nil, frame{}, invalid.New(tsdb.ErrInvalid, "aggregator", "the zero value", "an aggregator from New")
	}
	if from == nil {
		return nil, frame{}, invalid.New(tsdb.ErrInvalid, "ranger", "nil", "a repository")
	}
	order, width, err := inside.Of(in).ReadOptions(opts)
	if err != nil {
		return nil, frame{}, err
	}
	if width == 0 {
		width = groupConcurrency
	}
	f := frame{Grid: a.grid, Measures: a.names, Interval: in, Order: order}
	total, err := a.emptyGroup(f)
	if err != nil || len(total) == 0 {
		return nil, f, err
	}
	each := *a
	each.opts.FromPoints = true
	each.opts.Gaps = Null // an entity counts where it has no points, too: its states and its integral
	for block := range slices.Chunk(entities, width) {
		found := make([][]Bucket, len(block))
		errs := make([]error, len(block))
		bt.AtOnce(width, len(block), func(i int) { found[i], errs[i] = each.readAll(ctx, from, block[i], f) })
		for i := range block {
			if errs[i] != nil {
				return nil, f, errs[i]
			}
			for j := range found[i] {
				if err := total[j].add(&found[i][j]); err != nil {
					return nil, f, err
				}
			}
		}
	}
	return total, f, nil
}

// emptyGroup returns the buckets of a frame, in its order.
func (a *Aggregator[T]) emptyGroup(f frame) (total []Bucket, err error) {
	start, end, err := closed(f.Interval)
	if err == nil {
		_, _, err = f.bounds()
	}
	if err != nil {
		return nil, err
	}
	for at := start; at.Before(end); {
		if len(total) == a.opts.maxFilled() {
			return nil, (&filler{frame: f, opts: a.opts}).tooMany()
		}
		b := Bucket{Values: make([]Summary, len(a.names))}
		b.Start, b.End = a.grid.bucket(at)
		for i, name := range a.names {
			r := a.rules[i]
			if r.Aggregates &^= Ends; r.Aggregates == 0 {
				r.Aggregates = Count
			}
			b.Values[i] = r.empty(name)
		}
		total = append(total, b)
		at = b.End
	}
	if f.Order == tsdb.NewestFirst {
		slices.Reverse(total)
	}
	return total, nil
}

// readAll reads all buckets of an entity. It drops the errors of points.
func (a *Aggregator[T]) readAll(ctx context.Context, from Ranger[T], e tsdb.Entity, f frame) ([]Bucket, error) {
	var out []Bucket
	for b, err := range a.Read(ctx, from, e, f.Interval, f.Order) {
		if _, bad := errors.AsType[*tsdb.PointError](err); err != nil && !bad {
			return nil, err
		} else if !bad {
			out = append(out, b)
		}
	}
	return out, nil
}

// add adds the same bucket of an entity.
func (b *Bucket) add(o *Bucket) error {
	b.Points += o.Points
	b.Bad += o.Bad
	if o.Points+o.Bad > 0 {
		b.Entities++
	}
	for i := range b.Values {
		if err := b.Values[i].addEntity(&o.Values[i]); err != nil {
			return err
		}
	}
	return nil
}

// addEntity adds the summary of an entity to that of its group. Neither is filled.
func (s *Summary) addEntity(o *Summary) error {
	if o.Count > 0 {
		s.addNumbers(o)
	}
	s.Integral += o.Integral // an entity without numbers in the bucket may have some on either side of it
	s.Covered = s.Covered.add(o.Covered)
	if s.Covered != (Span{}) {
		s.TimeMean = s.Integral / s.Covered.Seconds()
	}
	if o.States == nil {
		return nil
	}
	return s.States.addEntity(s.Name, o.States)
}

// addNumbers is addEntity for an entity with numbers in the bucket.
func (s *Summary) addNumbers(o *Summary) {
	first := s.Count == 0
	if s.Aggregates.any(StdDev) {
		s.StdDev = pooled(s, o)
	}
	s.Count += o.Count
	s.Sum += o.Sum
	s.Delta += o.Delta
	s.Increase += o.Increase
	s.Resets += o.Resets
	if first || o.Min < s.Min {
		s.Min = o.Min
	}
	if first || o.Max > s.Max {
		s.Max = o.Max
	}
	if math.IsNaN(s.Rate) {
		s.Rate = o.Rate
	} else if !math.IsNaN(o.Rate) {
		s.Rate += o.Rate
	}
	if first || o.Since.Before(s.Since) {
		s.Since = o.Since
	}
	if o.exact != nil && (first || s.exact != nil) {
		s.addExact(o, first)
	} else {
		s.exact = nil
	}
	if s.sketch == nil {
		s.sketch = o.sketch
	} else {
		s.sketch.Merge(o.sketch)
	}
	s.Mean = s.Sum / float64(s.Count)
	if isFinite(s.Mean) && s.Min <= s.Max { // both are NaN if they were not asked for
		s.Mean = min(max(s.Mean, s.Min), s.Max)
	}
}

// addExact adds the exact numbers, and rounds the sums from them.
func (s *Summary) addExact(o *Summary, first bool) {
	if first {
		none := func(d decimal) decimal { return decimal{decimals: d.decimals} }
		s.exact = &exactNumbers{
			Min: o.exact.Min, Max: o.exact.Max, Sum: none(o.exact.Sum), Delta: none(o.exact.Delta), Increase: none(o.exact.Increase),
		}
	}
	if o.exact.Min.less(s.exact.Min) {
		s.exact.Min = o.exact.Min
	}
	if s.exact.Max.less(o.exact.Max) {
		s.exact.Max = o.exact.Max
	}
	sum := func(float *float64, d *decimal, by decimal) {
		*d = d.add(by)
		if isFinite(*float) {
			*float = d.Float64()
		}
	}
	sum(&s.Sum, &s.exact.Sum, o.exact.Sum)
	sum(&s.Delta, &s.exact.Delta, o.exact.Delta)
	sum(&s.Increase, &s.exact.Increase, o.exact.Increase)
}

// pooled returns the standard deviation of all numbers of two summaries, the second of which has some.
func pooled(s, o *Summary) float64 {
	if s.Count == 0 {
		return o.StdDev
	}
	squares := func(s *Summary) float64 {
		if s.Count < 2 {
			return 0
		}
		return s.StdDev * s.StdDev * float64(s.Count-1)
	}
	n, m := float64(s.Count), float64(o.Count)
	d := o.Mean - s.Mean
	return math.Sqrt((squares(s) + squares(o) + d*d*n*m/(n+m)) / (n + m - 1))
}

// addEntity adds the states of an entity.
func (s *States) addEntity(measure string, o *States) error {
	for _, t := range o.Times {
		at := s.at(stateID{t.units, t.State})
		at.Time = at.Time.add(t.Time)
		at.Entered += t.Entered
		if len(s.Times) > maxStates {
			return tooManyStates(measure)
		}
	}
	s.Transitions += o.Transitions
	s.Unknown = s.Unknown.add(o.Unknown)
	return nil
}
