package lab_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/lab"
	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// busy is more than one node can take at one place.
const busy = `
name: busy
duration: 20m
heavy: 10m
cluster: {nodes: 10}
tenants: {count: 5, largest: 50%}
datasets:
  - {name: readings, fields: [site(50), device], entities: 3000, every: 100ms, bytes: 200}
queries:
  - {kind: latest, rate: 100/s}
  - {kind: latest_many, entities: 10, rate: 10/s}
  - {kind: under, fields: 1, rate: 1/s}
candidates:
  - {name: time first, key: time#site#device}
  - {name: tenant and time, key: tenant#time#site#device}
  - {name: entity first, key: tenant#entity#~time}
expect:
  candidate: time first
  hottest_cpu: 60%
  best: true
`

// TestSimulate: the documented order of designs, with its reason, what to change, and where the load goes.
func TestSimulate(t *testing.T) {
	report, err := parsed(t, busy).Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Ranking[0].Candidate != "entity first" || report.Draws != 40 || report.Held == 0 {
		t.Errorf("the ranking is %v, which held in %d of %d draws, want entity first", report.Ranking, report.Held, report.Draws)
	}
	time, whale, entity := report.Candidates[0], report.Candidates[1], report.Candidates[2]
	if s := time.Simulated; s.Nodes != 0 || s.Why == "" || s.Served > 0.9 || s.HottestTablet <= 1 || !strings.Contains(strings.Join(time.Next, " "), "before the time") || !strings.Contains(strings.Join(time.Next, " "), "salt(") {
		t.Errorf("time first: %+v, next %q", s, time.Next)
	}
	if s := whale.Simulated; s.Nodes != 0 {
		t.Errorf("tenant and time: %+v, want that no number of nodes helps", s)
	}
	if s := entity.Simulated; s.Nodes == 0 || s.Nodes > 10 || s.StoredBytes < 1e12 || strings.Contains(strings.Join(entity.Next, " "), "salt") {
		t.Errorf("entity first: %+v, next %q", s, entity.Next)
	}
	if crowded := strings.Join(whale.Next, " "); strings.Contains(crowded, "salt(") != (whale.Simulated.HottestNode < 10) {
		t.Errorf("tenant and time asks %.0f nodes for its work, next %q", whale.Simulated.HottestNode, crowded)
	}
	rules := func(c lab.CandidateReport) (out []heatview.Rule) {
		for _, f := range heatview.Findings(c.Simulated.Heatmap) {
			out = append(out, f.Rule)
		}
		return out
	}
	if found := rules(time); !slices.Contains(found, heatview.Sequential) {
		t.Errorf("the heatmap of time first shows %v, want that it is sequential", found)
	}
	if found := rules(entity); slices.Contains(found, heatview.Sequential) {
		t.Errorf("the heatmap of entity first shows %v", found)
	}
	if unmet := report.Unmet(); len(unmet) != 2 || !strings.Contains(unmet[0], "hottest node") || !strings.Contains(unmet[1], "the best candidate is entity first") {
		t.Errorf("not as expected: %q, want the CPU and the best candidate", unmet)
	}
	var text strings.Builder
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "A model, not a measurement") || !strings.Contains(text.String(), "none helps") {
		t.Errorf("the report is\n%s\n%v", text.String(), err)
	}
	for _, c := range tablets.Constants() {
		if _, list, _ := strings.Cut(text.String(), "Google does not document"); strings.Contains(list, c.Name+": ") != (c.Source == "") {
			t.Errorf("the report says of %q whether it is assumed; documented at %q", c.Name, c.Source)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := parsed(t, busy).Simulate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := new(lab.Plan).Simulate(t.Context()); !errors.Is(err, lab.ErrInvalid) {
		t.Errorf("an empty plan: %v", err)
	}
}

// TestCompare: the report has the candidates that were chosen, executed and simulated.
func TestCompare(t *testing.T) {
	report, err := parsed(t, small).Compare(t.Context(), lab.RunOptions{Candidates: []string{"sdk", "time"}, Scale: 1, Speed: 3600})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Ranking) != 2 || report.Candidates[0].Measured == nil || report.Candidates[1].Simulated == nil {
		t.Fatalf("the report has %+v", report)
	}
}

// TestSimulateShipped simulates all shipped workloads at full size, which takes half a minute.
func TestSimulateShipped(t *testing.T) {
	if os.Getenv("TIDEMARK_LONG") == "" {
		t.Skip("set TIDEMARK_LONG to simulate all shipped workloads")
	}
	for _, name := range lab.Workloads() {
		text, err := lab.Workload(name)
		if err != nil {
			t.Fatal(err)
		}
		report, err := parsed(t, string(text)).Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_ = report.WriteText(&out)
		t.Logf("%s\nnot as expected: %q", out.String(), report.Unmet())
		if want := parsed(t, string(text)).Candidates()[0]; !strings.HasPrefix(report.Ranking[0].Candidate, strings.Fields(want)[0]) {
			t.Errorf("%s: the best is %s, want one that begins as %s", name, report.Ranking[0].Candidate, want)
		}
	}
}
