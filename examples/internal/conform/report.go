package conform

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a run.
type Report struct {
	Began    time.Time         `json:"began"`
	Seconds  float64           `json:"seconds"`
	Project  string            `json:"project"`
	Instance string            `json:"instance"`
	Table    string            `json:"table"` // Run's error says if it was not removed
	Quick    bool              `json:"quick"`
	Versions map[string]string `json:"versions"`
	Results  []Result          `json:"results"`
	// NotRun names the cases that had not ended when the run did.
	NotRun []string `json:"not_run,omitempty"`
	// Requests are the requests by method, and Bytes their size without compression.
	Requests map[string]int `json:"requests"`
	Bytes    int64          `json:"bytes"`
	// RetryInfo and RateLimitInfo are how many responses had advice about load. A service that is not busy gives none.
	RetryInfo     int `json:"retry_info"`
	RateLimitInfo int `json:"rate_limit_info"`
	// Leftovers are tables that earlier runs have left, or that other runs use.
	Leftovers []string `json:"leftovers"`
}

// Result is what a case has seen.
type Result struct {
	Name     string `json:"name"`
	Claim    string `json:"claim"`
	Source   string `json:"source"` // where Bigtable documents it
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Status   string `json:"status"`
}

func newReport(o Options) *Report {
	return &Report{Began: time.Now().UTC(), Project: o.Project, Instance: o.Instance, Quick: o.Quick, Versions: versions(), Results: []Result{}}
}

// versions returns the versions of what the results depend on.
func versions() map[string]string {
	v := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		switch m.Path {
		case "github.com/tidemark-go/tidemark", "cloud.google.com/go/bigtable", "google.golang.org/grpc":
			v[m.Path] = m.Version
		}
	}
	return v
}

func (r *Report) end(m *meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Seconds = time.Since(r.Began).Seconds()
	r.Requests, r.Bytes, r.RetryInfo, r.RateLimitInfo = maps.Clone(m.requests), m.bytes, m.retry, m.rates
}

// Unmet returns the cases that differ or failed.
func (r *Report) Unmet() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(c Result) bool { return c.Status == AsExpected || c.Status == Skipped })
}

// WriteText writes the table of cases, then what the run cost.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "RESULT\tCASE\tCLAIM\tEXPECTED\tSEEN")
	for _, c := range r.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Status, c.Name, c.Claim, c.Expected, c.Seen)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range r.Unmet() {
		fmt.Fprintf(w, "\n%s %s: see %s\n", c.Name, c.Status, c.Source)
	}
	if len(r.NotRun) > 0 {
		fmt.Fprintf(w, "\nnot run: %s\n", strings.Join(r.NotRun, ", "))
	}
	counts := map[string]int{}
	for _, c := range r.Results {
		counts[c.Status]++
	}
	fmt.Fprintf(w, "\n%d cases in %.1f s: %d ok, %d differ, %d failed, %d skipped\n", len(r.Results), r.Seconds, counts[AsExpected], counts[Different], counts[Failed], counts[Skipped])
	total, methods := 0, []string{}
	for _, m := range slices.Sorted(maps.Keys(r.Requests)) {
		total += r.Requests[m]
		methods = append(methods, fmt.Sprintf("%s %d", m, r.Requests[m]))
	}
	fmt.Fprintf(w, "%d requests of %d bytes: %s\n", total, r.Bytes, strings.Join(methods, ", "))
	fmt.Fprintf(w, "advice about load: %d responses with RetryInfo, %d with RateLimitInfo\n", r.RetryInfo, r.RateLimitInfo)
	names := slices.Sorted(maps.Keys(r.Versions))
	for i, name := range names {
		names[i] = name + " " + r.Versions[name]
	}
	_, err := fmt.Fprintf(w, "on %s/%s, table %s, at %s, with %s\n", r.Project, r.Instance, r.Table, r.Began.Format(time.RFC3339), strings.Join(names, ", "))
	return err
}
