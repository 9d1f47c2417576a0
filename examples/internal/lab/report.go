package lab

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/heat"
)

// Report is what a run, a simulation or a comparison found. It marshals as JSON; heatmaps are left out.
type Report struct {
	Workload string `json:"workload"`
	// Scale and Speed are those of the run, or 0 if nothing was executed. Cloud says that it was executed on Cloud
	// Bigtable.
	Scale float64 `json:"scale,omitempty"`
	Speed float64 `json:"speed,omitempty"`
	Cloud bool    `json:"cloud"`
	// Nodes is how many the model's cluster has; 0 if nothing was simulated.
	Nodes int `json:"nodes,omitempty"`
	// Candidates are in the order of the file.
	Candidates []CandidateReport `json:"candidates"`
	// Ranking has the best candidate first, by the model. In Held of Draws draws of what the model assumes, the order
	// was the same.
	Ranking []Rank `json:"ranking,omitempty"`
	Draws   int    `json:"draws,omitempty"`
	Held    int    `json:"held,omitempty"`
	// Leftovers says, a sentence each, which scratch folders and tables of earlier runs were found, whose processes
	// were killed, and whether this run removed them.
	Leftovers []string `json:"leftovers,omitempty"`

	plan *Plan
}

// CandidateReport is what was found of a candidate.
type CandidateReport struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// Measured is nil if the candidate was not executed.
	Measured *Measured `json:"measured,omitempty"`
	// Simulated is nil if the candidate was not simulated. Next then says what to change in it.
	Simulated *Simulated `json:"simulated,omitempty"`
	Next      []string   `json:"next,omitempty"`
}

// Rank is a candidate's place in a ranking.
type Rank struct {
	Candidate string `json:"candidate"`
	Reason    string `json:"reason"`
}

// Measured is what was counted and measured while a candidate's load was executed.
type Measured struct {
	// HeavyPoints were stored before the load, in HeavyTook. Points were stored by the load, in Took.
	HeavyPoints int64         `json:"heavy_points"`
	HeavyTook   time.Duration `json:"heavy_took_ns"`
	Points      int64         `json:"points"`
	Took        time.Duration `json:"took_ns"`
	// Behind is how much longer the load took than its pace.
	Behind time.Duration `json:"behind_ns"`
	// Failed are points that were not stored, of both parts, without those that were interrupted. FirstError is the
	// first failure of a point or a query.
	Failed     int64  `json:"failed"`
	FirstError string `json:"first_error,omitempty"`
	// RowsPerPoint and BytesPerPoint are what a point of the load writes: heads and marks of rollups are rows, too.
	// Bytes are those of keys, columns and values. WriteRequests counts the load's.
	RowsPerPoint  float64 `json:"rows_per_point"`
	BytesPerPoint float64 `json:"bytes_per_point"`
	WriteRequests int64   `json:"write_requests"`
	// WriteP50 and WriteP99 are durations of requests that write, each of up to 500 points and 4 MiB.
	WriteP50 time.Duration `json:"write_p50_ns"`
	WriteP99 time.Duration `json:"write_p99_ns"`
	// Queries are in the order of the file.
	Queries []QueryReport `json:"queries"`
	// Findings are those of the heatmap that concern keys, at the rates of the run.
	Findings []heatview.Finding `json:"findings"`
	// Heatmap is the recording of the load. Its first columns may show the end of the heavy load.
	Heatmap *heat.Recording `json:"-"`
	// Stopped says why the run ended early. It is empty if it did not.
	Stopped string `json:"stopped,omitempty"`
}

// QueryReport is what was counted of a kind of query. Rows are those that the service looked at, and those that it
// returned, for one query on average.
type QueryReport struct {
	Query    string        `json:"query"`
	Asked    int64         `json:"asked"`
	Failed   int64         `json:"failed"`
	Requests float64       `json:"requests"`
	Seen     float64       `json:"rows_seen"`
	Returned float64       `json:"rows_returned"`
	MostSeen int64         `json:"most_rows_seen"`
	P50      time.Duration `json:"p50_ns"` // of those that did not fail
	P99      time.Duration `json:"p99_ns"`
}

func (p *Plan) report(chosen []*candidate) *Report {
	r := &Report{Workload: p.name, plan: p}
	for _, c := range chosen {
		r.Candidates = append(r.Candidates, CandidateReport{Name: c.name, Key: c.key})
	}
	return r
}

// measured returns what was counted until now.
func (r *runner) measured() *Measured {
	m := &Measured{
		HeavyPoints: r.heavy.points, HeavyTook: r.heavy.took, Points: r.load.points, Took: r.load.took, Behind: r.behind,
		Failed: r.failed.Load(), WriteRequests: r.load.requests,
		Heatmap: heatview.Of(r.recorder), Queries: []QueryReport{}, Findings: []heatview.Finding{},
	}
	if r.firstErr != nil {
		m.FirstError = r.firstErr.Error()
	}
	for _, f := range heatview.Findings(m.Heatmap) {
		if f.Rule != heatview.SuddenIncrease && f.Rule != heatview.Periodic { // which come from the compressed time
			m.Findings = append(m.Findings, f)
		}
	}
	of := r.load
	if of.points == 0 {
		of = r.heavy // it was stopped before the load
	}
	if of.points > 0 {
		m.RowsPerPoint, m.BytesPerPoint = float64(of.rows)/float64(of.points), float64(of.bytes)/float64(of.points)
	}
	m.WriteP50, m.WriteP99 = r.meter.writes.percentiles()
	for i, q := range r.l.Plan.queries {
		of := &r.queries[i]
		n := of.asked.Load()
		each := func(total int64) float64 { return float64(total) / float64(max(n, 1)) }
		p50, p99 := of.durations.percentiles()
		m.Queries = append(m.Queries, QueryReport{
			Query: r.l.label(q), Asked: n, Failed: of.failed.Load(), P50: p50, P99: p99, MostSeen: of.worst.Load(),
			Requests: each(of.requests.Load()), Seen: each(of.seen.Load()), Returned: each(of.returned.Load()),
		})
	}
	return m
}

// label describes a query as it was asked: tenants of a small load may have fewer entities than the query names.
func (l *load) label(q *query) string {
	if q.kind == latestMany && l.asked(q) < float64(q.entities) {
		return fmt.Sprintf("latest of up to %d in %s", q.entities, q.of.name)
	}
	return q.String()
}

// String describes the query as a reader of the file knows it.
func (q *query) String() string {
	name := q.of.name
	switch q.kind {
	case latest:
		return "latest of " + name
	case latestMany:
		return fmt.Sprintf("latest of %d in %s", q.entities, name)
	case ranged:
		return fmt.Sprintf("range of %s in %s", shownDuration(q.last), name)
	case under:
		if q.fields == 0 {
			return "latest of all in " + name
		}
		return fmt.Sprintf("latest under %s in %s", q.of.fields[q.fields-1].name, name)
	}
	return fmt.Sprintf("%s by %s in %s", shownDuration(q.last), shownDuration(q.every), name)
}
