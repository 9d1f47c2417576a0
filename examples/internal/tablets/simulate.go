package tablets

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// simulation is the state of a table and a cluster.
type simulation struct {
	load    *Load
	cluster Cluster
	options Options
	assume  *Assumptions
	cost    costs
	rnd     *rand.Rand

	factors   [][]float64 // by step, then by curve
	now       []float64   // those of this step
	warmSteps int
	dt        float64   // of a step, in seconds
	before    sums      // of all fronts before one
	runs      []int     // where fronts begin that have another curve than the one before
	elapsed   []float64 // by curve: its integral until now, in seconds
	byCurve   []rate    // for ratesOf

	live       []*tablet // in the order of the fronts, all of which they cover
	old        []*tablet
	servers    []server
	splitBytes float64
	sinceRound float64
	nextOld    float64 // when reads of old rows are spread again, in seconds

	splits, merges, moves int
	record                *recorder
}

// server is a node, or two that work as one.
type server struct {
	demand float64 // of the step, in shares
	load   float64 // of the last round
}

// Simulate runs the model. The work is proportional to the number of fronts plus steps times tablets: a million fronts
// take a few tenths of a second for an hour. It fails with ErrInvalid, which names the field, and with the error of
// ctx.
func Simulate(ctx context.Context, load Load, cluster Cluster, options Options) (*Result, error) {
	s, err := newSimulation(load, cluster, options)
	if err != nil {
		return nil, err
	}
	for step := range s.factors {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("tablets: simulation ended at step %d of %d: %w", step, len(s.factors), context.Cause(ctx))
		}
		s.step(step)
	}
	return s.record.result(), nil
}

func newSimulation(load Load, cluster Cluster, options Options) (*simulation, error) {
	if err := load.Check(); err != nil {
		return nil, err
	}
	if err := cluster.check(); err != nil {
		return nil, err
	}
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &simulation{load: &load, cluster: cluster, options: options, dt: options.Step.Seconds()}
	s.assume = &s.options.Assume
	s.cost = s.assume.costs(nodes[cluster.Storage]).of(cluster.size())
	s.rnd = rand.New(rand.NewPCG(options.Seed, 20))
	s.elapsed = make([]float64, len(load.Curves)+1)
	s.byCurve = make([]rate, len(load.Curves)+1)
	s.servers = make([]server, cluster.Nodes/cluster.size())
	if err := s.evaluateCurves(); err != nil {
		return nil, err
	}
	s.addUp()
	s.place()
	s.record = newRecorder(s)
	return s, nil
}

// of returns the costs on a server with that number of nodes.
func (c costs) of(nodes int) costs {
	n := float64(nodes)
	return costs{c.write / n, c.writeByte / n, c.read / n, c.row / n, c.rowByte / n}
}

// evaluateCurves asks each curve for its factor of each step.
func (s *simulation) evaluateCurves() error {
	s.warmSteps = int(s.options.Warm / s.options.Step)
	n := max(int(s.options.Duration/s.options.Step), 1)
	curves := len(s.load.Curves) + 1
	all := make([]float64, (s.warmSteps+n)*curves)
	greatest := make([]float64, curves)
	greatest[0] = 1
	for i := range n {
		at := time.Duration(i) * s.options.Step
		row := all[(s.warmSteps+i)*curves:][:curves]
		row[0] = 1
		for c, curve := range s.load.Curves {
			f := curve(at)
			if !(f >= 0 && f <= maxFactor) {
				return invalid.New(ErrInvalid, fmt.Sprintf("Curves[%d] at %v", c, at), fmt.Sprint(f), fmt.Sprintf("0 to %.0f", float64(maxFactor)))
			}
			row[c+1] = f
			greatest[c+1] = max(greatest[c+1], f)
		}
	}
	for i := range s.warmSteps {
		copy(all[i*curves:], greatest)
	}
	for i := range s.warmSteps + n {
		s.factors = append(s.factors, all[i*curves:][:curves])
	}
	return nil
}

