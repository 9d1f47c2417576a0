package tablets

import (
	"iter"
	"sort"
)

// maxTablets bounds the tablets of a table. Where more bytes are stored than usualTablets have at SplitBytes, tablets
// are split at a greater size, because many tablets without load add nothing to the answer.
const (
	maxTablets   = 20_000
	usualTablets = 2_000
)

// rate is the load of a tablet that follows one curve, a second, where the curve is 1.
type rate struct {
	curve         int
	cpu           float64 // seconds of a server
	writes, reads float64 // requests
	bytes         float64 // that are written
}

// tablet is a range of fronts, or old rows of one.
type tablet struct {
	first, last int  // fronts, without last
	old         bool // it has rows that no write reaches any more
	server      int
	bytes       float64
	left        float64 // of bytes: those that its fronts left behind when they jumped, all before what they write now
	rates       []rate  // of writes and of reads of the newest rows
	oldReads    []rate

	demand, writes, reads, written float64 // of the step, a second

	spent, asked float64 // since the last round, in seconds of a server: what was served and what was demanded
	load, wanted float64 // of the last round, in shares of a server
	hot, cold    float64 // for how many seconds it exceeds SplitLoad, or is small
	offline      float64 // seconds for which it is still moved
}

// plan computes the demand of a step from the factors of the curves.
func (t *tablet) plan(factors []float64) {
	t.demand, t.writes, t.reads, t.written = 0, 0, 0, 0
	for _, list := range [2][]rate{t.rates, t.oldReads} {
		for i := range list {
			r := &list[i]
			f := factors[r.curve]
			t.demand += r.cpu * f
			t.writes += r.writes * f
			t.reads += r.reads * f
			t.written += r.bytes * f
		}
	}
}

func (t *tablet) idle() bool { return len(t.rates)+len(t.oldReads) == 0 }

// share returns the part f of rates, which the tablet loses, and keeps the rest.
func share(rates []rate, f float64) (kept, given []rate) {
	for _, r := range rates {
		kept = append(kept, rate{r.curve, r.cpu * (1 - f), r.writes * (1 - f), r.reads * (1 - f), r.bytes * (1 - f)})
		given = append(given, rate{r.curve, r.cpu * f, r.writes * f, r.reads * f, r.bytes * f})
	}
	return kept, given
}

// ratesOf returns the load of a range of fronts, without the reads of old rows.
func (s *simulation) ratesOf(first, last int) []rate {
	sums := s.byCurve
	clear(sums)
	b := &s.before
	for from, to := range s.runsOf(first, last) {
		sums[s.load.Fronts[from].Curve].add(rate{cpu: b.cpu[to] - b.cpu[from], writes: b.writes[to] - b.writes[from], bytes: b.bytes[to] - b.bytes[from]})
	}
	for i := range s.load.Reads {
		q := &s.load.Reads[i]
		if q.Old {
			continue
		}
		if part := s.partOf(q, first, last); part > 0 {
			sums[q.Curve].add(s.readRate(q, part))
		}
	}
	var out []rate
	for c, r := range sums {
		if r.cpu > 0 {
			r.curve = c
			out = append(out, r)
		}
	}
	return out
}

func (r *rate) add(o rate) {
	r.cpu += o.cpu
	r.writes += o.writes
	r.reads += o.reads
	r.bytes += o.bytes
}

// partOf returns the part of a query that concerns the newest rows of a range of fronts.
func (s *simulation) partOf(q *Read, first, last int) float64 {
	first, last = max(first, q.First), min(last, q.Last)
	if first >= last {
		return 0
	}
	if all := s.before.writes[q.Last] - s.before.writes[q.First]; q.ByWrites && all > 0 {
		return (s.before.writes[last] - s.before.writes[first]) / all
	}
	return float64(last-first) / float64(q.Last-q.First)
}

// readRate returns the load of a part of a query. A request that reads across a range costs each of its tablets a
// request.
func (s *simulation) readRate(q *Read, part float64) rate {
	rows, bytes := orOne(q.Rows), orKilobyte(q.RowBytes)
	requests := q.Rate * part
	cpu := requests * s.cost.ofRead(rows, bytes)
	if q.Across {
		cpu = q.Rate*s.cost.read + requests*rows*s.cost.ofRow(bytes)
	}
	return rate{curve: q.Curve, cpu: cpu, reads: requests}
}

