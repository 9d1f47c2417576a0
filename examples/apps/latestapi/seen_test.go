package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/dashtest"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
)

// TestSeen sends requests of two tenants, to the cache and past it, and expects data for the panels of a reading
// program.
func TestSeen(t *testing.T) {
	skipWhereNoInterrupt(t)
	s := serving(t, "-demo", "-token", "other=beta", "-dir", t.TempDir(), "-metrics-addr", "127.0.0.1:0", "-tenants-in-metrics", "10")
	seen := dashtest.New("latestapi")
	for range 2 {
		for range 3 {
			s.want("/v1/weather/latest?site=berlin&device=roof-7&max_stale=1m", 200, `"device":"roof-7"`)
		}
		s.want("/v1/weather/history?site=berlin&device=roof-7&size=400", 200, `"points"`)
		s.want("/v1/weather/latest?site=berlin&device=none", 404, "no-point")
		if err := seen.Scrape(t.Context(), s.seen); err != nil {
			t.Fatal(err)
		}
	}
	if n := dashtest.Answered(t, seen); n < 5 {
		t.Errorf("latestapi has data for %d queries of the dashboard, want those of the cache and of reads", n)
	}
	dashtest.Listed(t, seen)
	for expr, want := range map[string]float64{
		`sum(tidemark_cache_requests_total{tidemark_cache_result="hit"})`:                                    5,
		`sum(db_client_operation_duration_seconds_count{db_operation_name="Latest",error_type!=""})`:         0, // a missing point is a result
		`sum(db_client_response_returned_rows_sum{db_operation_name="Latest",tidemark_tenant="demo"})`:       6,
		`sum(db_client_operation_duration_seconds_count{db_operation_name="Latest",tidemark_tenant="demo"})`: 8,
	} {
		if got := seen.Value(t, expr); got != want {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
	s.want("/metrics", http.StatusNotFound, "no-resource") // not on the port for requests
	s.stop()
	if s.stderr.Len() > 0 {
		t.Errorf("stderr: %s", s.stderr)
	}
}

func TestSeenCommandLine(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-metrics-addr 9464", "-metrics-addr"},
		{"-metrics-addr :9464", "-metrics-addr"},
		{"-metrics-addr 127.0.0.1:http2", "-metrics-addr"},
		{"-metrics-addr 127.0.0.1:66000", "-metrics-addr"},
		{"-otlp-endpoint 127.0.0.1:4318", "-otlp-endpoint"},
		{"-otlp-endpoint ftp://host", "-otlp-endpoint"},
		{"-otlp-endpoint http://me:secret@host", "-otlp-endpoint"},
		{"-tenants-in-metrics -1", "-tenants-in-metrics"},
		{"-tenants-in-metrics 1001", "-tenants-in-metrics"},
	} {
		cmd, stderr := programtest.New(t, append([]string{"-demo", "-addr", "127.0.0.1:0"}, strings.Fields(test.args)...)...)
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: %v, want exit code 2", test.args, err)
		}
		if got := stderr.String(); !strings.Contains(got, test.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: stderr is %q, want %q in it", test.args, got, test.want)
		}
	}
}
