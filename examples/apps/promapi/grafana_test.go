package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"github.com/tidemark-go/tidemark/tsdb"
)

// demo is a server with the demo data, over HTTP as Grafana asks.
func demo(t *testing.T) (ask func(method, path string, pairs ...string) (int, string), now time.Time) {
	s := mappedOver(t, someLimits)
	now = time.Now()
	if _, err := fill(t.Context(), s.store, now); err != nil {
		t.Fatal(err)
	}
	s = over(t, s.store, s.prom.schema, tsdb.WriterOptions{}, someLimits, shown(t, s.store, nil))
	return s.asDemo, now
}

// asDemo asks as the tenant demo.
func (s *stand) asDemo(method, path string, pairs ...string) (int, string) {
	encoded := form(pairs).Encode()
	var r *http.Request
	if method == http.MethodPost {
		r = httptest.NewRequest(method, "/api/v1/"+path, strings.NewReader(encoded))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		r = httptest.NewRequest(method, "/api/v1/"+path+"?"+encoded, nil)
	}
	r.SetBasicAuth("demo", "demo")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestGrafana makes the calls that Grafana makes: when the data source is saved and tested, when an editor opens, and
// for a dashboard.
func TestGrafana(t *testing.T) {
	ask, now := demo(t)
	start, end := fmt.Sprint(now.Add(-time.Hour).Unix()), fmt.Sprint(now.Unix())
	for _, tt := range []struct {
		method, path string
		pairs        []string
		status       int
		want         string
	}{
		// Save and test.
		{"POST", "query", []string{"query", "1+1", "time", "4"}, 200, `"result":[4,"2"]`},
		{"GET", "query", []string{"query", "1+1", "time", "4"}, 200, `"result":[4,"2"]`},
		{"GET", "status/buildinfo", nil, 200, `"version":"3.`},
		// The query editor.
		{"GET", "label/__name__/values", []string{"start", start, "end", end, "limit", "40000"}, 200, `"trucks_load_kg"`},
		{"GET", "metadata", []string{"limit", "10000"}, 200, `"status":"success"`},
		{"POST", "labels", []string{"start", start, "end", end}, 200, `["__name__","driver","fleet","truck"]`},
		{"POST", "labels", []string{"start", start, "end", end, "match[]", `{__name__="trucks_speed_kmh"}`}, 200, `["__name__","fleet","truck"]`},
		{"POST", "series", []string{"start", start, "end", end, "match[]", `trucks_speed_kmh{fleet="East"}`, "limit", "40000"}, 200, `"truck":"truck_00"`},
		{"GET", "series", []string{"start", start, "end", end, "match[]", `trucks_speed_kmh{fleet="East"}`}, 200, `"truck":"truck_00"`},
		{"GET", "rules", nil, 200, `"groups":[]`},
		// What does not take POST is asked again with GET.
		{"POST", "label/fleet/values", []string{"start", start, "end", end}, 405, ""},
		{"GET", "label/fleet/values", []string{"start", start, "end", end, "match[]", "trucks_speed_kmh"}, 200, `["East","North","South","West"]`},
		{"POST", "metadata", nil, 405, ""},
		// A panel, its exemplars, and an error that is shown.
		{"POST", "query_range", []string{"query", `rate(trucks_odometer_km{fleet=~"East|West"}[1m])`, "start", start, "end", end, "step", "15"}, 200, `"resultType":"matrix","result":[{"metric":{"fleet":"East"`},
		{"POST", "query_range", []string{"query", `trucks_speed_kmh{fleet="nowhere"}`, "start", start, "end", end, "step", "15.000"}, 200, `"result":[]`},
		{"POST", "query_exemplars", []string{"query", "trucks_speed_kmh", "start", start, "end", end}, 200, `"data":[]`},
		{"POST", "query_range", []string{"query", "rate(", "start", start, "end", end, "step", "15"}, 400, `"errorType":"bad_data","error":"`},
		{"GET", "query_range", []string{"query", "rate(", "start", start, "end", end, "step", "15"}, 400, "parse error"},
	} {
		if status, got := ask(tt.method, tt.path, tt.pairs...); status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %q: %d %.500s, want %d with %s", tt.method, tt.path, tt.pairs, status, got, tt.status, tt.want)
		}
	}
}

// TestDashboard evaluates each query of the dashboard on the demo data. A query that finds nothing would be an empty
// panel.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("grafana/dashboards/trucks.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) == 0 {
		t.Fatal(err)
	}
	text, err = os.ReadFile("grafana/provisioning/datasources/tidemark.yml")
	if err != nil {
		t.Fatal(err)
	}
	var sources struct {
		Datasources []struct {
			UID           string
			URL           string `yaml:"url"`
			Type          string
			BasicAuthUser string `yaml:"basicAuthUser"`
		}
	}
	if err := yaml.Unmarshal(text, &sources); err != nil || len(sources.Datasources) != 1 {
		t.Fatal(err, sources)
	}
	source := sources.Datasources[0]
	if source.Type != "prometheus" || source.BasicAuthUser != demoTenant || !strings.HasSuffix(source.URL, "127.0.0.1:9099") {
		t.Errorf("the data source is %+v, want the program with -demo", source)
	}
	ask, now := demo(t)
	fill := strings.NewReplacer("$fleet", "East|North|South|West", "$__rate_interval", "40s")
	for _, panel := range board.Panels {
		if panel.Datasource.UID != source.UID || len(panel.Targets) == 0 {
			t.Errorf("panel %s uses the data source %q, want %q", panel.Title, panel.Datasource.UID, source.UID)
		}
		for _, target := range panel.Targets {
			label, _, _ := strings.Cut(strings.TrimPrefix(target.LegendFormat, "{{"), "}}")
			status, got := ask(http.MethodPost, "query_range", "query", fill.Replace(target.Expr), "start", fmt.Sprint(now.Add(-30*time.Minute).Unix()), "end", fmt.Sprint(now.Unix()), "step", "15")
			if status != http.StatusOK || !strings.Contains(got, `"values"`) || !strings.Contains(got, `"`+label+`":"`) {
				t.Errorf("panel %s, %s: %d %.300s, want series with the label %s", panel.Title, target.Expr, status, got, label)
			}
		}
	}
}
