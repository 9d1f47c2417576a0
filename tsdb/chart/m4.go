package chart

import (
	"iter"

	"github.com/tidemark-go/tidemark/tsdb"
)

// M4 returns the samples of a line through the points of an interval, oldest first: for each column the first, the last, the
// lowest and the highest, each once. The line through them has the same pixels as the line through all points.
//
// points are those of one entity in the interval, oldest first. of returns the number of a value, and false if the value has none;
// NaN and infinities count as none. The interval must have both ends.
//
// A *tsdb.PointError among the points is yielded when it comes, and the sequence goes on. Any other error is the last pair: one
// of the points, window.ErrOrder if a point comes too late, tsdb.ErrInvalid for arguments and for points outside of the
// interval. The points are read when the sequence is run. Its memory is one column.
func M4[T any](points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(T) (float64, bool), opts Options) iter.Seq2[Sample, error] {
	return m4(points, in, samplesOf(of), opts)
}

func m4[T any](points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(tsdb.Point[T]) (Sample, bool), opts Options) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		cols, err := newColumns(in, opts)
		if err != nil {
			yield(Sample{}, err)
			return
		}
		var c m4Column
		at := -1
		stopped, err := line(points, of, yield, func(s Sample) (bool, error) {
			i, ok := cols.of(s.Time, 1)
			if !ok {
				return true, outside(s.Time)
			}
			if i == at {
				c.add(s)
				return true, nil
			}
			if at >= 0 {
				s.Break = opts.MaxGap > 0 && s.Time.Sub(c.last.Time) > opts.MaxGap
				if !c.yield(yield) {
					return false, nil
				}
			}
			at, c = i, m4Column{first: s, last: s, low: s, high: s}
			return true, nil
		})
		switch {
		case stopped:
		case err != nil:
			yield(Sample{}, err)
		case at >= 0:
			c.yield(yield)
		}
	}
}

// m4Column is what M4 keeps of the points of a column. The numbers say when each sample came.
type m4Column struct {
	first, last, low, high    Sample
	lastNo, lowNo, highNo, no int
}

func (c *m4Column) add(s Sample) {
	c.no++
	c.last, c.lastNo = s, c.no
	if s.Value < c.low.Value {
		c.low, c.lowNo = s, c.no
	}
	if s.Value > c.high.Value {
		c.high, c.highNo = s, c.no
	}
}

// yield yields the samples in their order, each once.
func (c *m4Column) yield(yield func(Sample, error) bool) bool {
	a, b, aNo, bNo := c.low, c.high, c.lowNo, c.highNo
	if bNo < aNo {
		a, b, aNo, bNo = b, a, bNo, aNo
	}
	if !yield(c.first, nil) {
		return false
	}
	if aNo > 0 && aNo < c.lastNo && !yield(a, nil) {
		return false
	}
	if bNo > aNo && bNo < c.lastNo && !yield(b, nil) {
		return false
	}
	return c.lastNo == 0 || yield(c.last, nil)
}
