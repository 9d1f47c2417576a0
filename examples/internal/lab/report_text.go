package lab

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// WriteText writes the report for a terminal. Keys in it are escaped.
func (r *Report) WriteText(w io.Writer) error {
	if w == nil {
		return invalid.New(ErrInvalid, "writer", "nil", "an io.Writer")
	}
	if r == nil || len(r.Candidates) == 0 {
		_, err := fmt.Fprintln(w, "nothing was run")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, l := range r.Leftovers {
		fmt.Fprintln(t, "earlier run: "+strings.Trim(strconv.Quote(l), `"`))
	}
	r.writeMeasured(t)
	r.writeSimulated(t)
	return t.Flush()
}

// mostFindings bounds the findings of a candidate in text.
const mostFindings = 5

// where says whose latencies a report has.
func (r *Report) where() string {
	if r.Cloud {
		return "Latencies are those of Cloud Bigtable, from this machine."
	}
	return "Latencies are those of the embedded engine on this machine. They compare candidates, and are not those of Bigtable."
}

func (r *Report) writeMeasured(w io.Writer) {
	any := false
	for _, c := range r.Candidates {
		any = any || c.Measured != nil
	}
	if !any {
		return
	}
	fmt.Fprintf(w, "%s, executed: %s of the entities and queries, %s times as fast.\n%s\n", heading(r.Workload), shownPercent(r.Scale), number(r.Speed), r.where())
	for _, c := range r.Candidates {
		m := c.Measured
		if m == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", c.Name, c.Key)
		fmt.Fprintf(w, "  heavy load\t%d points in %s, %s\n", m.HeavyPoints, short(m.HeavyTook), perSecond(m.HeavyPoints, m.HeavyTook))
		fmt.Fprintf(w, "  load\t%d points in %s, %s; %s rows and %s bytes a point\n", m.Points, short(m.Took), perSecond(m.Points, m.Took), figure(m.RowsPerPoint), figure(m.BytesPerPoint))
		if m.Behind > time.Second {
			fmt.Fprintf(w, "  behind\tit took %s longer than its pace; a smaller --scale or --speed keeps it\n", short(m.Behind))
		}
		if m.Failed > 0 {
			fmt.Fprintf(w, "  failed\t%d points\n", m.Failed)
		}
		if m.FirstError != "" {
			fmt.Fprintf(w, "  first error\t%s\n", strings.Trim(strconv.Quote(m.FirstError), `"`))
		}
		fmt.Fprintf(w, "  writes\t%d requests, p50 %s, p99 %s\n", m.WriteRequests, short(m.WriteP50), short(m.WriteP99))
		if len(m.Queries) > 0 {
			fmt.Fprintln(w, "  query\tasked\trequests\trows looked at\treturned\tp50\tp99\tfailed")
		}
		for _, q := range m.Queries {
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\n", q.Query, q.Asked, figure(q.Requests), figure(q.Seen), figure(q.Returned), short(q.P50), short(q.P99), q.Failed)
		}
		for i, f := range m.Findings {
			if i == mostFindings {
				fmt.Fprintf(w, "  found\t%d more, which tidectl heatmap find shows\n", len(m.Findings)-i)
				break
			}
			fmt.Fprintf(w, "  found\t%s: %s\n", f.Rule, f.Reason)
		}
		if m.Stopped != "" {
			fmt.Fprintf(w, "  stopped\t%s; the figures are those until then\n", m.Stopped)
		}
	}
}

func (r *Report) writeSimulated(w io.Writer) {
	if len(r.Ranking) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, simulated: all of it, on %s. A model, not a measurement; docs/lab.md says what it assumes.\n", heading(r.Workload), nodes(r.Nodes))
	fmt.Fprintln(w, "  candidate\tserved\thottest node\thottest tablet\tbalanced\tnodes needed\tstored")
	for _, c := range r.Candidates {
		s := c.Simulated
		if s == nil {
			continue
		}
		fmt.Fprintf(w, "  %s\t%.1f%%\t%.0f%%\t%.0f%%\t%s\t%s\t%s\n", c.Name, s.Served*100, s.HottestNode*100, s.HottestTablet*100, s.balanced(), s.nodes(), size(s.StoredBytes))
	}
	fmt.Fprintf(w, "\nRanking, which held in %d of %d draws of what is assumed:\n", r.Held, r.Draws)
	for i, k := range r.Ranking {
		fmt.Fprintf(w, "  %d. %s: %s\n", i+1, k.Candidate, k.Reason)
	}
	for _, c := range r.Candidates {
		for _, n := range c.Next {
			fmt.Fprintf(w, "  next, %s: %s\n", c.Name, n)
		}
	}
	fmt.Fprintln(w, "\nAssumed, because Google does not document it:")
	for _, a := range assumed() {
		fmt.Fprintf(w, "  %s\n", a)
	}
}

// assumed names the constants of the model that Google does not document.
func assumed() (out []string) {
	for _, c := range tablets.Constants() {
		if c.Source == "" {
			out = append(out, fmt.Sprintf("%s: %s (drawn between %s and %s)", c.Name, c.Value, c.Low, c.High))
		}
	}
	return out
}

func (s *Simulated) balanced() string {
	if s.Balanced < 0 {
		return "never"
	}
	return short(s.Balanced)
}

func (s *Simulated) nodes() string {
	if s.Nodes == 0 {
		return "none helps"
	}
	return strconv.Itoa(s.Nodes)
}

// size is a number of bytes as people read it.
func size(bytes float64) string {
	for _, u := range []struct {
		name string
		of   float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if bytes >= u.of {
			return figure(bytes/u.of) + " " + u.name
		}
	}
	return figure(bytes) + " B"
}

func heading(name string) string {
	if name == "" {
		return "the workload"
	}
	return strings.Trim(strconv.Quote(name), `"`) // a terminal obeys some bytes
}

func figure(x float64) string {
	switch {
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

func perSecond(n int64, d time.Duration) string {
	return figure(float64(n)/max(d.Seconds(), 1e-9)) + "/s"
}

func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
