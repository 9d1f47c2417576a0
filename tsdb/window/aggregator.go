package window

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Measure extracts a number or a state from a value. It has a name, and one of Of, Int, Text and Value.
type Measure[T any] struct {
	// Name is not empty and differs from those of the other measures. It is the key in JSON.
	Name string
	// Of returns the number, and false if the value has none. A number that is not finite (NaN or an infinity) counts
	// as none, because it would make the bucket's sum and mean useless.
	Of func(T) (float64, bool)
	// Int returns the number as a whole multiple of 10^-Decimals, and false if the value has none: with Decimals 2, it
	// returns 1999 for 19.99. Such numbers are added without rounding, and [Summary.Exact] has the results.
	Int func(T) (int64, bool)
	// Text returns the name of a state, and false if the value has none. Its Kind is State. The Summary has no First
	// and Last then, but States has. For a boolean, use strconv.FormatBool.
	Text func(T) (string, bool)
	// Value returns a number or a state of any type, as package dynamic reads it, and the zero value if there is none.
	// Numbers are those of codec.Value.AsNumber. If all numbers of a bucket are integers, and the one before the bucket
	// that Delta and Increase count from, they are exact: [Summary.Exact] has the results. If the Kind is State, the
	// state is codec.Value.Text.
	Value func(T) codec.Value
	// Decimals is the number of decimal places of Int, 0 to 18. Of does not use it.
	Decimals int
	// Kind says what the numbers mean. Zero is Gauge.
	Kind Kind
	// Aggregates are those to compute. Zero is the default of the kind.
	Aggregates Aggregates
	// Linear makes the Integral assume that the value changes linearly between two numbers. Without it, each number is
	// valid until the next one.
	Linear bool
	// Hold makes the Integral hold each number until the next one, and the last one to the end of the interval, as
	// states last. It suits sources that report changes only. So end an interval now, and not in the future. It
	// excludes Linear.
	Hold bool
	// MaxGap is the longest time between two numbers that the Integral bridges; nothing is known in a longer one. With
	// Hold, and of Durations, it is the longest time for which a number or a state lasts without another one; then
	// nothing is known. Zero is no limit.
	MaxGap time.Duration
	// MaxDip is the largest fall of a counter that is no reset, in the unit of its numbers: the Increase then falls by
	// as much. It suits meters that round or correct themselves. Floats do not subtract exactly, so choose it somewhat
	// larger than the dips. Zero means that each fall is a reset.
	MaxDip float64
}

// resolve sets the aggregates to compute. The error matches tsdb.ErrInvalid.
func (m *Measure[T]) resolve() error {
	functions := 0
	for _, set := range []bool{m.Of != nil, m.Int != nil, m.Text != nil, m.Value != nil} {
		if set {
			functions++
		}
	}
	asked := m.Aggregates
	switch {
	case functions != 1:
		return invalid.New(tsdb.ErrInvalid, "Of, Int, Text and Value", strconv.Itoa(functions)+" of them set", "one function")
	case m.Text != nil && m.Kind != State:
		return invalid.New(tsdb.ErrInvalid, "Kind", m.Kind.String(), "State with Text: a text is no amount")
	case (m.Text != nil || m.Value != nil && m.Kind == State) && asked == 0:
		asked = Count | Ends | Durations
	case m.Of != nil && m.Kind == State && asked.any(Durations):
		return invalid.New(tsdb.ErrInvalid, "Aggregates", "durations with Of", "Text or Int for Durations: a state is a text or a whole number")
	}
	switch {
	case m.Decimals < 0 || m.Decimals > maxDecimals || m.Int == nil && m.Decimals != 0:
		return invalid.New(tsdb.ErrInvalid, "Decimals", strconv.Itoa(m.Decimals), "0 to 18 with Int, 0 with Of")
	}
	a, err := m.Kind.Resolve(asked)
	if err == nil {
		err = m.checkLine(a)
	}
	m.Aggregates = a
	return err
}

// rule returns how a measure is aggregated that is resolved.
func (m *Measure[T]) rule() rule {
	return rule{m.Kind, m.Aggregates, m.Linear, m.Hold, m.MaxGap, m.MaxDip}
}

