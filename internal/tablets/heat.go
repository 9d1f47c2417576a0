package tablets

import (
	"iter"
	"math/rand/v2"
	"sort"
	"time"
)

// Heat is where the load was: time by ranges of fronts.
type Heat struct {
	// Lines are the first fronts of the ranges, which have equal numbers of fronts.
	Lines []int
	// Cells has the requests of each column of the result, by line.
	Cells [][]Cell

	s     *simulation
	rates [][]rate // by line
}

// Cell is what was asked of a range of fronts within a column.
type Cell struct {
	Requests // that were offered
	// Refused is the part of them that was not served, estimated where a tablet has several ranges, and Bytes those
	// that were offered to be written.
	Refused, Bytes float64
}

func newHeat(s *simulation, columns int) *Heat {
	n := len(s.load.Fronts)
	h := &Heat{s: s, Lines: make([]int, min(s.options.Lines, n))}
	for i := range h.Lines {
		h.Lines[i] = i * n / len(h.Lines)
	}
	h.rates = make([][]rate, len(h.Lines))
	for i := range h.Lines {
		h.rates[i] = s.ratesOf(h.Lines[i], h.end(i))
		for q := range s.load.Reads {
			if r := &s.load.Reads[q]; r.Old {
				if part := s.partOf(r, h.Lines[i], h.end(i)); part > 0 {
					h.rates[i] = append(h.rates[i], s.readRate(r, part))
				}
			}
		}
	}
	h.Cells = make([][]Cell, columns)
	for i := range h.Cells {
		h.Cells[i] = make([]Cell, len(h.Lines))
	}
	return h
}

// end returns the front behind a line.
func (h *Heat) end(line int) int {
	if line+1 < len(h.Lines) {
		return h.Lines[line+1]
	}
	return len(h.s.load.Fronts)
}

// refuse counts requests of a tablet that were refused in some seconds, for all lines that it has fronts of.
func (h *Heat) refuse(column int, t *tablet, seconds float64) {
	before := func(front int) float64 { return h.s.before.requests[front] }
	if before(t.last) <= before(t.first) { // it has only reads of what others wrote before
		before = func(front int) float64 { return float64(front) }
	}
	n := (t.reads + t.writes) * seconds / (before(t.last) - before(t.first))
	line := sort.SearchInts(h.Lines, t.first+1) - 1
	for first := t.first; first < t.last; line++ {
		last := min(h.end(line), t.last)
		h.Cells[column][line].Refused += n * (before(last) - before(first))
		first = last
	}
}

// fill computes what was offered, when the columns are complete.
func (h *Heat) fill(columns []column) {
	for i := range columns {
		for line, rates := range h.rates {
			c := &h.Cells[i][line]
			for _, r := range rates {
				seconds := columns[i].curves[r.curve]
				c.Reads += r.reads * seconds
				c.Writes += r.writes * seconds
				c.Bytes += r.bytes * seconds
			}
		}
	}
	h.rates = nil
}

// Kind is what happened to a request.
type Kind uint8

// The kinds of requests. Those that were refused are among the others, too.
const (
	Reads Kind = iota
	Writes
	Refused
)

func (c *Cell) of(k Kind) float64 {
	return [...]float64{Reads: c.Reads, Writes: c.Writes, Refused: c.Refused}[k]
}

// Total returns how many requests of a kind a column has.
func (h *Heat) Total(column int, k Kind) (sum float64) {
	for i := range h.Cells[column] {
		sum += h.Cells[column][i].of(k)
	}
	return sum
}

// Samples returns n requests of a column, or all if they are fewer: the front of each, in order, and when it was made. Each stands
// for the same number of requests. The same seed gives the same samples.
func (h *Heat) Samples(column int, k Kind, n int, seed uint64) iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		total := h.Total(column, k)
		n := int(min(float64(n), total))
		rnd := rand.New(rand.NewPCG(seed, uint64(column)<<8|uint64(k)))
		s := h.s
		steps := len(s.factors) - s.warmSteps
		from := time.Duration((column*steps+len(h.Cells)-1)/len(h.Cells)) * s.options.Step
		to := time.Duration(((column+1)*steps+len(h.Cells)-1)/len(h.Cells)) * s.options.Step
		line, before := 0, 0.0
		for i := range n {
			want := (float64(i) + rnd.Float64()) / float64(n) * total
			for line+1 < len(h.Lines) && before+h.Cells[column][line].of(k) <= want {
				before += h.Cells[column][line].of(k)
				line++
			}
			part := (want - before) / max(h.Cells[column][line].of(k), 1e-300)
			if !yield(h.frontAt(line, k, part), from+time.Duration(rnd.Float64()*float64(to-from))) {
				return
			}
		}
	}
}

// frontAt returns the front up to which a line has a part of its requests of a kind.
func (h *Heat) frontAt(line int, k Kind, part float64) int {
	s := h.s
	before := func(front int) float64 {
		switch k {
		case Reads:
			return s.before.requests[front] - s.before.writes[front]
		case Writes:
			return s.before.writes[front]
		}
		return s.before.requests[front]
	}
	first, last := h.Lines[line], h.end(line)
	want := before(first) + min(part, 1)*(before(last)-before(first))
	return min(first+sort.Search(last-first, func(i int) bool { return before(first+i+1) > want }), last-1)
}
