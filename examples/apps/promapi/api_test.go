package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// filled is a server with a few series of acme, and one of globex.
func filled(t testing.TB, l limits) *stand {
	s := open(t, l, embedded.Options{}, tsdb.WriterOptions{})
	requests := line("requests_total", []string{"job", "api", "path", "/a"}, 0, 15, 30, 45, 60)
	requests.Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: "t1"}}, Value: 1.5, Timestamp: start0 + 1}}
	s.put("a", requests, line("requests_total", []string{"job", "api", "path", "/b"}, 5, 5, 5, 5, 5), line("up", []string{"job", "db"}, 1), line("temp", nil, 21.5))
	s.put("g", line("secret", []string{"job", "theirs"}, 42))
	return s
}

func TestAnswers(t *testing.T) {
	s := filled(t, someLimits)
	const none = `{"resultType":"vector","result":[]}`
	for _, tt := range []struct {
		path  string
		pairs []string
		data  string
	}{
		{"query", []string{"query", "1+1", "time", "4"}, `{"resultType":"scalar","result":[4,"2"]}`},
		{"query", []string{"query", `"ä"`, "time", "4.5"}, `{"resultType":"string","result":[4.500,"ä"]}`},
		{"query", []string{"query", "up", "time", at(0)}, `{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"db"},"value":[1767225600,"1"]}]}`},
		{"query", []string{"query", "secret", "time", at(0)}, none},
		{"query", []string{"query", "up", "time", at(301)}, none},
		{"query", []string{"query", "up", "time", at(301), "lookback_delta", "10m"}, `{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"db"},"value":[1767225901,"1"]}]}`},
		{"query", []string{"query", "up", "time", "-9000000000"}, none},
		{"query", []string{"query", "up[1m]", "time", "-5"}, `{"resultType":"matrix","result":[]}`},
		{"query", []string{"query", "0/0", "time", "0"}, `{"resultType":"scalar","result":[0,"NaN"]}`},
		{"query", []string{"query", `sum by (path) (max_over_time(requests_total{path=~"/a|/c"}[1m]))`, "time", at(60)}, `{"resultType":"vector","result":[{"metric":{"path":"/a"},"value":[1767225660,"60"]}]}`},
		{"query_range", []string{"query", "requests_total", "start", at(0), "end", at(30), "step", "30", "limit", "1"}, `{"resultType":"matrix","result":[{"metric":{"__name__":"requests_total","job":"api","path":"/a"},"values":[[1767225600,"0"],[1767225630,"30"]]}]},"warnings":["results truncated due to limit"]`},
		{"query_range", []string{"query", "nothing", "start", at(0), "end", at(30), "step", "15s"}, `{"resultType":"matrix","result":[]}`},
		{"series", []string{"match[]", "requests_total", "match[]", "up"}, `[{"__name__":"requests_total","job":"api","path":"/a"},{"__name__":"requests_total","job":"api","path":"/b"},{"__name__":"up","job":"db"}]`},
		{"series", []string{"match[]", `{job=~"d.*"}`, "match[]", "up"}, `[{"__name__":"up","job":"db"}]`},
		{"series", []string{"match[]", `{__name__=~".+"}`, "limit", "1"}, `[{"__name__":"requests_total","job":"api","path":"/a"}],"warnings":["results truncated due to limit"]`},
		{"series", []string{"match[]", "nothing"}, `[]`},
		{"labels", nil, `["__name__","job","path"]`},
		{"labels", []string{"match[]", "up"}, `["__name__","job"]`},
		{"label/__name__/values", nil, `["requests_total","temp","up"]`},
		{"label/__name__/values", []string{"match[]", `{__name__=~"up|down"}`, "match[]", "none"}, `["up"]`},
		{"label/job/values", []string{"match[]", `{path!=""}`}, `["api"]`},
		{"label/nothing/values", nil, `[]`},
		{"query_exemplars", []string{"query", "rate(requests_total[5m])", "start", at(0), "end", at(60)}, `[{"seriesLabels":{"__name__":"requests_total","job":"api","path":"/a"},"exemplars":[{"labels":{"trace_id":"t1"},"value":"1.5","timestamp":1767225600.001}]}]`},
		{"query_exemplars", []string{"query", "secret"}, `[]`},
		{"metadata", nil, `{}`},
		{"rules", nil, `{"groups":[]}`},
		{"alerts", nil, `{"alerts":[]}`},
		{"format_query", []string{"query", "sum  by(a)(b)"}, `"sum by (a) (b)"`},
	} {
		status, got := s.get(tt.path, tt.pairs...)
		want := `{"status":"success","data":` + tt.data + `}`
		if status != http.StatusOK || got != want {
			t.Errorf("%s %q: %d\n got %s\nwant %s", tt.path, tt.pairs, status, got, want)
		}
		if tt.path == "metadata" || strings.Contains(tt.path, "/") || tt.path == "rules" || tt.path == "alerts" {
			continue
		}
		r := httptest.NewRequest(http.MethodPost, "/api/v1/"+tt.path, strings.NewReader(form(tt.pairs).Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if w := s.send(r, "a"); strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("POST %s %q:\n got %s\nwant %s", tt.path, tt.pairs, w.Body, want)
		}
	}
	if status, got := s.get("status/buildinfo"); status != http.StatusOK || !strings.Contains(got, `"version":"3.15.0"`) {
		t.Errorf("buildinfo: %d %s", status, got)
	}
}

func TestRefusedQueries(t *testing.T) {
	l := someLimits
	l.samples, l.series = 100, 3
	s := filled(t, l)
	for _, tt := range []struct {
		path   string
		pairs  []string
		status int
		text   string
	}{
		{"query", []string{"query", "sum("}, 400, "parse error"},
		{"query", nil, 400, "no expression"},
		{"query", []string{"query", "up", "time", "tomorrow"}, 400, "timestamp"},
		{"query", []string{"query", "up", "time", "1e300"}, 400, "out of range"},
		{"query", []string{"query", "up", "time", "NaN"}, 400, "out of range"},
		{"query", []string{"query", "up", "timeout", "-1"}, 400, "duration"},
		{"query", []string{"query", "up", "lookback_delta", "soon"}, 400, "duration"},
		{"query", []string{"query", "{}"}, 400, "matcher"},
		{"query", []string{"query", `up{a=~"("}`}, 400, "parse"},
		{"query", []string{"query", `{__name__=~".+"}`, "time", at(0)}, 422, "-max-series"},
		{"query", []string{"query", "requests_total[1d:1s]", "time", at(60)}, 422, "too many samples"},
		{"query_range", []string{"query", "up", "start", "0", "end", "11001", "step", "1"}, 400, "11,000 points"},
		{"query_range", []string{"query", "up", "start", "1", "end", "0", "step", "1"}, 400, "end"},
		{"query_range", []string{"query", "up", "start", "0", "end", "1", "step", "0"}, 400, "step"},
		{"query_range", []string{"query", "up", "start", "0", "end", "1"}, 400, "step"},
		{"query_range", []string{"query", "up", "start", "0", "end", "0", "step", "1e-6"}, 400, "millisecond"},
		{"series", nil, 400, "match[]"},
		{"series", []string{"match[]", `{a=""}`}, 400, "non-empty"},
		{"labels", nil, 422, "-max-series"},
		{"label/job/values", nil, 422, "-max-series"},
		{"labels", []string{"match[]", "{"}, 400, "match[]"},
		{"labels", []string{"start", "2", "end", "1"}, 400, "end"},
		{"labels", []string{"limit", "-1"}, 400, "limit"},
		{"label/%ff/values", nil, 400, "label"},
		{"query_exemplars", []string{"query", "sum("}, 400, "parse"},
		{"format_query", []string{"query", "sum("}, 400, "parse"},
	} {
		status, got := s.get(tt.path, tt.pairs...)
		if status != tt.status || !strings.Contains(got, tt.text) || !strings.HasPrefix(got, `{"status":"error","errorType":"`) {
			t.Errorf("%s %q: %d %s, want %d with %q", tt.path, tt.pairs, status, got, tt.status, tt.text)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/api/v1/query", strings.NewReader("query="+strings.Repeat("1", formBody)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if w := s.send(r, "a"); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form over the limit: %d %s", w.Code, w.Body)
	}
	for path, want := range map[string]int{"/api/v1/nothing": 404, "/": 404} {
		if w := s.send(httptest.NewRequest(http.MethodGet, path, nil), "a"); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := s.send(httptest.NewRequest(http.MethodPut, "/api/v1/query", nil), "a"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d, want 405", w.Code)
	}
	if w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/query?query=up", nil), "wrong"); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d, want 401", w.Code)
	}
}