// sums are those of all fronts before one, where the curve is 1. They are one longer than the fronts.
type sums struct {
	writes, bytes, cpu []float64 // of the rows that are written, a second
	stored             []float64
	reads              []float64 // requests a second
	reading            []float64 // the cost of reads of the newest rows, a second
}

// addUp computes what is looked up later by front.
func (s *simulation) addUp() {
	n := len(s.load.Fronts)
	b := &s.before
	for _, list := range []*[]float64{&b.writes, &b.bytes, &b.cpu, &b.stored, &b.reads, &b.reading} {
		*list = make([]float64, n+1)
	}
	for i := range s.load.Fronts {
		f := &s.load.Fronts[i]
		bytes := orKilobyte(f.RowBytes)
		b.writes[i+1] = b.writes[i] + f.Writes
		b.bytes[i+1] = b.bytes[i] + f.Writes*bytes
		b.cpu[i+1] = b.cpu[i] + f.Writes*s.cost.ofWrite(bytes)
		b.stored[i+1] = b.stored[i] + f.Stored
		if i == 0 || f.Curve != s.load.Fronts[i-1].Curve {
			s.runs = append(s.runs, i)
		}
	}
	if len(s.load.Reads) == 0 {
		return
	}
	reads := s.spread(func(q *Read) float64 { return q.Rate })
	cpu := s.spread(func(q *Read) float64 {
		if q.Old {
			return 0
		}
		return s.readRate(q, 1).cpu
	})
	for i := range n {
		b.reads[i+1] = b.reads[i] + reads(i)
		b.reading[i+1] = b.reading[i] + cpu(i)
	}
}

// spread divides a number of each query over the fronts that it reads. The function that it returns is called for each
// front in order.
func (s *simulation) spread(of func(q *Read) float64) func(front int) float64 {
	n := len(s.load.Fronts)
	alike, byWrites := make([]float64, n+1), make([]float64, n+1)
	for i := range s.load.Reads {
		q := &s.load.Reads[i]
		v := of(q)
		to, v := alike, v/float64(q.Last-q.First)
		if all := s.before.writes[q.Last] - s.before.writes[q.First]; q.ByWrites && all > 0 {
			to, v = byWrites, of(q)/all
		}
		to[q.First] += v
		to[q.Last] -= v
	}
	a, w := 0.0, 0.0
	return func(front int) float64 {
		a += alike[front]
		w += byWrites[front]
		return max(a+w*s.load.Fronts[front].Writes, 0) // rounding may leave less than nothing
	}
}

// place makes the first tablets: those of Splits, divided further if more is stored, one after another on all servers.
func (s *simulation) place() {
	s.setSplitBytes(s.before.stored[len(s.load.Fronts)])
	bounds := append([]int{0}, s.load.Splits...)
	for i, first := range bounds {
		last := len(s.load.Fronts)
		if i+1 < len(bounds) {
			last = bounds[i+1]
		}
		s.live = append(s.live, &tablet{first: first, last: last, rates: s.ratesOf(first, last), bytes: s.before.stored[last] - s.before.stored[first]})
	}
	s.splitAll(func(t *tablet) bool { return false })
	s.splits = 0
	order := s.rnd.Perm(len(s.servers))
	for i, t := range s.all() {
		t.server = order[i%len(order)]
	}
	s.spreadOldReads()
}

// all returns the live tablets and then the old ones.
func (s *simulation) all() []*tablet {
	return append(append(make([]*tablet, 0, len(s.live)+len(s.old)), s.live...), s.old...)
}

func (s *simulation) setSplitBytes(stored float64) {
	s.splitBytes = max(s.assume.SplitBytes, stored/usualTablets)
}

// step serves one step and then, if it is time, splits, merges and moves.
func (s *simulation) step(n int) {
	s.now = s.factors[n]
	s.jump(n)
	s.serve(n)
	for c, f := range s.now {
		s.elapsed[c] += f * s.dt
	}
	if s.sinceRound += s.dt; s.sinceRound >= s.assume.BalanceEvery.Seconds()-slack {
		s.round(n)
		s.sinceRound = 0
	}
}