// Aggregator turns sequences of points into sequences of buckets. [New] makes one. It is immutable and safe for
// concurrent use: one Aggregator can serve all requests of a program.
type Aggregator[T any] struct {
	aggregatorGate[T]

	grid     Grid
	names    []string
	measures []Measure[T]
	rules    []rule
	opts     Options
}

// New returns an aggregator over the buckets of a grid, with at least one measure. One pass over the points computes
// all measures. The error matches tsdb.ErrInvalid: it refuses aggregates that the kind of a measure does not allow, and
// says why.
func New[T any](grid Grid, measures []Measure[T], opts Options) (*Aggregator[T], error) {
	if len(measures) == 0 {
		return nil, invalid.New(tsdb.ErrInvalid, "measures", "none", "at least one")
	}
	a := &Aggregator[T]{grid: grid, measures: slices.Clone(measures), opts: opts}
	for i := range a.measures {
		m := &a.measures[i]
		err := m.resolve()
		if bad, ok := errors.AsType[*invalid.Error](err); ok {
			return nil, invalid.New(tsdb.ErrInvalid, bad.Field+" of measure "+strconv.Itoa(i), bad.Value, bad.Limit)
		}
		r := m.rule()
		if err := r.fits(i, opts); err != nil {
			return nil, err
		}
		a.names = append(a.names, m.Name)
		a.rules = append(a.rules, r)
	}
	if err := (frame{Grid: grid, Measures: a.names}).check(); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	return a, nil
}

// reading returns the number of a value for a measure, and false if it has none.
func (a *Aggregator[T]) reading(measure int, t time.Time, v T) (reading, bool) {
	m := &a.measures[measure]
	p := reading{t: t}
	var ok bool
	switch {
	case m.Int != nil:
		var units int64
		units, ok = m.Int(v)
		p = m.exact(t, units)
	case m.Text != nil:
		p.text, ok = m.Text(v)
		p.x = math.NaN()
	case m.Value != nil && m.Kind == State:
		p.text, ok = m.Value(v).Text()
		p.x = math.NaN()
	case m.Value != nil:
		n := m.Value(v).AsNumber()
		p.x, ok = n.Number()
		ok = ok && isFinite(p.x)
		p.exact, p.units = wholeNumber(n)
	default:
		p.x, ok = m.Of(v)
		ok = ok && isFinite(p.x)
	}
	return p, ok && (m.Kind != Counter || p.x >= 0)
}

// exact returns the number of a time that is a multiple of the measure's unit.
func (m *Measure[T]) exact(t time.Time, units int64) reading {
	d := newDecimal(units, m.Decimals)
	return reading{t: t, x: d.Float64(), exact: true, units: d}
}

// wholeNumber returns an integer without rounding.
func wholeNumber(v codec.Value) (exact bool, units decimal) {
	if _, isFloat := v.Float(); isFloat {
		return false, decimal{}
	}
	if i, ok := v.Int(); ok {
		return true, newDecimal(i, 0)
	}
	u, ok := v.Uint()
	return ok, decimal{lo: u}
}

// decimals returns the decimal places of a measure of whole numbers, or -1.
func (a *Aggregator[T]) decimals(measure int) int {
	if a.measures[measure].Int == nil {
		return -1
	}
	return a.measures[measure].Decimals
}

// Ranger reads the points of an interval; a *tsdb.Repository is one.
type Ranger[T any] interface {
	Range(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[T], error]
}