// TestBusy: requests beyond the tenant's share are refused, and those of another tenant are not.
func TestBusy(t *testing.T) {
	l := someLimits
	l.perTenant = 1
	s := open(t, l, embedded.Options{}, tsdb.WriterOptions{})
	if !s.gate.enter(acme) {
		t.Fatal("the first request is refused")
	}
	w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil), "a")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a second query: %d, want 429 with Retry-After", w.Code)
	}
	if w := s.write("a", writeV1, nil); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a write: %d, want 429 with Retry-After", w.Code)
	}
	if w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil), "g"); w.Code != http.StatusOK {
		t.Errorf("another tenant: %d, want 200", w.Code)
	}
	s.gate.leave(acme)
	if w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil), "a"); w.Code != http.StatusOK || len(s.gate.held) != 0 {
		t.Errorf("afterwards: %d, %d tenants hold places", w.Code, len(s.gate.held))
	}
}

// TestSlowQueries: the log has the query without the values of labels.
func TestSlowQueries(t *testing.T) {
	l := someLimits
	l.slow = time.Nanosecond
	s := filled(t, l)
	if status, got := s.get("query", "query", `label_replace(up{job="hush"} * 2, "hush", "$1", "job", "(hush)") or requests_total{path!~"hush"}`); status != http.StatusOK {
		t.Fatal(status, got)
	}
	if got := s.log.String(); !strings.Contains(got, "requests_total") || strings.Contains(got, "hush") {
		t.Errorf("the log is %s; want the query without values", got)
	}
}

// TestTimeout: a query ends when its time is over, and so does its read of the store.
func TestTimeout(t *testing.T) {
	s := filled(t, someLimits)
	if status, got := s.get("query", "query", "requests_total", "timeout", "1e-9"); status != http.StatusServiceUnavailable || !strings.Contains(got, `"timeout"`) {
		t.Errorf("%d %s, want 503", status, got)
	}
}
