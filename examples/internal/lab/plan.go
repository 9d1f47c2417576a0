package lab

import (
	"math"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// Plan is a lab file without mistakes. Parse makes one. It never changes, so it is safe for concurrent use. The zero
// Plan and nil have no candidates, and running them fails with ErrInvalid.
type Plan struct {
	name            string
	seed            uint64
	duration, heavy time.Duration
	starts          time.Duration // the time of day
	tenants         int
	largest         float64 // the share of the largest tenant; 0 if all are equal
	datasets        []*dataset
	queries         []*query
	candidates      []*candidate
	nodes           int // of the model's cluster
	storage         tablets.Storage
	expect          expect
}

// Name returns the name of the workload.
func (p *Plan) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Candidates returns the names of the candidates, in the order of the file.
func (p *Plan) Candidates() []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, c := range p.candidates {
		names = append(names, c.name)
	}
	return names
}

// dataset is a dataset of the workload.
type dataset struct {
	name     string
	fields   []field
	entities int
	every    time.Duration // between two writes of an entity, on average
	skew     float64       // exponent of the power law by which entities differ; 0 if they do not
	bytes    int           // of a payload
	late     float64       // share of points that come late
	lateBy   time.Duration // at most
	day      [24]float64   // multiples of the average, by hour
	bursts   bursts
	keep     time.Duration
}

// field is a key field. That many entities share one of its values.
type field struct {
	name   string
	shared int
}

// bursts multiply the rate at equal distances. The zero value is none.
type bursts struct {
	every, lasts time.Duration
	times        float64
}

// rate returns how many points a second all entities write at a time of the load, which begins at a time of the day.
func (d *dataset) rate(starts, at time.Duration) float64 {
	r := float64(d.entities) / d.every.Seconds() * d.day[int(((starts+at)%day+day)%day/time.Hour)]
	if b := d.bursts; b.every > 0 && ((starts+at)%b.every+b.every)%b.every < b.lasts {
		r *= b.times
	}
	return r
}

// peak returns the highest rate.
func (d *dataset) peak() float64 {
	most := 0.0
	for _, x := range d.day {
		most = max(most, x)
	}
	return float64(d.entities) / d.every.Seconds() * most * max(d.bursts.times, 1)
}

const day = 24 * time.Hour

// kind is what a query asks for.
type kind string

const (
	latest     kind = "latest"
	latestMany kind = "latest_many"
	ranged     kind = "range"
	under      kind = "under"
	aggregate  kind = "aggregate"
)

// query is a kind of query of the workload, and how often it is asked.
type query struct {
	kind     kind
	of       *dataset
	rate     float64 // a second
	entities int     // of latest_many
	last     time.Duration
	fields   int // of the prefix of under
	every    time.Duration
}

// candidate is a design to compare.
type candidate struct {
	name   string
	key    string
	keys   []layout // by dataset
	heads  int
	rollup time.Duration
}

// native reports whether the SDK writes the keys of the candidate.
func (c *candidate) native() bool {
	for _, k := range c.keys {
		if !k.native {
			return false
		}
	}
	return true
}

// expect is what the candidate in use has to reach. Zero fields are not checked.
type expect struct {
	candidate *candidate
	hottest   float64 // share of a node's CPU
	p99       time.Duration
	rows      float64 // that a query looks at, on average
	best      bool
}

// rankOf returns the rank whose part of the whole contains u, from 0 to 1.
func rankOf(u float64, n int, skew float64) int {
	if skew == 0 {
		return min(int(u*float64(n)), n-1)
	}
	x := u * integral(float64(n+1), skew)
	if skew == 1 {
		x = math.Exp(x)
	} else {
		x = math.Pow(x*(1-skew)+1, 1/(1-skew))
	}
	return min(max(int(x)-1, 0), n-1)
}

// integral returns that of x^-skew from 1 to x.
func integral(x, skew float64) float64 {
	if skew == 1 {
		return math.Log(x)
	}
	return (math.Pow(x, 1-skew) - 1) / (1 - skew)
}
