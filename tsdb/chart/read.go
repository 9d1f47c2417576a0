package chart

import (
	"context"
	"errors"
	"iter"
	"math/bits"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Line is a line that has not been read yet.
type Line struct {
	// Source says where the samples come from.
	Source Source
	// Samples reads the samples, oldest first. Each loop over it reads from the table, and leaving the loop ends the read.
	Samples iter.Seq2[Sample, error]
}

// Source says what a line is read from. The zero Source is all points.
type Source struct {
	// Rollup is the name of the rollup whose buckets are read from From (inclusive) to To (exclusive). The rest of the
	// interval is read from the points. It is empty, and From and To are zero, if the points are all that is read.
	Rollup string    `json:"rollup,omitempty"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	// Exact is true if the samples are those of the points, or draw the same pixels. It is false for LTTB from a rollup.
	Exact bool `json:"exact"`
}

// ReadM4 returns the line of a measure of an entity in an interval, as [M4] draws it. It reads a rollup where one fits; the
// package's documentation says which one, and what such a line is.
//
// A line from points costs what Repository.Range costs. One from a rollup costs what rollup.Reader.Buckets costs, and a Range
// of less than a bucket at each end of the interval. The tenant's limit on the length of ranges applies to what is read from
// points. ReadM4 itself sends no request, except that a store may read the class of the tenant, which it remembers.
//
// The error of ReadM4 matches tsdb.ErrInvalid for arguments; it needs the measure's Name, Kind, and Of, Int or Value, and uses no
// other field. Errors of the samples are those of M4 and of Buckets. Points of buckets that do not decode are not reported.
func ReadM4[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval, m window.Measure[T], opts Options) (Line, error) {
	p, err := newPlan(ctx, repo, e, in, m, opts)
	if err != nil {
		return Line{}, err
	}
	return Line{p.source, m4(p.samples(ctx), in, sampleOf, opts)}, nil
}

// ReadLTTB returns the line of a measure of an entity in an interval, as [LTTB] draws it. From a rollup, it chooses among the
// first, last, lowest and highest numbers of the buckets. For everything else see [ReadM4].
func ReadLTTB[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval, m window.Measure[T], opts Options) (Line, error) {
	p, err := newPlan(ctx, repo, e, in, m, opts)
	if err != nil {
		return Line{}, err
	}
	p.source.Exact = p.rollup == nil
	return Line{p.source, lttbOf(p.samples(ctx), in, sampleOf, opts)}, nil
}

func sampleOf(p tsdb.Point[Sample]) (Sample, bool) { return p.Value, true }

// plan is what a line is read from.
type plan[T any] struct {
	repo    *tsdb.Repository[T]
	entity  tsdb.Entity
	in      tsdb.Interval
	of      func(tsdb.Point[T]) (Sample, bool)
	source  Source
	rollup  *rollup.Rollup[T] // nil for points alone
	measure int               // its number in the rollup
}

func newPlan[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval, m window.Measure[T], opts Options) (*plan[T], error) {
	cols, err := newColumns(in, opts)
	if err != nil {
		return nil, err
	}
	checked := window.Measure[T]{Name: m.Name, Kind: m.Kind, Of: m.Of, Int: m.Int, Value: m.Value, Decimals: m.Decimals}
	if _, err := window.New(window.Days(1), []window.Measure[T]{checked}, window.Options{}); err != nil {
		bad, _ := errors.AsType[*tsdb.InvalidError](err)
		return nil, invalid.New(tsdb.ErrInvalid, bad.Field, bad.Value, bad.Limit)
	}
	p := &plan[T]{repo: repo, entity: e, in: in, of: samplesOf(numbers(m)), source: Source{Exact: true}}
	return p, p.choose(ctx, &m, cols, opts)
}

// numbers returns the function of a measure's number.
func numbers[T any](m window.Measure[T]) func(T) (float64, bool) {
	of := m.Of
	if m.Value != nil {
		of = func(v T) (float64, bool) { return m.Value(v).AsNumber().Number() }
	}
	if m.Int != nil {
		of = func(v T) (float64, bool) {
			units, ok := m.Int(v)
			return window.NewDecimal(units, m.Decimals).Float64(), ok
		}
	}
	if m.Kind != window.Counter {
		return of
	}
	return func(v T) (float64, bool) { // a negative number of a counter counts as none, as in windows and rollups
		x, ok := of(v)
		return x, ok && x >= 0
	}
}

// choose chooses the rollup to read.
func (p *plan[T]) choose(ctx context.Context, m *window.Measure[T], cols columns, opts Options) error {
	repo, err := inside.Of(p.repo).Internals()
	if err == nil {
		err = repo.Allow(ctx)
	}
	if err != nil {
		return err
	}
	age, err := repo.RollupAge(ctx)
	if err != nil {
		return err
	}
	end := cols.end
	now := repo.Clock()
	var reach time.Time // how far back the chosen rollup goes
	var widest time.Duration
	for _, r := range repo.Rollups {
		def, ok := r.Definition.(*rollup.Rollup[T])
		if !ok || r.Kind != catalog.Derived {
			continue
		}
		measure, width := line4(r.Measures, m), inside.Held(r.Definition).Width()
		if measure < 0 || width == 0 || uint64(width) > cols.width/uint64(cols.n)*cols.unit || opts.MaxGap > 0 && width > opts.MaxGap {
			continue
		}
		from := cols.start
		if r = r.Within(age); r.Bounded && from.Before(now.Add(-r.Age)) {
			from = now.Add(-r.Age)
		}
		if p.rollup != nil && (from.After(reach) || from.Equal(reach) && width <= widest) {
			continue
		}
		first, to := def.Grid().Start(from), def.Grid().Start(end)
		if first.Before(from) {
			first = def.Grid().Next(from)
		}
		if first.Before(to) {
			p.rollup, p.measure, reach, widest = def, measure, from, width
			p.source = Source{Rollup: r.Name, From: first.UTC(), To: to.UTC()}
		}
	}
	if p.rollup != nil {
		p.source.Exact = cols.begin(p.rollup.Grid(), p.source.From, p.source.To)
	}
	return nil
}

// line4 returns the number of the measure of a rollup that is the same as m and keeps what a line needs, or -1.
func line4[T any](measures []catalog.RollupMeasure, m *window.Measure[T]) int {
	return slices.IndexFunc(measures, func(of catalog.RollupMeasure) bool {
		kind, _ := of.KindAndField()
		keeps := func(a window.Aggregates) bool { return slices.Contains(of.Aggregates, a.String()) }
		return of.Name == m.Name && kind == m.Kind.String() && keeps(window.Min) && keeps(window.Max) && keeps(window.Ends)
	})
}

// begin reports whether each column that begins between two times begins where a bucket of the grid begins.
func (c columns) begin(g window.Grid, from, to time.Time) bool {
	for i := range c.n {
		hi, lo := bits.Mul64(uint64(i), c.width)
		at, rest := bits.Div64(hi, lo, uint64(c.n))
		if rest > 0 {
			at++
		}
		t := c.at(at)
		if t.After(from) && t.Before(to) && !g.Start(t).Equal(t) {
			return false
		}
	}
	return true
}

// samples returns the samples of points and of buckets, oldest first, each as a point.
func (p *plan[T]) samples(ctx context.Context) iter.Seq2[tsdb.Point[Sample], error] {
	return func(yield func(tsdb.Point[Sample], error) bool) {
		if p.rollup == nil {
			p.points(ctx, p.in, yield)
			return
		}
		start, _ := p.in.Start()
		end, _ := p.in.End()
		_ = p.points(ctx, tsdb.Between(start, p.source.From), yield) && p.buckets(ctx, yield) && p.points(ctx, tsdb.Between(p.source.To, end), yield)
	}
}

// points yields the samples of an interval's points. It returns false if nothing may follow.
func (p *plan[T]) points(ctx context.Context, in tsdb.Interval, yield func(tsdb.Point[Sample], error) bool) bool {
	if from, ok := in.Start(); ok {
		if to, _ := in.End(); !from.Before(to) {
			return true
		}
	}
	for point, err := range p.repo.Range(ctx, p.entity, in, tsdb.OldestFirst) {
		if err != nil {
			_, one := errors.AsType[*tsdb.PointError](err)
			if !yield(tsdb.Point[Sample]{}, err) || !one {
				return false
			}
			continue
		}
		if s, ok := p.of(point); ok && !yield(tsdb.Point[Sample]{Time: s.Time, Value: s}, nil) {
			return false
		}
	}
	return true
}

// buckets yields up to four samples of each bucket of the rollup, and the points of buckets that were stored before the rollup kept
// what a line needs. It returns false if nothing may follow.
func (p *plan[T]) buckets(ctx context.Context, yield func(tsdb.Point[Sample], error) bool) bool {
	in := tsdb.Between(p.source.From, p.source.To)
	var lacking, until time.Time // adjacent buckets whose points are to be read
	flush := func() bool {
		more := lacking.IsZero() || p.points(ctx, tsdb.Between(lacking, until), yield)
		lacking = time.Time{}
		return more
	}
	for b, err := range rollup.For(p.rollup, p.repo).Buckets(ctx, p.entity, in, tsdb.OldestFirst) {
		if err != nil {
			yield(tsdb.Point[Sample]{}, err)
			return false
		}
		v := &b.Values[p.measure]
		if v.Missing&(window.Min|window.Max|window.Ends) != 0 {
			if lacking.IsZero() {
				lacking = b.Start
			}
			until = b.End
			continue
		}
		if !flush() || v.Count > 0 && !p.bucket(v, yield) {
			return false
		}
	}
	return flush()
}

// bucket yields the samples of one bucket.
func (p *plan[T]) bucket(v *window.Summary, yield func(tsdb.Point[Sample], error) bool) bool {
	first, last := Sample{Time: v.FirstTime, Value: v.First}, Sample{Time: v.LastTime, Value: v.Last}
	middle := first.Time.Add(last.Time.Sub(first.Time) / 2)
	low, high := Sample{Time: middle, Value: v.Min, Approx: true}, Sample{Time: middle, Value: v.Max, Approx: true}
	for _, s := range [...]struct {
		Sample
		needed bool
	}{
		{first, true},
		{low, low.Value < min(first.Value, last.Value)},
		{high, high.Value > max(first.Value, last.Value)},
		{last, v.Count > 1},
	} {
		if s.needed && !yield(tsdb.Point[Sample]{Time: s.Time, Value: s.Sample}, nil) {
			return false
		}
	}
	return true
}
