package dashtest

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// homes lists which program has data for metrics with these prefixes. All others belong to ingest.
var homes = []struct{ prefix, program string }{
	{"tidemark_cache_", "latestapi"},
	{"db_client_response_returned_rows", "latestapi"}, // of reads, which ingest does not make
	{"tidemark_rollup_", "rollups"},
}

var parseExpr = parser.NewParser(parser.Options{}).ParseExpr

func homeOf(metrics []string) string {
	for _, m := range metrics {
		for _, h := range homes {
			if strings.HasPrefix(m, h.prefix) {
				return h.program
			}
		}
	}
	return "ingest"
}

// Answered fails the test for each query of the dashboard and of the alert rules that belongs to the program and
// returns no number from the scrapes, or shows a label that the result lacks. It returns the number of such queries.
func Answered(t *testing.T, s *Scrapes) (n int) {
	t.Helper()
	engine := newEngine()
	for _, q := range slices.Concat(panels(t), alerts(t)) {
		expr, err := parseExpr(filled(t, q, s.program))
		if err != nil {
			t.Errorf("%s: %v in %s", q.name, err, q.expr)
			continue
		}
		if homeOf(metricsOf(expr)) != s.program {
			continue
		}
		n++
		if q.alert {
			expr = measured(t, q, expr)
		}
		s.checkLabels(t, q, expr)
		found := s.run(t, engine, q, expr)
		if !slices.ContainsFunc(found, func(v promql.Sample) bool { return !math.IsNaN(v.F) }) {
			t.Errorf("%s: %d results and no number among them for %s", q.name, len(found), expr)
			continue
		}
		for _, m := range legendLabel.FindAllStringSubmatch(q.legend, -1) {
			if !slices.ContainsFunc(found, func(v promql.Sample) bool { return v.Metric.Has(m[1]) }) {
				t.Errorf("%s shows the label %s, which no result has", q.name, m[1])
			}
		}
	}
	return n
}

// Listed fails the test if docs/telemetry.md lacks a metric of the program or has another type for it, or if it has a
// metric that the program does not export.
func Listed(t *testing.T, s *Scrapes) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(), "..", "..", "..", "docs", "telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range tableLine.FindAllStringSubmatch(string(text), -1) {
		name, kind := inPrometheus(m[1], m[2], m[3])
		listed[name] = kind
	}
	for name, kind := range s.types {
		if name != "target_info" && listed[name] != kind {
			t.Errorf("%s, a %s, is in the table as %q", name, kind, listed[name])
		}
	}
	for name := range listed {
		if homeOf([]string{name}) == s.program && s.types[name] == "" {
			t.Errorf("%s is in the table, but %s does not export it", name, s.program)
		}
	}
}

// tableLine matches a line of the table of metrics: the name, the kind and the unit.
var tableLine = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| ([a-z-]+(?: counter)?), (\\S+) \\|")

// inPrometheus returns the name and the type that a metric has in Prometheus.
func inPrometheus(metric, kind, unit string) (name, promKind string) {
	name = strings.ReplaceAll(metric, ".", "_")
	if ending := map[string]string{"s": "_seconds", "By": "_bytes", "By/s": "_bytes_per_second"}[unit]; !strings.HasSuffix(name, ending) {
		name += ending
	}
	switch kind {
	case "counter":
		return name + "_total", kind
	case "up-down counter":
		return name, "gauge"
	}
	return name, kind
}

// Fires fails the test if an alert would not fire. It ignores how long the condition must last.
func Fires(t *testing.T, s *Scrapes, names ...string) {
	t.Helper()
	engine := newEngine()
	for _, q := range alerts(t) {
		if !slices.Contains(names, q.name) {
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == q.name })
		expr, err := parseExpr(filled(t, q, s.program))
		if err != nil {
			t.Errorf("%s: %v", q.name, err)
		} else if len(s.run(t, engine, q, expr)) == 0 {
			t.Errorf("%s would not fire: %s", q.name, q.expr)
		}
	}
	if len(names) > 0 {
		t.Errorf("no alerts %v", names)
	}
}

// legendLabel is a label that a legend shows.
var legendLabel = regexp.MustCompile(`{{(\w+)}}`)

