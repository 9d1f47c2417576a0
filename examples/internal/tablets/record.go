package tablets

import "time"

const (
	minute   = 60.0    // seconds
	calmTime = 10 * 60 // seconds
)

// recorder adds up what a Result says.
type recorder struct {
	s       *simulation
	r       Result
	columns []column
	col     int // of this step; -1 in the warm part

	calmSince, calmFor float64 // since when the servers serve everything, and for how long they must, in seconds of the whole run

	sinceMinute float64
	minuteAt    time.Duration
	spent       []float64 // by server: seconds of work in the minute
	asked       []float64
	inColumn    []float64 // by server: seconds of work in the column
}

// column is what is added up for a Column.
type column struct {
	Column
	offered, served, seconds, work float64
	curves                         []float64 // the integral of each curve over the column, in seconds
}

func newRecorder(s *simulation) *recorder {
	r := &recorder{s: s, r: Result{Balanced: -1}, col: -1}
	r.columns = make([]column, min(s.options.Columns, len(s.factors)-s.warmSteps))
	for i := range r.columns {
		r.columns[i].curves = make([]float64, len(s.load.Curves)+1)
	}
	r.calmFor = min(calmTime, float64(len(s.factors))*s.dt/6)
	r.spent, r.asked = make([]float64, len(s.servers)), make([]float64, len(s.servers))
	r.inColumn = make([]float64, len(s.servers))
	r.r.Heat = newHeat(s, len(r.columns))
	return r
}

// begin starts a step.
func (r *recorder) begin(n int) {
	s := r.s
	if n < s.warmSteps {
		return
	}
	if i := (n - s.warmSteps) * len(r.columns) / (len(s.factors) - s.warmSteps); i != r.col {
		r.endColumn()
		r.col = i
		r.columns[i].At = s.at(n)
	}
	c := &r.columns[r.col]
	for i, f := range s.now {
		c.curves[i] += f * s.dt
	}
	c.seconds += s.dt
}

// serve counts a step of a tablet, of whose requests a share was served.
func (r *recorder) serve(t *tablet, served float64) {
	if r.col < 0 {
		return
	}
	dt := r.s.dt
	work := t.demand * served * dt
	r.spent[t.server] += work
	r.asked[t.server] += t.demand * dt
	r.inColumn[t.server] += work
	r.r.Offered.add(t, dt)
	r.r.Served.add(t, dt*served)
	c := &r.columns[r.col]
	c.offered += (t.reads + t.writes) * dt
	c.served += (t.reads + t.writes) * dt * served
	c.work += work
	if served < 1 {
		r.r.Refused.add(t, dt*(1-served))
		r.r.Heat.refuse(r.col, t, dt*(1-served))
	}
}

// slack is how much a server may exceed its time by rounding.
const slack = 1e-9

// end finishes a step.
func (r *recorder) end(n int) {
	s := r.s
	if r.r.Balanced < 0 {
		now := float64(n+1) * s.dt
		for i := range s.servers {
			if s.servers[i].demand > 1+slack {
				r.calmSince = now
				break
			}
		}
		if now-r.calmSince >= r.calmFor {
			r.r.Balanced = seconds(r.calmSince)
		}
	}
	if r.col < 0 {
		return
	}
	if r.sinceMinute == 0 {
		r.minuteAt = s.at(n)
	}
	if r.sinceMinute += s.dt; r.sinceMinute >= minute || n == len(s.factors)-1 {
		for i := range r.spent {
			cpu, asked := r.spent[i]/r.sinceMinute, r.asked[i]/r.sinceMinute
			if h := &r.r.HottestNode; asked > h.Asked {
				*h = HotNode{Node: i * s.cluster.size(), At: r.minuteAt, CPU: min(cpu, 1), Asked: asked}
			}
		}
		clear(r.spent)
		clear(r.asked)
		r.sinceMinute = 0
	}
	if n == len(s.factors)-1 {
		r.endColumn()
	}
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// measured looks at what a round of balancing measured of a tablet.
func (r *recorder) measured(n int, t *tablet) {
	if h := &r.r.HottestTablet; r.col >= 0 && t.wanted > h.Asked {
		*h = HotTablet{First: t.first, Last: t.last, At: r.s.at(n), CPU: min(t.load, 1), Asked: t.wanted}
	}
}

func (r *recorder) endColumn() {
	if r.col < 0 {
		return
	}
	c := &r.columns[r.col]
	c.ServedShare = 1
	if c.offered > 0 {
		c.ServedShare = c.served / c.offered
	}
	for i, work := range r.inColumn {
		c.HottestCPU = max(c.HottestCPU, min(work/c.seconds, 1))
		r.inColumn[i] = 0
	}
	c.MeanCPU = c.work / c.seconds / float64(len(r.inColumn))
	c.Tablets = len(r.s.live) + len(r.s.old)
}

func (r *recorder) result() *Result {
	s, out := r.s, &r.r
	out.ServedShare = 1
	if all := out.Offered.Total(); all > 0 {
		out.ServedShare = out.Served.Total() / all
	}
	for _, t := range s.all() {
		out.Stored += t.bytes
	}
	out.Tablets = len(s.live) + len(s.old)
	out.Splits, out.Merges, out.Moves = s.splits, s.merges, s.moves
	for i := range r.columns {
		out.Columns = append(out.Columns, r.columns[i].Column)
	}
	out.Heat.fill(r.columns)
	out.Need = s.need(out.Stored)
	return out
}
