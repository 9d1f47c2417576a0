// Package dashtest tests that the queries of the dashboard and of the alert rules return data from a running example.
// It evaluates them with Prometheus' own engine, so that a wrong metric, label, matching or syntax fails the test. Only
// tests import it, so no program links Prometheus' engine.
package dashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"
)

// folder returns the path of the dashboard, relative to the folder of an app or of this package.
func folder() string {
	if _, err := os.Stat("../dashboards"); err == nil {
		return "../dashboards"
	}
	return "../../apps/dashboards"
}

// query is a query of the dashboard or of the rules.
type query struct {
	name   string // the panel or the alert
	expr   string
	legend string // of a panel
	alert  bool
}

// board is the part of the dashboard that the tests read. It is stored as Grafana exports it.
type board struct {
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string     `json:"name"`
			Type       string     `json:"type"`
			Definition string     `json:"definition"`
			Datasource datasource `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
}

type datasource struct {
	UID string `json:"uid"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	Targets     []struct {
		RefID      string     `json:"refId"`
		Datasource datasource `json:"datasource"`
		Expr       string     `json:"expr"`
		Legend     string     `json:"legendFormat"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Grid struct{ X, Y, W, H int } `json:"gridPos"`
}

// chosen is the variable with the data source.
const chosen = "${datasource}"

// panels reads the queries of the dashboard, and fails if a panel lacks what every panel must have.
func panels(t *testing.T) (all []query) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(), "tidemark.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	ids := map[int]string{}
	for i, p := range b.Panels {
		if other, twice := ids[p.ID]; twice || p.ID == 0 {
			t.Errorf("%q has the id %d of %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		for _, o := range b.Panels[:i] {
			if p.Grid.X < o.Grid.X+o.Grid.W && o.Grid.X < p.Grid.X+p.Grid.W && p.Grid.Y < o.Grid.Y+o.Grid.H && o.Grid.Y < p.Grid.Y+p.Grid.H {
				t.Errorf("%q overlaps %q", p.Title, o.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != chosen || len(p.Targets) == 0 {
			t.Errorf("the panel %d, %q, lacks a title, a description, a unit, the chosen data source or a query", p.ID, p.Title)
		}
		for _, q := range p.Targets {
			if q.Datasource.UID != chosen || q.RefID == "" {
				t.Errorf("%s: a query without the chosen data source, or without its letter", p.Title)
			}
			all = append(all, query{name: p.Title, expr: q.Expr, legend: q.Legend})
		}
	}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		if v.Datasource.UID != chosen {
			t.Errorf("the variable %s does not use the chosen data source", v.Name)
		}
		all = append(all, query{name: "the variable " + v.Name, expr: asQuery(t, v.Definition)})
	}
	return all
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// asQuery converts the query of a variable into a Prometheus query that returns data if the variable has values.
func asQuery(t *testing.T, definition string) string {
	t.Helper()
	m := labelValues.FindStringSubmatch(definition)
	if m == nil {
		t.Fatalf("the query of a variable is not understood: %s", definition)
	}
	return fmt.Sprintf("count by (%s) (%s)", m[2], m[1])
}

// rules is a file of rules.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// alerts reads the alert rules.
func alerts(t *testing.T) (all []query) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(), "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Groups {
		for _, a := range g.Rules {
			if a.Alert == "" || a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
				t.Errorf("the alert %q lacks a name, a severity, a summary or a description", a.Alert)
			}
			if a.For != "" {
				if _, err := model.ParseDuration(a.For); err != nil {
					t.Errorf("the alert %s: %v", a.Alert, err)
				}
			}
			// A template names labels as a legend does.
			all = append(all, query{name: a.Alert, expr: a.Expr, legend: dollars.ReplaceAllString(a.Annotations["summary"], "{{$1}}"), alert: true})
		}
	}
	return all
}

// dollars is a label in a template of an alert.
var dollars = regexp.MustCompile(`{{ \$labels\.(\w+) }}`)

// filled returns a query with the values of the dashboard's variables.
func filled(t *testing.T, q query, program string) string {
	t.Helper()
	expr := strings.NewReplacer("$__rate_interval", model.Duration(4*interval).String(), "$job", program, "$table", ".+").Replace(q.expr)
	if strings.Contains(expr, "$") {
		t.Fatalf("%s has a variable that is not known: %s", q.name, q.expr)
	}
	return expr
}

// interval is the time between two scrapes in Prometheus' configuration.
const interval = 15 * time.Second
