package tablets

import (
	"iter"
	"math/rand/v2"
	"sort"
	"time"
)

// Heat is where the load was, in 60 columns of equal length.
type Heat struct {
	s       *simulation
	columns []column
}

type column struct {
	steps   int
	factors []float64 // by curve: the sum of the factors of its steps
	refused []refused
}

// refused are the requests of a range of fronts in one step of which a share was not served.
type refused struct {
	first, last, step int
	share             float64
}

func newHeat(s *simulation) *Heat {
	steps := len(s.factors) - s.warmSteps
	h := &Heat{s: s, columns: make([]column, min(columns, steps))}
	for i := range h.columns {
		h.columns[i].factors = make([]float64, len(s.load.Curves)+1)
	}
	for n := range steps {
		c := h.column(n + s.warmSteps)
		c.steps++
		for curve, f := range s.factors[n+s.warmSteps] {
			c.factors[curve] += f
		}
	}
	return h
}

// column returns the column of a step.
func (h *Heat) column(n int) *column {
	return &h.columns[(n-h.s.warmSteps)*len(h.columns)/(len(h.s.factors)-h.s.warmSteps)]
}

func (h *Heat) refuse(n int, t *tablet, share float64) {
	c := h.column(n)
	c.refused = append(c.refused, refused{t.first, t.last, n, share})
}

// Len returns the number of columns.
func (h *Heat) Len() int { return len(h.columns) }

// At returns when a column begins.
func (h *Heat) At(column int) time.Duration {
	steps := len(h.s.factors) - h.s.warmSteps
	return time.Duration((column*steps+len(h.columns)-1)/len(h.columns)) * h.s.step
}

// Kind is what happened to a request.
type Kind uint8

// The kinds of requests. Those that were refused are among the others, too.
const (
	Reads Kind = iota
	Writes
	Refused
)

// before returns how many requests of a kind a column has of all fronts before one. It is one longer than the fronts.
func (h *Heat) before(column int, k Kind) []float64 {
	s, c := h.s, &h.columns[column]
	out := make([]float64, len(s.writing)+1)
	for i := range s.writing {
		f := &s.load.Fronts[i]
		switch k {
		case Reads:
			out[i+1] = (s.reads[i] + s.oldReads[i]) * float64(c.steps) * s.dt
		case Writes:
			out[i+1] = f.Writes * c.factors[f.Curve] * s.dt
		}
	}
	if k == Refused {
		for _, r := range c.refused {
			for i := r.first; i < r.last; i++ {
				f := &s.load.Fronts[i]
				out[i+1] += (s.reads[i] + f.Writes*s.factors[r.step][f.Curve]) * r.share * s.dt
			}
		}
	}
	for i := range s.writing {
		out[i+1] += out[i]
	}
	return out
}

// Samples returns how many requests of a kind a column has, and n of them, or all if they are fewer: the front of each,
// in order, and when it was made. Each stands for the same number of requests. The same seed gives the same samples.
func (h *Heat) Samples(column int, k Kind, n int, seed uint64) (total float64, samples iter.Seq2[int, time.Duration]) {
	before := h.before(column, k)
	total = before[len(before)-1]
	return total, func(yield func(int, time.Duration) bool) {
		rnd := rand.New(rand.NewPCG(seed, uint64(column)<<8|uint64(k)))
		from, to := h.At(column), h.At(column+1)
		n := int(min(float64(n), total))
		for i := range n {
			want := (float64(i) + rnd.Float64()) / float64(n) * total
			front := sort.Search(len(before)-2, func(front int) bool { return before[front+1] > want })
			if !yield(front, from+time.Duration(rnd.Float64()*float64(to-from))) {
				return
			}
		}
	}
}