// serve does the work of a step.
func (s *simulation) serve(n int) {
	for i := range s.servers {
		s.servers[i].demand = 0
	}
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			if t.idle() {
				continue
			}
			t.plan(s.now)
			s.servers[t.server].demand += t.demand
		}
	}
	s.record.begin(n)
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			served := 1.0
			if t.offline > 0 {
				gone := min(t.offline, s.dt)
				served -= gone / s.dt
				t.offline -= gone
			}
			if t.idle() {
				continue
			}
			if d := s.servers[t.server].demand; d > 1 {
				served /= d
			}
			t.spent += t.demand * served * s.dt
			t.asked += t.demand * s.dt
			t.bytes += t.written * served * s.dt
			s.record.serve(t, served)
		}
	}
	s.record.end(n)
}

// jump moves the ranges of fronts whose time has come. The tablet at the end of a range takes all its fronts, and the
// tablets that hold nothing but older rows of the range become old.
func (s *simulation) jump(n int) {
	if n <= s.warmSteps { // the time before the start has no multiples of intervals
		return
	}
	from, to := time.Duration(n-1-s.warmSteps)*s.options.Step, time.Duration(n-s.warmSteps)*s.options.Step
	for i := range s.load.Jumps {
		j := &s.load.Jumps[i]
		if from/j.Every != to/j.Every {
			s.jumpRange(j.First, j.Last)
		}
	}
}

func (s *simulation) jumpRange(first, last int) {
	from := s.tabletOf(first)
	to := s.tabletOf(last - 1)
	end := s.live[to]
	end.hot, end.cold = 0, 0
	if end.first >= first && end.last <= last {
		end.left = end.bytes
	}
	if from == to {
		return
	}
	kept := s.live[:from]
	if t := s.live[from]; t.first < first { // it begins before the range
		t.last = first
		t.rates = s.ratesOf(t.first, t.last)
		kept = s.live[:from+1]
		from++
	}
	for _, t := range s.live[from:to] {
		t.old, t.rates, t.first, t.last = true, nil, first, last
		t.hot, t.cold = 0, 0
		if t.bytes > 0 || len(t.oldReads) > 0 {
			s.old = append(s.old, t)
		}
	}
	end.first = first
	end.rates = s.ratesOf(end.first, end.last)
	s.live = append(kept, s.live[to:]...)
}

// tabletOf returns the index of the live tablet of a front.
func (s *simulation) tabletOf(front int) int {
	low, high := 0, len(s.live)-1
	for low < high {
		if mid := (low + high) / 2; s.live[mid].last > front {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// spreadOldReads divides the queries for old rows over the tablets that have them, by their bytes.
func (s *simulation) spreadOldReads() {
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			t.oldReads = nil
		}
	}
	type part struct {
		t      *tablet
		weight float64
	}
	for i := range s.load.Reads {
		q := &s.load.Reads[i]
		if !q.Old {
			continue
		}
		var parts []part
		total := 0.0
		add := func(t *tablet, bytes float64) {
			first, last := max(t.first, q.First), min(t.last, q.Last)
			if first < last && bytes > 0 {
				w := bytes * float64(last-first) / float64(t.last-t.first)
				parts = append(parts, part{t, w})
				total += w
			}
		}
		live := s.live[s.tabletOf(q.First) : s.tabletOf(q.Last-1)+1]
		for _, t := range live {
			add(t, t.bytes)
		}
		for _, t := range s.old {
			add(t, t.bytes)
		}
		if total == 0 { // nothing is stored yet
			for _, t := range live {
				add(t, float64(t.last-t.first))
			}
		}
		for _, p := range parts {
			p.t.oldReads = append(p.t.oldReads, s.readRate(q, p.weight/total))
		}
	}
	s.nextOld = math.Inf(1)
	for i := range s.load.Reads {
		if s.load.Reads[i].Old {
			s.nextOld = s.elapsed[0] + s.options.Duration.Seconds()/60
		}
	}
}