// runsOf returns the parts of a range of fronts that have one curve.
func (s *simulation) runsOf(first, last int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		run := sort.SearchInts(s.runs, first+1)
		for from := first; from < last; run++ {
			to := last
			if run < len(s.runs) {
				to = min(to, s.runs[run])
			}
			if !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// weight is a number of each front: a times the factor of its curve, plus b times scale. Both are given as sums of all
// fronts before.
type weight struct {
	fronts        []Front
	a, factors, b []float64
	scale         float64
}

// storing is what fronts have stored until now, if none of their writes was refused, and working what they cost now.
func (s *simulation) storing() weight {
	return weight{s.load.Fronts, s.before.bytes, s.elapsed, s.before.stored, 1}
}

func (s *simulation) working() weight {
	return weight{s.load.Fronts, s.before.cpu, s.now, s.before.reading, 1}
}

// between returns the weight of fronts that have one curve.
func (w *weight) between(from, to int) float64 {
	return (w.a[to]-w.a[from])*w.factors[w.fronts[from].Curve] + (w.b[to]-w.b[from])*w.scale
}

// sum returns the weight of a range.
func (s *simulation) sum(w weight, first, last int) (sum float64) {
	for from, to := range s.runsOf(first, last) {
		sum += w.between(from, to)
	}
	return sum
}

// cut returns the front at which a range is split, so that the weights of both halves differ least, or false if all
// weigh nothing or there is one front.
func (s *simulation) cut(w weight, first, last int) (at int, ok bool) {
	half := s.sum(w, first, last) / 2
	if last-first < 2 || half <= 0 {
		return 0, false
	}
	left := 0.0
	for from, to := range s.runsOf(first, last) {
		if run := w.between(from, to); left+run < half {
			left += run
			continue
		}
		n := sort.Search(to-from, func(n int) bool { return left+w.between(from, from+n) >= half })
		at = from + n
		if n > 0 && half-left-w.between(from, at-1) < left+w.between(from, at)-half {
			at--
		}
		break
	}
	return min(max(at, first+1), last-1), true
}

// split divides a live tablet at a front, and returns the right half. Bytes and reads of old rows go with the part of
// the bytes that the halves are expected to have. What the fronts left behind stays in the left half.
func (s *simulation) split(t *tablet, at int) *tablet {
	part := float64(t.last-at) / float64(t.last-t.first)
	if all := s.sum(s.storing(), t.first, t.last); all > 0 {
		part = s.sum(s.storing(), at, t.last) / all
	}
	o := &tablet{first: at, last: t.last, server: t.server, bytes: (t.bytes - t.left) * part, rates: s.ratesOf(at, t.last)}
	t.oldReads, o.oldReads = share(t.oldReads, part)
	t.last, t.rates, t.bytes = at, s.ratesOf(t.first, at), t.bytes-o.bytes
	t.hot, t.cold, t.load, t.wanted = 0, 0, t.load/2, t.wanted/2
	o.load, o.wanted = t.load, t.wanted
	s.splits++
	return o
}

// splitOld moves half of a tablet's bytes to a tablet without writes.
func (s *simulation) splitOld(t *tablet) *tablet {
	o := &tablet{first: t.first, last: t.last, old: true, server: t.server, bytes: t.bytes / 2}
	t.bytes -= o.bytes
	t.left = max(t.left-o.bytes, 0)
	before := t.oldLoad()
	t.oldReads, o.oldReads = share(t.oldReads, 0.5)
	if before > 0 {
		o.load = t.load * before / 2
		t.load -= o.load
	}
	t.hot, t.cold = 0, 0
	s.splits++
	return o
}

// oldLoad returns which part of a tablet's load are reads of old rows, where all curves are 1.
func (t *tablet) oldLoad() float64 {
	var old, all float64
	for _, r := range t.oldReads {
		old += r.cpu
	}
	for _, r := range t.rates {
		all += r.cpu
	}
	if old == 0 {
		return 0
	}
	return old / (old + all)
}
