package window

import (
	"context"
	"iter"
	"math/bits"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ReadLine returns the line of a measure of an entity in an interval: few samples, through which a chart shows what
// all points would show. A chart of 1,000 pixels cannot show 100,000 points.
//
// It keeps up to four samples for each column of pixels: the first, the last, the lowest and the highest. The line
// through them covers the same pixels as the line through all points (Jugel et al., M4: A Visualization-Oriented Time
// Series Data Aggregation, https://www.vldb.org/pvldb/vol7/p797-jugel.pdf). With LineOptions.LTTB it keeps one, which
// forms the largest triangle with its neighbours (Steinarsson, Downsampling Time Series for Visual Representation,
// https://hdl.handle.net/1946/15343, with the candidates of Van Der Donckt et al., MinMaxLTTB,
// https://arxiv.org/abs/2305.00332). That is a quarter of the samples, and the line is no longer exact. Memory does
// not grow with the points or with the columns.
//
// # From rollups
//
// A rollup of the schema is read where one fits: a year of readings, one a second, is then 8,760 hours. A rollup fits
// if it is derived from points, its measure of the same name and kind keeps [Min], [Max] and [Ends], and none of its
// buckets is wider than a column, nor wider than MaxGap. Of those that fit, the one is read that goes back furthest
// in the interval, and of these the one with the widest buckets. The parts of the interval that are not whole
// buckets, or that are older than the rollup is kept, are read from the points, and so are buckets that were stored
// before the rollup kept what a line needs (rollup.Measure.Added). Buckets that changed since a worker last computed
// them are computed from the points, so the newest points are in the line.
//
// A bucket knows its first and its last number with their times, and its lowest and its highest number, but not when
// they came: these samples are in the middle of the bucket, and marked as Approx. If columns begin where buckets
// begin, the line has the same pixels as from the points (Line.Exact). Otherwise a lowest or highest number may be
// drawn one column away from its own. Breaks are the same in both cases. Numbers have the decimals that the rollup
// keeps, and those beyond its Max are missing. A rollup that was declared over stored points lacks the older ones
// until it is rebuilt: until then read FromPoints.
//
// # Errors and cost
//
// A line from points costs what Repository.Range costs. One from a rollup costs what rollup.Reader.Buckets costs, and
// a Range of less than a bucket at each end of the interval. The tenant's limit on the length of ranges applies to
// what is read from points. ReadLine itself sends no request, except that a store may read the class of the tenant,
// which it remembers.
//
// The interval has a start and an end. The error of ReadLine matches tsdb.ErrInvalid for arguments; it needs the
// measure's Name, Kind, and Of, Int or Value, and uses no other field. Errors of the samples are those of Range and
// of Buckets: a *tsdb.PointError is yielded when it comes, and the sequence goes on; any other error is the last
// pair. Points of buckets that do not decode are not reported.
func ReadLine[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval, m Measure[T], opts LineOptions) (Line, error) {
	p, err := newLinePlan(ctx, repo, e, in, m, opts)
	if err != nil {
		return Line{}, err
	}
	if !opts.LTTB {
		p.line.Samples = m4(p.samples(ctx), p.columns, opts.MaxGap)
		return p.line, nil
	}
	p.line.Exact = p.stored == nil
	p.line.Samples = lttbOf(p.samples(ctx), p.columns, opts.MaxGap)
	return p.line, nil
}

// linePlan is what a line is read from.
type linePlan[T any] struct {
	repo    *tsdb.Repository[T]
	entity  tsdb.Entity
	in      tsdb.Interval
	columns lineColumns
	of      func(T) (float64, bool)
	line    Line        // without its samples
	stored  *derived[T] // the rollup to read; nil for points alone
	measure int         // its number in the rollup
}

func newLinePlan[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval, m Measure[T], opts LineOptions) (*linePlan[T], error) {
	cols, err := newLineColumns(in, opts)
	if err != nil {
		return nil, err
	}
	checked := Measure[T]{Name: m.Name, Kind: m.Kind, Of: m.Of, Int: m.Int, Value: m.Value, Decimals: m.Decimals}
	if _, err := New(Days(1), []Measure[T]{checked}, Options{}); err != nil {
		return nil, err
	}
	p := &linePlan[T]{repo: repo, entity: e, in: in, columns: cols, of: numbers(m), line: Line{Exact: true}}
	return p, p.choose(ctx, &m, opts)
}

// numbers returns the function of a measure's number.
func numbers[T any](m Measure[T]) func(T) (float64, bool) {
	of := m.Of
	if m.Value != nil {
		of = func(v T) (float64, bool) { return m.Value(v).AsNumber().Number() }
	}
	if m.Int != nil {
		of = func(v T) (float64, bool) {
			units, ok := m.Int(v)
			return newDecimal(units, m.Decimals).Float64(), ok
		}
	}
	if m.Kind != Counter {
		return of
	}
	return func(v T) (float64, bool) { // a negative number of a counter counts as none, as in windows and rollups
		x, ok := of(v)
		return x, ok && x >= 0
	}
}

// choose chooses the rollup to read.
func (p *linePlan[T]) choose(ctx context.Context, m *Measure[T], opts LineOptions) error {
	if opts.FromPoints {
		return nil
	}
	cols := p.columns
	all, err := derivedOf(ctx, p.repo)
	if err != nil {
		return err
	}
	var reach time.Time // how far back the chosen rollup goes
	var widest time.Duration
	for i := range all {
		d := &all[i]
		measure := line4(d.Measures, m)
		if measure < 0 {
			continue
		}
		width := d.def.Width()
		if width == 0 || uint64(width) > cols.width/uint64(cols.n)*cols.unit || opts.MaxGap > 0 && width > opts.MaxGap {
			continue
		}
		from := cols.start
		if from.Before(d.limit) {
			from = d.limit
		}
		if p.stored != nil && (from.After(reach) || from.Equal(reach) && width <= widest) {
			continue
		}
		grid := d.def.Grid
		first, to := grid.Start(from), grid.Start(cols.end)
		if first.Before(from) {
			first = grid.Next(from)
		}
		if first.Before(to) {
			p.stored, p.measure, reach, widest = d, measure, from, width
			p.line = Line{Rollup: d.Name, From: first.UTC(), To: to.UTC(), Exact: cols.begin(grid, first, to)}
		}
	}
	return nil
}

// line4 returns the number of the measure of a rollup that is the same as m and keeps what a line needs, or -1.
func line4[T any](measures []catalog.RollupMeasure, m *Measure[T]) int {
	return slices.IndexFunc(measures, func(of catalog.RollupMeasure) bool {
		kind, _ := of.KindAndField()
		keeps := func(a Aggregates) bool { return slices.Contains(of.Aggregates, a.String()) }
		return of.Name == m.Name && kind == m.Kind.String() && keeps(Min) && keeps(Max) && keeps(Ends)
	})
}

// begin reports whether each column that begins between two times begins where a bucket of the grid begins.
func (c lineColumns) begin(g nest.Grid, from, to time.Time) bool {
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

// samples returns the samples of points and of buckets, oldest first.
func (p *linePlan[T]) samples(ctx context.Context) iter.Seq2[LineSample, error] {
	return func(yield func(LineSample, error) bool) {
		if p.stored == nil {
			p.points(ctx, p.in, yield)
			return
		}
		start, _ := p.in.Start()
		end, _ := p.in.End()
		_ = p.points(ctx, tsdb.Between(start, p.line.From), yield) && p.buckets(ctx, yield) && p.points(ctx, tsdb.Between(p.line.To, end), yield)
	}
}

// points yields the samples of an interval's points. It returns false if nothing may follow.
func (p *linePlan[T]) points(ctx context.Context, in tsdb.Interval, yield func(LineSample, error) bool) bool {
	if from, ok := in.Start(); ok {
		if to, _ := in.End(); !from.Before(to) {
			return true
		}
	}
	for point, err := range p.repo.Range(ctx, p.entity, in, tsdb.OldestFirst) {
		if err != nil {
			_, one := pointError(err)
			if !yield(LineSample{}, err) || !one {
				return false
			}
			continue
		}
		if x, ok := p.of(point.Value); ok && isFinite(x) && !yield(LineSample{Time: point.Time, Value: x}, nil) {
			return false
		}
	}
	return true
}

// buckets yields up to four samples of each bucket of the rollup, and the points of buckets that were stored before
// the rollup kept what a line needs, or whose times are damaged. It returns false if nothing may follow.
func (p *linePlan[T]) buckets(ctx context.Context, yield func(LineSample, error) bool) bool {
	in := tsdb.Between(p.line.From, p.line.To)
	var lacking, until time.Time // adjacent buckets whose points are to be read
	flush := func() bool {
		more := lacking.IsZero() || p.points(ctx, tsdb.Between(lacking, until), yield)
		lacking = time.Time{}
		return more
	}
	for b, err := range p.stored.Buckets(ctx, p.repo, p.entity, in) {
		if err != nil {
			yield(LineSample{}, err)
			return false
		}
		v := &b.Values[p.measure]
		if v.Missing&(Min|Max|Ends) != 0 || !endsIn(v, b.Start, b.End) {
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

// endsIn reports whether the first and the last number are between two times, as in each bucket that is not damaged.
func endsIn(v *Summary, start, end time.Time) bool {
	return v.Count == 0 || !v.FirstTime.Before(start) && !v.LastTime.Before(v.FirstTime) && v.LastTime.Before(end)
}

// bucket yields the samples of one bucket.
func (p *linePlan[T]) bucket(v *Summary, yield func(LineSample, error) bool) bool {
	first, last := LineSample{Time: v.FirstTime, Value: v.First}, LineSample{Time: v.LastTime, Value: v.Last}
	middle := first.Time.Add(last.Time.Sub(first.Time) / 2)
	low, high := LineSample{Time: middle, Value: v.Min, Approx: true}, LineSample{Time: middle, Value: v.Max, Approx: true}
	for _, s := range [...]struct {
		LineSample
		needed bool
	}{
		{first, true},
		{low, low.Value < min(first.Value, last.Value)},
		{high, high.Value > max(first.Value, last.Value)},
		{last, v.Count > 1},
	} {
		if s.needed && !yield(s.LineSample, nil) {
			return false
		}
	}
	return true
}
