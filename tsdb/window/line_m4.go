package window

import (
	"iter"

	"github.com/tidemark-go/tidemark/tsdb"
)

// m4 returns the samples of a line through the points of an interval, oldest first: for each column the first, the
// last, the lowest and the highest, each once. The line through them has the same pixels as the line through all
// points.
//
// points are those of one entity in the interval, oldest first. of returns the number of a point, and false if it has
// none. A *tsdb.PointError among the points is yielded when it comes, and the sequence goes on. Any other error is
// the last pair. The points are read when the sequence is run. Its memory is one column.
func m4[T any](points iter.Seq2[tsdb.Point[T], error], in tsdb.Interval, of func(tsdb.Point[T]) (LineSample, bool), opts LineOptions) iter.Seq2[LineSample, error] {
	return func(yield func(LineSample, error) bool) {
		cols, err := newLineColumns(in, opts)
		if err != nil {
			yield(LineSample{}, err)
			return
		}
		var c m4Column
		at := -1
		stopped, err := line(points, of, yield, func(s LineSample) (bool, error) {
			i, ok := cols.of(s.Time, 1)
			if !ok {
				return true, outsideLine(s.Time)
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
			yield(LineSample{}, err)
		case at >= 0:
			c.yield(yield)
		}
	}
}

// m4Column is what M4 keeps of the points of a column. The numbers say when each sample came.
type m4Column struct {
	first, last, low, high    LineSample
	lastNo, lowNo, highNo, no int
}

func (c *m4Column) add(s LineSample) {
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
func (c *m4Column) yield(yield func(LineSample, error) bool) bool {
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
