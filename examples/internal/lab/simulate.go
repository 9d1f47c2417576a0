package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

const (
	modelDraws = 40
	lateFirst  = 10 * time.Minute // of balancing, from which pre-splitting is advised
)

// Simulate computes the plan's whole load with a model of tablets and nodes, for each candidate, and ranks them. It
// sends no request. It simulates again with 40 draws of the constants that are assumed, and reports in how many the
// order held. docs/lab.md says what the model assumes.
//
// It takes seconds for each candidate. The error matches that of ctx, or ErrInvalid for an empty plan, or one with more
// than 20 million entities.
func (p *Plan) Simulate(ctx context.Context) (*Report, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	if p == nil || len(p.candidates) == 0 {
		return nil, invalid.New(ErrInvalid, "plan", "empty", "one from Parse")
	}
	loads, err := p.fronts(p.candidates)
	if err != nil {
		return nil, err
	}
	r := p.report(p.candidates)
	return r, r.simulate(ctx, p.candidates, loads)
}

// Compare executes the plan's load as Run does, simulates it as Simulate does, and ranks the candidates. What either of
// them refuses is refused before anything is executed. If ctx ends, Compare returns a report of what was done, and an
// error that matches ctx's. Other errors are those of Run.
func (p *Plan) Compare(ctx context.Context, o RunOptions) (*Report, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	_, chosen, err := o.resolve(p)
	if err != nil {
		return nil, err
	}
	loads, err := p.fronts(chosen)
	if err != nil {
		return nil, err
	}
	r, err := p.Run(ctx, o)
	if err != nil {
		return r, err
	}
	return r, r.simulate(ctx, chosen, loads)
}

// Simulated is what the model computed of a candidate.
type Simulated struct {
	// Served is the share of requests that the cluster served, from 0 to 1, while the table was new and while it was
	// balanced.
	Served float64 `json:"served"`
	// HottestNode and HottestTablet are the most that was asked of one, in shares of a node: more than 1 is refused.
	HottestNode   float64 `json:"hottest_node"`
	HottestTablet float64 `json:"hottest_tablet"`
	// Balanced is how long a new table takes to serve all. It is negative if it never does.
	Balanced time.Duration `json:"balanced_ns"`
	// Nodes is how many the hottest period needs, with the storage of all that is kept. It is 0 if no number helps: Why
	// says why.
	Nodes int    `json:"nodes"`
	Why   string `json:"why,omitempty"`
	// StoredBytes is what is stored once the oldest points expire, without compression.
	StoredBytes float64 `json:"stored_bytes"`
	// Heatmap shows where the load of the whole workload goes.
	Heatmap *heat.Recording `json:"-"`
}

func (r *Report) simulate(ctx context.Context, chosen []*candidate, loads []*fronts) error {
	p := r.plan
	var list []tablets.Candidate
	for i, c := range chosen {
		list = append(list, tablets.Candidate{Name: c.name, Load: loads[i].load})
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
			s.Nodes = max(s.Nodes, cluster.NodesFor(s.StoredBytes))
		}
		s.Heatmap = loads[i].heatmap(res)
		r.Candidates[i].Simulated = s
		r.Candidates[i].Next = next(p, c, r.Candidates[i].Measured, s, res)
	}
	for _, i := range got.Order {
		r.Ranking = append(r.Ranking, Rank{Candidate: chosen[i].name, Reason: r.Candidates[i].Simulated.reason()})
	}
	return nil
}

// nodes is a number of nodes in words.
func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// reason says in a sentence what decides the rank.
func (s *Simulated) reason() string {
	text := fmt.Sprintf("serves %.1f%% of the requests", s.Served*100)
	if s.Nodes > 0 {
		text += fmt.Sprintf(", needs %s in the hottest period", nodes(s.Nodes))
	} else {
		text += ", and no number of nodes helps: " + s.Why
	}
	return text
}

const samplesOfCell = 200

// heatmap draws keys from the fronts with load.
func (f *fronts) heatmap(res *tablets.Result) *heat.Recording {
	from, length := epoch.Add(f.l.starts), f.l.duration
	rnd := rand.New(rand.NewPCG(f.l.seed, 4))
	var counts []heatview.Count
	for column := range res.Columns {
		for kind, metric := range []heat.Kind{tablets.Reads: heat.Reads, tablets.Writes: heat.Writes, tablets.Refused: heat.Failures} {
			kind := tablets.Kind(kind)
			count := heatview.Count{At: from.Add(res.Columns[column].At), Kind: metric, Rows: uint64(res.Heat.Total(column, kind))}
			for front, at := range res.Heat.Samples(column, kind, samplesOfCell, f.l.seed) {
				count.Keys = append(count.Keys, f.key(front, at, rnd))
			}
			if len(count.Keys) > 0 && count.At.Before(from.Add(length)) {
				counts = append(counts, count)
			}
		}
	}
	return heatview.FromCounts(from, from.Add(length), max(length/60, time.Millisecond), counts)
}
