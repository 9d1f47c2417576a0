package forecast

import (
	"math"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// measure returns the contribution of a cell to a figure.
type measure func(*observed) float64

// strata are the parts, divided by their known groups.
type strata struct {
	own    map[rowkey.Group][]*part // parts of a single group, with enough parts read to represent the others
	thin   map[rowkey.Group][]*part // parts of a single group with too few parts read
	common []*part                  // parts of several groups, and all in thin
	pieces map[rowkey.Group][]*piece
}

// enough is how many parts of a group must be read to estimate the error.
const enough = 3

func newStrata(parts []*part) strata {
	st := strata{own: map[rowkey.Group][]*part{}, thin: map[rowkey.Group][]*part{}, pieces: map[rowkey.Group][]*piece{}}
	read, finished := map[rowkey.Group]int{}, map[rowkey.Group]int{}
	for _, p := range parts {
		for _, c := range p.pieces {
			st.pieces[c.group] = append(st.pieces[c.group], c)
		}
		if p.pure {
			st.own[p.group] = append(st.own[p.group], p)
			read[p.group] += int(one(p.read()))
			finished[p.group] += int(one(p.finished()))
		}
	}
	for _, p := range parts {
		switch {
		case !p.pure:
			st.common = append(st.common, p)
		case read[p.group] < enough && finished[p.group] < len(st.own[p.group])+len(st.thin[p.group]):
			st.common = append(st.common, p)
			st.thin[p.group] = append(st.thin[p.group], p)
			st.own[p.group] = st.own[p.group][1:]
		}
	}
	return st
}

// sum is an estimate under construction.
type sum struct {
	value, variance float64
	scaled          float64 // the part of value that depends on the scale of the service's sizes
}

func (s *sum) add(o sum) {
	s.value += o.value
	s.variance += o.variance
	s.scaled += o.scaled
}

func (s sum) estimate(spread float64) Estimate {
	return Estimate{Value: s.value, Error: math.Sqrt(s.variance + square(s.scaled*spread))}
}

// guess is a sum known only by comparison with similar data; its error is as large as its value.
func guess(value float64) sum { return sum{value: value, variance: square(value), scaled: value} }

// total returns the sum of a measure over parts, some of which were read. It scales the findings by the parts' sizes.
// The read parts are a random choice. It reports false if no part was read.
func total(parts []*part, m measure) (t sum, ok bool) {
	var sized, size, seen, finished float64
	var ys []float64
	var read []*part
	for _, p := range parts {
		sized += p.size
		if !p.read() {
			continue
		}
		found, more := p.total(m)
		finished += one(p.finished())
		t.value += found + more
		seen += found
		size += p.size
		read, ys = append(read, p), append(ys, found+more)
	}
	n, all := float64(len(read)), float64(len(parts))
	if n == 0 {
		return sum{}, false
	}
	ratio, weight := 0.0, 1.0
	if size > 0 {
		ratio, weight = t.value/size, sized/size
	}
	t.value *= weight
	t.scaled = t.value - seen
	off := 0.0
	for i, p := range read {
		off += square(ys[i] - ratio*p.size)
	}
	switch chance := 1 - finished/all; {
	case chance == 0:
	case n == 1:
		t.variance = chance * square(t.value)
	default:
		t.variance = chance * square(weight) * n * off / (n - 1)
		t.variance *= (n + 1) / (n - 1) // correct for the small number of parts read
	}
	return t, true
}

// total returns the sum of a measure over the read and over the unread rows of a part.
func (p *part) total(m measure) (found, more float64) {
	for _, c := range p.pieces {
		y := c.total(m)
		found += y
		more += y * c.extra / max(1, c.raw)
	}
	return found, more + found*p.extra/max(1, p.raw())
}

func (c *piece) total(m measure) (y float64) {
	if c.stood == 0 {
		for i := range c.seen {
			y += m(&c.seen[i])
		}
		return y
	}
	for i := range c.seen {
		y += m(&c.seen[i]) * float64(c.seen[i].stands)
	}
	return y * c.raw / c.stood
}

// whole returns the sum of a measure over the table.
func (s *sample) whole(m measure) (t sum) {
	for _, g := range s.groups { // in order, as sums depend on it
		own, _ := total(s.strata.own[g], m)
		t.add(own)
	}
	common, _ := total(s.strata.common, m)
	t.add(common)
	return t
}

// group returns the sum of a measure over a group.
func (s *sample) group(g rowkey.Group, m measure) (t sum) {
	own := s.strata.own[g]
	t, _ = total(own, m)
	like, raw := 0.0, 0.0 // what represents its unread rows
	for _, p := range own {
		y, _ := p.total(m)
		like, raw = like+y, raw+p.raw()
	}
	beside, seen := 0.0, 0.0
	for _, c := range s.strata.pieces[g] {
		if !c.counted {
			beside, seen = beside+c.total(m), seen+c.raw
		}
	}
	t.value += beside
	if raw == 0 {
		like, raw = beside, seen
	}
	for _, c := range s.strata.pieces[g] {
		if !c.counted && c.extra > 0 {
			t.add(guess(c.extra * like / max(1, raw)))
		}
	}
	for _, p := range s.strata.thin[g] {
		if !p.read() {
			t.add(guess(p.size * s.scale * like / max(1, raw)))
		}
	}
	return t
}

// unmet returns the estimated bytes of groups that the sample did not meet.
func (s *sample) unmet() (t sum) {
	if s.basis == Counted {
		return t
	}
	t, _ = total(s.strata.common, bytesOf)
	known := 0.0
	for _, g := range s.groups {
		all := s.group(g, bytesOf)
		own, _ := total(s.strata.own[g], bytesOf)
		known += all.value - own.value
	}
	t.value = max(0, t.value-known)
	t.scaled = min(t.scaled, t.value)
	return t
}
