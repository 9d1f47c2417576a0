package window

import (
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
)

// What tests of this package use beside its public names.

const (
	MaxStates        = maxStates
	DefaultMaxFilled = defaultMaxFilled
	MaxColumns       = maxColumns
)

type (
	Frame   = frame
	Decimal = decimal
)

var (
	NewSpan    = newSpan
	NewDecimal = newDecimal
)

func Fill(buckets iter.Seq2[Bucket, error], f Frame, opts Options) iter.Seq2[Bucket, error] {
	return fill(buckets, f, opts, nil)
}

func (s Span) Add(o Span) Span { return s.add(o) }

func (s Span) Duration() (time.Duration, bool) { return s.duration() }

func (g Grid) Bucket(t time.Time) (start, next time.Time) { return g.bucket(t) }

func (g Grid) Prev(t time.Time) time.Time { return g.prev(t) }

func (o Outage) Within(in tsdb.Interval) Span {
	start, _ := in.Start()
	end, _ := in.End()
	return o.between(start, end)
}

// SketchOf returns the sketch of a summary.
func SketchOf(s Summary) *sketch.Sketch { return s.sketch }

// SetSketch sets it.
func SetSketch(s *Summary, to *sketch.Sketch) { s.sketch = to }

// ExactOf returns the exact numbers of a summary, nil if it has none.
func ExactOf(s Summary) *ExactNumbers { return s.exact }

// SetExact sets them.
func SetExact(s *Summary, to *ExactNumbers) { s.exact = to }

// ExactNumbers are the exact numbers of a summary.
type ExactNumbers = exactNumbers

// M4 and LTTB return the line of a sequence of points of an interval, oldest first.
func M4[T any](points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(T) (float64, bool), opts LineOptions) iter.Seq2[LineSample, error] {
	return lineThrough(m4, points, in, of, opts)
}

func LTTB[T any](points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(T) (float64, bool), opts LineOptions) iter.Seq2[LineSample, error] {
	return lineThrough(lttbOf, points, in, of, opts)
}

func lineThrough[T any](
	method func(iter.Seq2[LineSample, error], lineColumns, time.Duration) iter.Seq2[LineSample, error],
	points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(T) (float64, bool), opts LineOptions,
) iter.Seq2[LineSample, error] {
	cols, err := newLineColumns(in, opts)
	if err != nil {
		return func(yield func(LineSample, error) bool) { yield(LineSample{}, err) }
	}
	return method(func(yield func(LineSample, error) bool) {
		for p, err := range points {
			x, ok := 0.0, err != nil
			if err == nil {
				x, ok = of(p.Value)
				ok = ok && isFinite(x)
			}
			if ok && !yield(LineSample{Time: p.Time, Value: x}, err) {
				return
			}
		}
	}, cols, opts.MaxGap)
}