// Value returns the number of an expression at the last scrape; zero without a result.
func (s *Scrapes) Value(t *testing.T, expr string) float64 {
	t.Helper()
	e, err := parseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	v := s.run(t, newEngine(), query{name: "the test"}, e)
	if len(v) == 0 {
		return 0
	}
	return v[0].F
}

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: 10 * time.Second, LookbackDelta: 5 * time.Minute})
}

func (s *Scrapes) run(t *testing.T, engine *promql.Engine, q query, expr parser.Expr) promql.Vector {
	t.Helper()
	run, err := engine.NewInstantQuery(t.Context(), s.queryable(), nil, expr.String(), s.at())
	if err != nil {
		t.Errorf("%s: %v in %s", q.name, err, expr)
		return nil
	}
	defer run.Close()
	v, err := run.Exec(t.Context()).Vector()
	if err != nil {
		t.Errorf("%s: %v in %s", q.name, err, expr)
	}
	return slices.Clone(v)
}

// measured returns the left side of an alert's comparison: the comparison itself returns nothing while all is well.
func measured(t *testing.T, q query, expr parser.Expr) parser.Expr {
	t.Helper()
	b, ok := expr.(*parser.BinaryExpr)
	if !ok || !b.Op.IsComparisonOperator() {
		t.Errorf("%s does not compare with a limit: %s", q.name, expr)
		return expr
	}
	if _, ok := b.RHS.(*parser.NumberLiteral); !ok {
		t.Errorf("%s does not compare with a number: %s", q.name, expr)
	}
	return b.LHS
}

func selectors(expr parser.Expr) (all []*parser.VectorSelector) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			all = append(all, v)
		}
		return nil
	})
	return all
}

func metricsOf(expr parser.Expr) (names []string) {
	for _, v := range selectors(expr) {
		names = append(names, v.Name)
	}
	return names
}

// checkLabels fails the test if a query selects or groups by a label that its metrics lack: the query would return
// data, but of too many series, or all in one group. It also refuses a part that returns data without any metric,
// because that would hide parts without data.
func (s *Scrapes) checkLabels(t *testing.T, q query, expr parser.Expr) {
	t.Helper()
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			s.checkSelector(t, q, n)
		case *parser.AggregateExpr:
			for _, name := range n.Grouping {
				s.checkLabel(t, q, name, n.Expr)
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				for _, name := range n.VectorMatching.MatchingLabels {
					s.checkLabel(t, q, name, n)
				}
			}
			if n.Op == parser.LOR && !slices.Equal(metricsOf(n.LHS), metricsOf(n.RHS)) {
				t.Errorf("%s: 'or' of another metric hides a side without data: %s", q.name, q.expr)
			}
		case *parser.Call:
			if n.Func.Name == "vector" || strings.HasPrefix(n.Func.Name, "absent") {
				t.Errorf("%s: %s has data where there is none: %s", q.name, n.Func.Name, q.expr)
			}
		}
		return nil
	})
}

// checkSelector requires at least one series for a selector, and one series of its metric with each label.
func (s *Scrapes) checkSelector(t *testing.T, q query, v *parser.VectorSelector) {
	t.Helper()
	if v.Name == "" {
		t.Errorf("%s selects series without the name of their metric: %s", q.name, q.expr)
	}
	if !slices.ContainsFunc(s.series, func(one *series) bool { return matches(one.labels, v.LabelMatchers) }) {
		t.Errorf("%s: no series %s", q.name, v)
	}
	for _, m := range v.LabelMatchers {
		if m.Name != model.MetricNameLabel && !slices.ContainsFunc(s.series, func(one *series) bool {
			return one.labels.Get(model.MetricNameLabel) == v.Name && one.labels.Has(m.Name)
		}) {
			t.Errorf("%s: no series %s has the label %s", q.name, v.Name, m.Name)
		}
	}
}

// checkLabel requires a label on the series of each selector in an expression.
func (s *Scrapes) checkLabel(t *testing.T, q query, name string, below parser.Expr) {
	t.Helper()
	for _, v := range selectors(below) {
		if !slices.ContainsFunc(s.series, func(one *series) bool { return matches(one.labels, v.LabelMatchers) && one.labels.Has(name) }) {
			t.Errorf("%s: no series %s has the label %s, by which they are grouped", q.name, v, name)
		}
	}
}
