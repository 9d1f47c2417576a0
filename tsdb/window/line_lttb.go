package window

import (
	"iter"
	"math"
	"time"
)

// lttbOf returns the samples of a line through other samples, oldest first: for each column that has samples the one
// that forms the largest triangle with the sample before it and the mean of the next column. The first and the last
// sample of the line, and of each part between two breaks, are always kept, also if both are in one column.
//
// Candidates are the lowest and the highest sample of each quarter of a column, so that the memory is bounded and an
// outlier is not lost.
//
// Order and errors are those of m4. Its memory is two columns of up to eight candidates.
func lttbOf(samples iter.Seq2[LineSample, error], cols lineColumns, maxGap time.Duration) iter.Seq2[LineSample, error] {
	return func(yield func(LineSample, error) bool) {
		l := lttb{start: cols.start, yield: yield}
		take := func(s LineSample) bool {
			quarter := cols.of(s.Time, quarters)
			if at := quarter / quarters; !l.begun || at != l.filling.at {
				s.Break = l.begun && maxGap > 0 && s.Time.Sub(l.filling.last.Time) > maxGap
				if !l.begin(s, at) {
					return false
				}
			}
			l.filling.add(s, nanosBetween(l.start, s.Time), quarter%quarters)
			return true
		}
		reduce(samples, yield, take, func() {
			if l.begun {
				l.end()
			}
		})
	}
}

const quarters = 4

// lttb is one run of LTTB.
type lttb struct {
	start   time.Time
	yield   func(LineSample, error) bool
	begun   bool       // filling has points
	filling lttbColumn // the column that takes points
	pending lttbColumn // the one before it, whose sample is chosen once filling is complete
	waits   bool       // pending has points
	chosen  LineSample // the sample that was yielded last
}

// begin begins a column with a sample, which is the first of the line or of what follows a break, or of a column like
// others.
func (l *lttb) begin(s LineSample, at int) bool {
	more := true
	switch {
	case !l.begun || s.Break:
		more = !l.begun || l.end()
		if more {
			more = l.take(s)
		}
		l.filling = lttbColumn{at: at, settled: true}
	default:
		if l.waits {
			more = l.take(l.best())
		}
		if l.waits = !l.filling.settled; l.waits {
			l.pending = l.filling
		}
		l.filling = lttbColumn{at: at}
	}
	l.begun = true
	return more
}

// end yields the last samples of the line, or of what comes before a break.
func (l *lttb) end() bool {
	if l.waits && !l.take(l.best()) {
		return false
	}
	l.waits = false
	return l.filling.settled && l.filling.points == 1 || l.take(l.filling.last)
}

func (l *lttb) take(s LineSample) bool {
	l.chosen = s
	return l.yield(s, nil)
}

// best returns the candidate of pending that forms the largest triangle with the sample that was chosen before it and
// the mean of filling.
func (l *lttb) best() LineSample {
	x := nanosBetween(l.start, l.chosen.Time)
	y := l.chosen.Value
	meanX, meanY := l.filling.elapsed/l.filling.points-x, l.filling.values/l.filling.points-y
	var best LineSample
	largest := -1.0 // an area that is not a number is not larger
	for _, c := range l.pending.candidates() {
		area := math.Abs(meanX*(c.Value-y) - (nanosBetween(l.start, c.Time)-x)*meanY)
		if largest < 0 || area > largest {
			best, largest = c, max(area, 0)
		}
	}
	return best
}

// lttbColumn is what LTTB keeps of the points of a column.
type lttbColumn struct {
	at              int
	settled         bool // its first point is in the line, and no other is chosen
	last            LineSample
	points          float64
	elapsed, values float64 // sums: of the time since the start of the interval in nanoseconds, and of the values
	quarter         [quarters]m4Column
	has             [quarters]bool
}

func (c *lttbColumn) add(s LineSample, elapsed float64, quarter int) {
	c.last = s
	c.points++
	c.elapsed += elapsed
	c.values += s.Value
	if q := &c.quarter[quarter]; c.has[quarter] {
		q.add(s)
	} else {
		*q, c.has[quarter] = m4Column{first: s, last: s, low: s, high: s}, true
	}
}

// candidates returns the lowest and the highest point of each quarter, the oldest first.
func (c *lttbColumn) candidates() []LineSample {
	out := make([]LineSample, 0, 2*quarters)
	for i := range c.quarter {
		switch q := &c.quarter[i]; {
		case !c.has[i]:
		case q.lowNo < q.highNo:
			out = append(out, q.low, q.high)
		default:
			out = append(out, q.high, q.low)
		}
	}
	return out
}
