package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/examples/internal/dashtest"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
)

// flaky is a server with Bigtable's protocol that is unavailable for every fourth write.
func flaky(t *testing.T) *bttest.Server {
	t.Helper()
	var writes atomic.Int64
	server, err := bttest.NewServer("127.0.0.1:0", grpc.UnaryInterceptor(
		func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if strings.HasSuffix(info.FullMethod, "/CheckAndMutateRow") && writes.Add(1)%4 == 0 {
				return nil, status.Error(codes.Unavailable, "every fourth")
			}
			return h(ctx, req)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// TestSeen runs the program with load of two tenants, a journal, a bad network and points that the store refuses, and
// expects data for the dashboard.
func TestSeen(t *testing.T) {
	notOnWindows(t)
	cmd, stderr := programtest.New(t, append(trucks, "-cloud", "-journal", filepath.Join(t.TempDir(), "journal"), "-token", "secret=acme",
		"-token", "other=beta", "-addr", "127.0.0.1:0", "-metrics-addr", "127.0.0.1:0", "-tenants-in-metrics", "10")...)
	cmd.Env = append(cmd.Env, "BIGTABLE_EMULATOR_HOST="+flaky(t).Addr, "TIDEMARK_PROJECT=p", "TIDEMARK_INSTANCE=i", "TIDEMARK_TABLE=t")
	s := begin(t, cmd, stderr)
	post := func(token, text string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+v2, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Token "+token)
		res, err := patient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusNoContent {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	const good, bad = 100, 20
	lines := func(n int, fleet string, round int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "readings,name=truck_%d,fleet=%s v=1 %d\n", i%10, fleet, start.UnixNano()+int64(round*good+i))
		}
		return b.String()
	}
	seen := dashtest.New("ingest")
	for round := range 3 {
		post("secret", lines(good, "South", round))
		post("other", lines(good/2, "South", round))
		post("secret", lines(bad, "North", round)) // the same rows with another tag
		// Acknowledged points are on disk. Wait until the store has stored or refused them.
		for delivered, kept := 0.0, 0.0; delivered < float64((round+1)*(good+good/2+bad)) || kept < float64((round+1)*bad); {
			now := dashtest.New("ingest")
			if err := now.Scrape(t.Context(), s.seen); err != nil {
				t.Fatal(err)
			}
			delivered, kept = now.Value(t, `sum(tidemark_writer_points_total)`), now.Value(t, `sum(tidemark_journal_dead_letters)`)
		}
		if err := seen.Scrape(t.Context(), s.seen); err != nil {
			t.Fatal(err)
		}
	}
	if n := dashtest.Answered(t, seen); n < 30 {
		t.Errorf("ingest has data for %d queries of the dashboard, want most of them", n)
	}
	dashtest.Fires(t, seen, "TidemarkPointsNotStored", "TidemarkOperationsFail", "TidemarkCallsRefused")
	dashtest.Listed(t, seen)
	for expr, want := range map[string]float64{
		`sum(tidemark_writer_points_total{tidemark_outcome="stored"})`:                    3 * (good + good/2),
		`sum(tidemark_writer_points_total{tidemark_outcome="rejected"})`:                  3 * bad,
		`sum(tidemark_journal_dead_letters)`:                                              3 * bad,
		`sum(tidemark_writer_tenant_points_total{tidemark_tenant="beta"})`:                3 * good / 2,
		`count(target_info{service_name="ingest"})`:                                       1,
		`sum(tidemark_attempt_duration_seconds_count{error_type="UNAVAILABLE"}) > bool 0`: 1,
		`count({__name__=~".+", otel_scope_name!=""}) or vector(0)`:                       0,
	} {
		if got := seen.Value(t, expr); got != want {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
	// The program's own port does not show metrics.
	res, err := patient.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics on the port for writes: status %d", res.StatusCode)
	}
	s.interrupt(t)
	if out, err := s.rest(); err != nil || !strings.Contains(out, "60 dead letters") {
		t.Errorf("%v, %s; %s", err, out, stderr)
	}
}
