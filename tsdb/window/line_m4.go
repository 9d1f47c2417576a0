package window

import (
	"iter"
	"time"
)

// m4 returns the samples of a line through other samples, oldest first: for each column the first, the last, the
// lowest and the highest, each once. The line through them has the same pixels as the line through all samples.
//
// A *tsdb.PointError among the samples is yielded when it comes, and the sequence goes on. Any other error is the last
// pair. The samples are read when the sequence is run. Its memory is one column.
func m4(samples iter.Seq2[LineSample, error], cols lineColumns, maxGap time.Duration) iter.Seq2[LineSample, error] {
	return func(yield func(LineSample, error) bool) {
		var c m4Column
		at := -1
		take := func(s LineSample) bool {
			i := cols.of(s.Time, 1)
			if i == at {
				c.add(s)
				return true
			}
			s.Break = at >= 0 && maxGap > 0 && s.Time.Sub(c.last.Time) > maxGap
			if at >= 0 && !c.yield(yield) {
				return false
			}
			at, c = i, m4Column{first: s, last: s, low: s, high: s}
			return true
		}
		reduce(samples, yield, take, func() {
			if at >= 0 {
				c.yield(yield)
			}
		})
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