// Read returns an iterator over the buckets of an entity in an interval, newest first or in another tsdb.Order. Each
// loop over it reads from the table. Of a repository, it takes the buckets that a rollup of the schema stores if they
// answer, and else reads the points; [Aggregator.Source] says which.
//
// # From the points
//
// Read then costs as much as the repository's Range. If something in the interval depends on them, Read also reads
// the nearest numbers outside of it: the one before the interval for [Delta], [Increase], [Integral], [Durations],
// [Previous] and [Linear], and the one after it for [Linear] and for an [Integral] without Hold. Each costs one read
// of one point, and a second one of up to 1,000 points if that point does not have a number for each measure. A
// number that is even further away counts as missing. These reads do not count towards the tenant's limits.
//
// It holds one bucket in memory, and more for some Gaps. It yields each bucket when it reads the first point of a
// later bucket or the end. With an [Integral] without Hold, a bucket waits for the next one with a number of the
// measure. If the newest come first, it does so with Hold, [Delta], [Increase] and [Durations], too. At most
// Options.MaxFilled wait. If more would wait, [Previous] and [Linear] end the sequence with [ErrTooManyFilled]. With
// the other Gaps, the bucket that waits longest is yielded without its step from that number: Since, Covered and
// Unknown say so. Per bucket it allocates the bucket's values.
//
// A *tsdb.PointError is yielded immediately, and the point's bucket counts it as Bad. A
// bucket with only bad points counts as a gap, but [LeaveOut] does not remove it. Any other error is the last pair:
// an error of the points, one for a point out of order, tsdb.ErrInvalid for a point outside the interval, or
// [ErrTooManyFilled]. After such an error, Read does not yield the incomplete bucket and the buckets that it holds
// back.
//
// # From a rollup
//
// Read compares measures by their names, and does not see what Of computes. So give a number in another unit another
// name than the rollup's, or set Options.FromPoints. A measure's default aggregates include [Ends], which a rollup
// keeps only if its own measure says so.
//
// A derived rollup answers if
//
//   - it keeps the measures of the aggregator: each has the same name and kind, keeps all of the aggregates, and for
//     [Integral] has the same Linear and MaxGap. With Hold, MaxGap is 0: a bucket does not keep what a number
//     holds in a longer gap. No measure has a MaxDip: a bucket counts each fall as a reset. If gaps are filled by
//     [Previous] or [Linear], it also keeps [Ends]. None of them has Added. No state is a text: a rollup keeps numbers;
//   - the interval has both ends, and it and each bucket of the aggregator's grid starts and ends where buckets of
//     the rollup do;
//   - the interval does not start before the rollup's oldest buckets.
//
// Of several, Read takes the one with the widest buckets, and merges them into those of the grid. It costs what
// rollup.Reader.Buckets costs for the interval. The numbers are those that the rollup counts: with its Decimals, and
// without those above its Max. They may go back further than the points. A point that does not decode is counted as
// Bad, but not yielded. The tenant's limit on the length of ranges does not apply.
//
// Read uses the order. It accepts and ignores a tsdb.Concurrency, a tsdb.Hedge and a tsdb.MaxStale.
func (a *Aggregator[T]) Read(ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		ctx := ctxerr.Given(ctx)
		for b, err := range a.read(ctx, from, e, in, opts) {
			if err == nil && ctx.Err() != nil {
				yield(Bucket{}, ctx.Err())
				return
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// read is Read, as if the context did not end.
func (a *Aggregator[T]) read(ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, opts []tsdb.ReadOption) iter.Seq2[Bucket, error] {
	if from == nil {
		return fail(invalid.New(tsdb.ErrInvalid, "ranger", "nil", "a repository"))
	}
	order, _, err := inside.Of(in).ReadOptions(opts)
	if err != nil {
		return fail(err)
	}
	d, err := a.choose(ctx, from, in)
	if err != nil {
		return fail(err)
	}
	if d != nil {
		repo, _ := from.(*tsdb.Repository[T])
		return d.Windows(ctx, repo, a, e, in, order)
	}
	ends := func(before bool, _ []bool) ([]anchor, error) { return a.neighbours(ctx, from, e, in, before) }
	return a.over(from.Range(ctx, e, in, order), in, order, ends)
}

// Over returns the buckets of a sequence of points, such as one that is in memory. The points must be in the interval
// and in the given order; times may repeat. Points of several entities are aggregated together; [Delta], [Increase],
// [Integral], [Durations] and [Ends] then make no sense, because they compare points of one entity; see
// [Aggregator.ReadGroup]. The interval decides which
// buckets are partial and how far gaps extend. If it has no start or end, there is no gap before the first
// or after the last point. Over knows no points outside of it. Everything else is as [Aggregator.Read] says of points.
func (a *Aggregator[T]) Over(points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, order tsdb.Order) iter.Seq2[Bucket, error] {
	return a.over(points, in, order, nil)
}

// over is Over. ends returns the nearest numbers before or after the interval.
func (a *Aggregator[T]) over(
	points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, order tsdb.Order, ends func(before bool, needed []bool) ([]anchor, error),
) iter.Seq2[Bucket, error] {
	if a == nil || len(a.measures) == 0 {
		return fail(invalid.New(tsdb.ErrInvalid, "aggregator", "the zero value", "an aggregator from New"))
	}
	if points == nil {
		return fail(invalid.New(tsdb.ErrInvalid, "points", "nil", "a sequence"))
	}
	f := frame{Grid: a.grid, Measures: a.names, Interval: in, Order: order}
	return fill(a.buckets(points, f), f, a.opts, &joining{a.rules, ends})
}

// buckets returns the buckets that hold points.
func (a *Aggregator[T]) buckets(points iter.Seq2[tsdb.Point[T], error], f frame) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		r := run[T]{by: a, frame: f, sums: make([]accumulator, len(a.measures)), known: make([]map[stateID]bool, len(a.measures))}
		for p, err := range points {
			t := p.Time
			bad, isBad := (*tsdb.PointError)(nil), false
			if err != nil {
				if bad, isBad = pointError(err); !isBad {
					yield(Bucket{}, err)
					return
				}
				t = bad.Time
			}
			if refused := r.turn(t, yield); refused != nil || r.stopped {
				if refused != nil {
					yield(Bucket{}, refused)
				}
				return
			}
			if isBad {
				r.bucket.Bad++
				if !yield(Bucket{}, err) {
					return
				}
				continue
			}
			if err := r.add(t, p.Value); err != nil {
				yield(Bucket{}, err)
				return
			}
		}
		if r.open {
			yield(r.close(), nil)
		}
	}
}

// run is one loop over a sequence.
type run[T any] struct {
	by      *Aggregator[T]
	frame   frame
	bucket  Bucket
	open    bool
	cut     bool      // the open bucket is partial
	stopped bool      // the caller left the loop
	last    time.Time // time of the previous point
	sums    []accumulator
	known   []map[stateID]bool // the states of each measure
}

// turn makes the bucket that contains t the open one, and yields the one before. It rejects a t out of order.
func (r *run[T]) turn(t time.Time, yield func(Bucket, error) bool) error {
	if r.open && r.frame.before(t, r.last) {
		return r.frame.disorder(t, r.last)
	}
	if !r.open || t.Before(r.bucket.Start) || !t.Before(r.bucket.End) {
		if !inCalendar(t) {
			return invalid.New(tsdb.ErrInvalid, "time of a point", instant.Text(t), inYears)
		}
		if r.open && !yield(r.close(), nil) {
			r.stopped = true
			return nil
		}
		r.open = true
		r.bucket = Bucket{}
		r.bucket.Start, r.bucket.End = r.by.grid.bucket(t)
		r.cut = r.frame.cut(&r.bucket)
	}
	if r.cut && !r.frame.Interval.Contains(t) {
		return invalid.New(tsdb.ErrInvalid, "time of a point", instant.Text(t), "a time in the interval")
	}
	r.last = t
	return nil
}

func (r *run[T]) add(t time.Time, v T) error {
	r.bucket.Points++
	for i := range r.by.rules {
		p, ok := r.by.reading(i, t, v)
		if !ok {
			continue
		}
		if r.by.rules[i].Aggregates.any(Durations) {
			if err := r.learn(i, p.state()); err != nil {
				return err
			}
		}
		r.sums[i].add(p, &r.by.rules[i], r.frame.Order == tsdb.OldestFirst)
	}
	return nil
}

// learn refuses a state that is one too many.
func (r *run[T]) learn(measure int, s stateID) error {
	known := r.known[measure]
	switch {
	case known[s]:
		return nil
	case known == nil:
		known = map[stateID]bool{}
		r.known[measure] = known
	case len(known) == maxStates:
		return tooManyStates(r.by.names[measure])
	}
	known[s] = true
	return nil
}

// close returns the open bucket.
func (r *run[T]) close() Bucket {
	b := r.bucket
	b.Values = make([]Summary, len(r.by.names))
	for i, name := range r.by.names {
		b.Values[i] = r.sums[i].summary(name, &r.by.rules[i], r.by.decimals(i), r.frame.Order == tsdb.OldestFirst)
		r.sums[i] = accumulator{}
	}
	return b
}
