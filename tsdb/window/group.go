package window

import (
	"context"
	"errors"
	"iter"
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
		fill(each, frame, a.opts, nil)(yield)
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
