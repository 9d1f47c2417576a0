package tablets

// maxTablets bounds the tablets of a table. Where more bytes are stored, tablets are split at a greater size.
const maxTablets = 20_000

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
	sums := s.sums
	clear(sums)
	for i := first; i < last; i++ {
		f := &s.load.Fronts[i]
		if f.Writes == 0 {
			continue
		}
		bytes := orKilobyte(f.RowBytes)
		r := &sums[f.Curve]
		r.cpu += f.Writes * s.cost.ofWrite(bytes)
		r.writes += f.Writes
		r.bytes += f.Writes * bytes
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
	if all := s.writesBefore[q.Last] - s.writesBefore[q.First]; q.ByWrites && all > 0 {
		return (s.writesBefore[last] - s.writesBefore[first]) / all
	}
	return float64(last-first) / float64(q.Last-q.First)
}

// readRate returns the load of a part of a query. A request that reads across a range costs each of its tablets a request.
func (s *simulation) readRate(q *Read, part float64) rate {
	rows, bytes := orOne(q.Rows), orKilobyte(q.RowBytes)
	requests := q.Rate * part
	cpu := requests * s.cost.ofRead(rows, bytes)
	if q.Across {
		cpu = q.Rate*s.cost.read + requests*rows*s.cost.ofRow(bytes)
	}
	return rate{curve: q.Curve, cpu: cpu, reads: requests}
}

// cut returns the front at which a tablet is split, so that the weights of both halves differ least, or false if all weight 0 or there is
// one front.
func cut(first, last int, weight func(front int) float64) (at int, ok bool) {
	total := 0.0
	for i := first; i < last; i++ {
		total += weight(i)
	}
	if last-first < 2 || total <= 0 {
		return 0, false
	}
	sum := weight(first)
	at = first + 1
	for at < last-1 {
		w := weight(at)
		if sum+w/2 > total/2 {
			break
		}
		sum += w
		at++
	}
	return at, true
}

// split divides a live tablet at a front, and returns the right half. Bytes and reads of old rows go with the part of the bytes that the halves
// are expected to have. What the fronts left behind stays in the left half.
func (s *simulation) split(t *tablet, at int) *tablet {
	left, right := 0.0, 0.0
	for i := t.first; i < t.last; i++ {
		if b := s.storedAt(i); i < at {
			left += b
		} else {
			right += b
		}
	}
	part := float64(t.last-at) / float64(t.last-t.first)
	if left+right > 0 {
		part = right / (left + right)
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

// storedAt returns how many bytes a front has stored, if none of its writes was refused.
func (s *simulation) storedAt(front int) float64 {
	f := &s.load.Fronts[front]
	return f.Stored + f.Writes*orKilobyte(f.RowBytes)*s.elapsed[f.Curve]
}
