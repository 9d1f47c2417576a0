package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/tablets"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

const (
	maxModelled = 50_000 // entities of a dataset that the model tells apart
	modelKey    = 60     // bytes of a key and a column, about
	modelDraws  = 40
	lateFirst   = 10 * time.Minute // of balancing, from which pre-splitting is advised
)

// Simulate computes the plan's whole load with a model of tablets and nodes, for each candidate, and ranks them. It sends no
// request. It simulates again with 40 draws of the constants that are assumed, and reports in how many the order held. docs/lab.md says what the
// model assumes. Of a dataset's entities it tells up to 50,000 apart, the busiest ones; the others are spread over these.
//
// It takes seconds for each candidate. The error matches that of ctx, or ErrInvalid for an empty plan.
func (p *Plan) Simulate(ctx context.Context) (*Report, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	if p == nil || len(p.candidates) == 0 {
		return nil, invalid.New(ErrInvalid, "plan", "empty", "one from Parse")
	}
	r := p.report(p.candidates)
	return r, r.simulate(ctx, p.candidates)
}

// Compare executes the plan's load as Run does, simulates it as Simulate does, and ranks the candidates. If ctx ends, it returns a
// report of what was done, and an error that matches ctx's. Other errors are those of Run.
func (p *Plan) Compare(ctx context.Context, o RunOptions) (*Report, error) {
	r, err := p.Run(ctx, o)
	if err != nil {
		return r, err
	}
	chosen, err := p.choose(o.Candidates)
	if err != nil {
		return r, err
	}
	return r, r.simulate(ctx, chosen)
}

// Simulated is what the model computed of a candidate.
type Simulated struct {
	// Served is the share of requests that the cluster served, from 0 to 1, while the table was new and while it was balanced.
	Served float64 `json:"served"`
	// HottestNode and HottestTablet are the most that was asked of one, in shares of a node: more than 1 is refused.
	HottestNode   float64 `json:"hottest_node"`
	HottestTablet float64 `json:"hottest_tablet"`
	// Balanced is how long a new table takes to serve all. It is negative if it never does.
	Balanced time.Duration `json:"balanced_ns"`
	// Nodes is how many the hottest period needs, with the storage of all that is kept. It is 0 if no number helps: Why says why.
	Nodes int    `json:"nodes"`
	Why   string `json:"why,omitempty"`
	// StoredBytes is what is stored once the oldest points expire, without compression.
	StoredBytes float64 `json:"stored_bytes"`
	// Heatmap shows where the load of the whole workload goes.
	Heatmap *heatmap.Recording `json:"-"`
}

// modelled is a candidate's load as the model knows it, with an entity of each front.
type modelled struct {
	tablets.Load
	fronts []frontOf
	stored float64
}

type frontOf struct{ dataset, entity int }

func (r *Report) simulate(ctx context.Context, chosen []*candidate) error {
	p := r.plan
	var list []tablets.Candidate
	var loads []*modelled
	for _, c := range chosen {
		m := p.model(c)
		loads = append(loads, m)
		list = append(list, tablets.Candidate{Name: c.name, Load: m.Load})
	}
	cluster := tablets.Cluster{Nodes: p.nodes, Storage: p.storage}
	options := tablets.Options{Duration: p.duration, Warm: p.heavy, Seed: p.seed}
	got, err := tablets.Compare(ctx, list, cluster, tablets.CompareOptions{Options: options, Draws: modelDraws})
	if err != nil {
		return err
	}
	r.Nodes, r.Draws, r.Held = p.nodes, got.Draws, got.Held
	for i, c := range chosen {
		res := got.Results[i]
		s := &Simulated{
			Served: res.ServedShare, HottestNode: res.HottestNode.Asked, HottestTablet: res.HottestTablet.Asked, Balanced: res.Balanced,
			Nodes: res.Need.Nodes, Why: res.Need.Why, StoredBytes: loads[i].stored,
		}
		if s.Nodes > 0 {
			perNode := map[tablets.Storage]float64{tablets.SSD: 5e12, tablets.HDD: 16e12}[p.storage] * 0.6 // as in tablets.Constants
			s.Nodes = max(s.Nodes, int(math.Ceil(s.StoredBytes/perNode)))
		}
		if s.Heatmap, err = loads[i].heatmap(p, c, res); err != nil {
			return err
		}
		r.Candidates[i].Simulated = s
		r.Candidates[i].Next = next(p, c, r.Candidates[i].Measured, s, res)
	}
	for _, i := range got.Order {
		r.Ranking = append(r.Ranking, Rank{Candidate: chosen[i].name, Reason: r.Candidates[i].Simulated.reason()})
	}
	return nil
}

// reason says in a sentence what decides the rank.
func (s *Simulated) reason() string {
	text := fmt.Sprintf("serves %.1f%% of the requests", s.Served*100)
	if s.Nodes > 0 {
		text += fmt.Sprintf(", needs %d nodes in the hottest period", s.Nodes)
	} else {
		text += ", and no number of nodes helps: " + s.Why
	}
	return text
}

