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

	s      *simulation
	rates  [][]rate    // by line
	curves [][]float64 // by column: the integral of each curve, in seconds
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
	before := func(front int) float64 { return h.s.before.writes[front] + h.s.before.reads[front] }
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
		h.curves = append(h.curves, columns[i].curves)
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

// Samples returns n requests of a column, or all if they are fewer: the front of each, in order, and when it was made.
// Each stands for the same number of requests. The same seed gives the same samples.
func (h *Heat) Samples(column int, k Kind, n int, seed uint64) iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		total := h.Total(column, k)
		n := int(min(float64(n), total))
		rnd := rand.New(rand.NewPCG(seed, uint64(column)<<8|uint64(k)))
		s := h.s
		steps := len(s.factors) - s.warmSteps
		from := time.Duration((column*steps+len(h.Cells)-1)/len(h.Cells)) * s.options.Step
		to := time.Duration(((column+1)*steps+len(h.Cells)-1)/len(h.Cells)) * s.options.Step
		w := h.weight(column, k)
		line, before := 0, 0.0
		for i := range n {
			want := (float64(i) + rnd.Float64()) / float64(n) * total
			for line+1 < len(h.Lines) && before+h.Cells[column][line].of(k) <= want {
				before += h.Cells[column][line].of(k)
				line++
			}
			part := (want - before) / max(h.Cells[column][line].of(k), 1e-300)
			if !yield(h.frontAt(w, line, part), from+time.Duration(rnd.Float64()*float64(to-from))) {
				return
			}
		}
	}
}

// weight returns how many requests of a kind the fronts have in a column.
func (h *Heat) weight(column int, k Kind) weight {
	b, curves := &h.s.before, h.curves[column]
	w := weight{h.s.load.Fronts, b.writes, curves, b.reads, curves[0]}
	switch k {
	case Reads:
		w.factors = make([]float64, len(curves))
	case Writes:
		w.scale = 0
	}
	return w
}

// frontAt returns the front up to which a line has a part of its weight.
func (h *Heat) frontAt(w weight, line int, part float64) int {
	first, last := h.Lines[line], h.end(line)
	want := min(part, 1) * h.s.sum(w, first, last)
	for from, to := range h.s.runsOf(first, last) {
		if run := w.between(from, to); run <= want && to < last {
			want -= run
			continue
		}
		return min(from+sort.Search(to-from, func(n int) bool { return w.between(from, from+n+1) > want }), last-1)
	}
	return first
}
