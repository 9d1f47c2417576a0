package lab

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Unmet returns what the file expects and the report does not show, a sentence each. It is empty if everything is as
// expected, or if the file expects nothing. Nothing is shown of a candidate that was not chosen. An expectation that
// only a run or only a simulation can show is checked by that. What went wrong in the run itself is in Failures.
func (r *Report) Unmet() []string {
	if r == nil || r.plan == nil {
		return nil
	}
	e := r.plan.expect
	if e.candidate == nil || e == (expect{candidate: e.candidate}) {
		return nil
	}
	i := slices.IndexFunc(r.Candidates, func(c CandidateReport) bool { return c.Name == e.candidate.name })
	if i < 0 || r.Candidates[i].Measured == nil && r.Candidates[i].Simulated == nil {
		return []string{fmt.Sprintf("nothing is known of the candidate in use, %s, because it was neither executed nor simulated", e.candidate.name)}
	}
	c := &r.Candidates[i]
	var out []string
	if c.Measured != nil {
		out = append(out, e.ofRun(c.Measured)...)
	}
	if c.Simulated != nil {
		out = append(out, e.ofModel(c, r)...)
	}
	return out
}

// Failures returns what went wrong while candidates were executed, a sentence each: points and queries that failed, and
// runs that ended early. It is empty if all of the load was executed. Figures of a candidate that failed are of a part
// of the load.
func (r *Report) Failures() []string {
	if r == nil {
		return nil
	}
	var out []string
	for i := range r.Candidates {
		c := &r.Candidates[i]
		m := c.Measured
		if m == nil {
			continue
		}
		if m.Stopped != "" {
			out = append(out, fmt.Sprintf("the run of %s ended early: %s", c.Name, m.Stopped))
		}
		if m.Failed > 0 {
			out = append(out, fmt.Sprintf("%d points of %s were not stored; the first error is: %s", m.Failed, c.Name, m.FirstError))
		}
		for _, q := range m.Queries {
			if q.Failed > 0 {
				out = append(out, fmt.Sprintf("%d of %d queries of %s for %s failed; the first error is: %s", q.Failed, q.Asked, c.Name, q.Query, m.FirstError))
			}
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
		if e.rows > 0 && q.Seen > e.rows {
			out = append(out, fmt.Sprintf("a query for %s looks at %s rows; expected are at most %s", q.Query, figure(q.Seen), number(e.rows)))
		}
	}
	return out
}