// model returns the load of a candidate.
func (p *Plan) model(c *candidate) *modelled {
	m := new(modelled)
	for i, d := range p.datasets {
		l := c.keys[i]
		n := min(d.entities, maxModelled)
		part := *p
		copied := *d
		part.datasets = []*dataset{&copied}
		shrunk := float64(n) / float64(d.entities)
		sized := part.scaled(shrunk).datasets[0]
		n = sized.n
		writes := make([]float64, n) // by entity
		total, busiest := float64(d.entities)/d.every.Seconds(), 0.0
		for rank := range n {
			w := weight(rank, d.entities, d.skew)
			busiest += w
			writes[sized.at(rank)] = w * total
		}
		for e := range writes {
			writes[e] += max(1-busiest, 0) / float64(n) * total
		}
		first := len(m.Fronts)
		m.addFronts(l, i, sized, writes)
		rows, bytes := 1.0, float64(d.bytes+modelKey)
		if c.heads > 0 {
			rows++
		}
		if c.rollup > 0 {
			rows++
		}
		m.Curves = append(m.Curves, func(at time.Duration) float64 { return d.rate(p.starts, at) / total })
		for f := first; f < len(m.Fronts); f++ {
			front := &m.Fronts[f]
			front.Writes *= rows
			front.RowBytes, front.Curve = bytes, i+1
		}
		m.stored += total * d.keep.Seconds() * bytes
		for _, q := range p.queries {
			if q.of != d {
				continue
			}
			read := tablets.Read{First: first, Last: len(m.Fronts), Rate: q.rate, RowBytes: bytes, ByWrites: d.skew > 0, Rows: max(p.rowsOf(c, l, q, len(m.Fronts)-first), 1)}
			if q.kind == latestMany {
				read.Rate *= float64(q.entities)
			}
			m.Reads = append(m.Reads, read)
		}
	}
	return m
}

// addFronts adds the places where the writes of a dataset arrive: one for each different beginning of a key before its time.
func (m *modelled) addFronts(l layout, dataset int, d *sized, writes []float64) {
	at := slices.IndexFunc(l.elements, element.isTime)
	before := l.elements[:at]
	type place struct {
		key    [maxFields + 3]int
		entity int
	}
	places := make([]place, len(writes))
	moves := false
	for i := range d.fields {
		moves = moves || !slices.Contains(before, element{fieldElement, i})
	}
	for e := range places {
		places[e].entity = e
		for i, el := range before {
			switch el.kind {
			case tenantElement:
				places[e].key[i] = d.tenant(e)
			case fieldElement:
				places[e].key[i] = e / d.fields[el.n].shared
			case saltElement:
				places[e].key[i] = l.salt(e)
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(slices.Compare(a.key[:], b.key[:]), a.entity-b.entity) })
	for i, pl := range places {
		if i == 0 || places[i-1].key != pl.key {
			m.Fronts = append(m.Fronts, tablets.Front{Moves: moves})
			m.fronts = append(m.fronts, frontOf{dataset, pl.entity})
		}
		m.Fronts[len(m.Fronts)-1].Writes += writes[pl.entity]
	}
}

// rowsOf estimates how many rows a query looks at when the whole load runs. A run counts them at its scale.
func (p *Plan) rowsOf(c *candidate, l layout, q *query, fronts int) float64 {
	d := q.of
	one := 1 / d.every.Seconds()
	at := slices.IndexFunc(l.elements, element.isTime)
	timeFirst := false
	for i := range d.fields {
		timeFirst = timeFirst || !slices.Contains(l.elements[:at], element{fieldElement, i})
	}
	rate := one
	if timeFirst {
		rate = float64(d.entities) * one / float64(fronts)
	}
	below := float64(d.entities) / float64(p.tenants)
	if q.kind == under && q.fields > 0 {
		below = min(below, float64(d.fields[q.fields-1].shared))
	}
	switch {
	case q.kind == latest || q.kind == latestMany:
		return rate * d.every.Seconds()
	case q.kind == aggregate && c.rollup > 0:
		return float64(q.last)/float64(c.rollup) + 1
	case q.kind != under:
		return rate * q.last.Seconds()
	case timeFirst:
		return rate * 2 * d.every.Seconds()
	case c.native():
		return below
	}
	return below * one * d.keep.Seconds()
}

const samplesOfCell = 200

// heatmap draws keys from the fronts with load.
func (m *modelled) heatmap(p *Plan, c *candidate, res *tablets.Result) (*heatmap.Recording, error) {
	from := epoch.Add(p.starts)
	width := max(p.duration/60, time.Millisecond)
	raw := make([]*rawDriver, len(p.datasets))
	for i := range p.datasets {
		part := *p
		part.datasets = p.datasets[i : i+1]
		l := part.scaled(float64(min(p.datasets[i].entities, maxModelled)) / float64(p.datasets[i].entities))
		raw[i] = &rawDriver{l: l, keys: c.keys[i : i+1]}
	}
	var counts []heatmap.Count
	for column := range res.Columns {
		for _, k := range []struct {
			kind   tablets.Kind
			metric heatmap.Metric
		}{{tablets.Reads, heatmap.Reads}, {tablets.Writes, heatmap.Writes}, {tablets.Refused, heatmap.Failures}} {
			count := heatmap.Count{At: from.Add(res.Columns[column].At), Metric: k.metric, Rows: uint64(res.Heat.Total(column, k.kind))}
			for front, at := range res.Heat.Samples(column, k.kind, int(min(count.Rows, samplesOfCell)), p.seed) {
				f := m.fronts[front]
				count.Keys = append(count.Keys, []byte(raw[f.dataset].shownKey(c, p.datasets[f.dataset].name, op{entity: f.entity, time: from.Add(at)})))
			}
			if len(count.Keys) > 0 && count.At.Before(from.Add(p.duration)) {
				counts = append(counts, count)
			}
		}
	}
	return heatmap.FromCounts(from, from.Add(p.duration), width, counts)
}

// shownKey is a key as the candidate stores it: that of the SDK has the dataset behind the tenant, and a time of 19 digits.
func (d *rawDriver) shownKey(c *candidate, dataset string, o op) string {
	if !c.native() {
		return d.key(o)
	}
	s := d.l.datasets[0]
	parts := append([]string{d.l.tenantName(s.tenant(o.entity)), dataset}, s.parts(o.entity)...)
	return strings.Join(append(parts, fmt.Sprintf("%019d", math.MaxInt64-o.time.UnixMilli())), "#")
}
