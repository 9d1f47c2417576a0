package lab

import (
	"fmt"
	"math"
	"time"
)

// Unmet returns what the file expects and the report does not show, a sentence each. It is empty if everything is as expected, or if
// the candidate in use is not in the report. An expectation that only a run or only a simulation can show is checked by that.
func (r *Report) Unmet() []string {
	if r == nil || r.plan == nil {
		return nil
	}
	e := r.plan.expect
	var out []string
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if e.candidate == nil || c.Name != e.candidate.name {
			continue
		}
		if c.Measured != nil {
			out = append(out, e.ofRun(c.Measured)...)
		}
		if c.Simulated != nil {
			out = append(out, e.ofModel(c, r)...)
		}
	}
	return out
}

func (e *expect) ofModel(c *CandidateReport, r *Report) (out []string) {
	if s := c.Simulated; e.hottest > 0 && s.HottestNode > e.hottest {
		out = append(out, fmt.Sprintf("%s of the hottest node's CPU is asked for; expected is at most %s", shownPercent(math.Round(s.HottestNode*1000)/1000), shownPercent(e.hottest)))
	}
	if n := len(r.plan.candidates); e.best && len(r.Ranking) < n {
		out = append(out, fmt.Sprintf("only %d of %d candidates were ranked; best needs all of them", len(r.Ranking), n))
	}
	if e.best && len(r.Ranking) > 0 && r.Ranking[0].Candidate != c.Name {
		out = append(out, fmt.Sprintf("the best candidate is %s; expected is %s", r.Ranking[0].Candidate, c.Name))
	}
	return out
}

func (e *expect) ofRun(m *Measured) (out []string) {
	if m.Failed > 0 {
		out = append(out, fmt.Sprintf("%d points failed, the first with: %s", m.Failed, m.FirstError))
	}
	if m.Stopped != "" {
		out = append(out, "the run did not end: "+m.Stopped)
	}
	slow := func(what string, p99 time.Duration) {
		if e.p99 > 0 && p99 > e.p99 {
			out = append(out, fmt.Sprintf("the p99 of %s is %s; expected is at most %s", what, short(p99), shownDuration(e.p99)))
		}
	}
	slow("writes", m.WriteP99)
	if e.p99 > 0 && m.Points == 0 {
		out = append(out, "the load wrote no points, so nothing is known of their p99; a larger scale writes some")
	}
	for _, q := range m.Queries {
		if q.Asked == 0 && (e.p99 > 0 || e.rows > 0) {
			out = append(out, fmt.Sprintf("%s was not asked, so nothing is known of it; a larger scale asks", q.Query))
		}
		slow(q.Query, q.P99)
		if q.Failed > 0 {
			out = append(out, fmt.Sprintf("%d of %d queries for %s failed", q.Failed, q.Asked, q.Query))
		}
		if e.rows > 0 && q.Seen > e.rows {
			out = append(out, fmt.Sprintf("a query for %s looks at %s rows; expected are at most %s", q.Query, figure(q.Seen), number(e.rows)))
		}
	}
	return out
}
