package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var tenantsFor = flag.Duration("tenants-for", 0, "how long two tenants query at once; 0 is 40 rounds")

// TestTwoTenants: two tenants write and query at the same time. All values of one are below 1000, and those of the
// other are above, so that a value which crosses is seen, also one from memory that a closed query gave back.
func TestTwoTenants(t *testing.T) {
	s := plain(t)
	until := time.Now().Add(*tenantsFor)
	goes := func(round int) bool {
		if *tenantsFor > 0 {
			return time.Now().Before(until)
		}
		return round < 40/testkit.Stride(4)
	}
	var all sync.WaitGroup
	for _, who := range []struct {
		token string
		base  float64
	}{{"a", 100}, {"g", 5000}} {
		var series []prompb.TimeSeries
		for i := range 20 {
			ts := line("m", []string{"i", fmt.Sprint(i), "of", who.token})
			for j := range 40 {
				ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: start0 + int64(j)*15_000, Value: who.base + float64(j)})
			}
			series = append(series, ts)
		}
		s.put(who.token, series...)
		wanted := map[string]string{}
		for _, path := range []string{
			"query_range?query=m&start=" + at(0) + "&end=" + at(585) + "&step=15", "query_range?query=max(m)%2B0*m&start=" + at(0) + "&end=" + at(585) + "&step=15",
			"query?query=m&time=" + at(585), "query?query=m[5m]&time=" + at(585), "label/of/values", "series?match[]=m",
		} {
			w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/"+path, nil), who.token)
			wanted[path] = w.Body.String()
			if other := `"` + map[string]string{"a": "g", "g": "a"}[who.token] + `"`; w.Code != http.StatusOK || strings.Contains(wanted[path], other) {
				t.Fatalf("%s of %s: %d %.300s", path, who.token, w.Code, wanted[path])
			}
		}
		for range 3 {
			all.Go(func() {
				for round := 0; goes(round); round++ {
					for path, want := range wanted {
						if round%5 != 0 && !strings.HasPrefix(path, "query_range") { // range queries take memory from each other
							continue
						}
						w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/"+path, nil), who.token)
						if got := w.Body.String(); got != want {
							t.Errorf("%s of %s:\n got %.300s\nwant %.300s", path, who.token, got, want)
							return
						}
					}
					if round%10 == 0 {
						s.write(who.token, writeV1, message(&prompb.WriteRequest{Timeseries: series}))
					}
				}
			})
		}
	}
	all.Wait()
}

func TestTokens(t *testing.T) {
	ts := &tokens{new(edge.Tokens)}
	for _, text := range []string{"secret=acme", "other=globex"} {
		if err := ts.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	const unknown, none, denied = "unauthenticated", "no credentials", "forbidden"
	for _, tt := range []struct {
		header      []string
		org         []string
		alone, with string // the tenant or the error, without and with -behind-proxy
	}{
		{[]string{"Bearer secret"}, nil, "acme", "acme"},
		{[]string{"bearer  secret "}, nil, "acme", "acme"},
		{[]string{"Basic YWNtZTpzZWNyZXQ="}, nil, "acme", "acme"},       // acme:secret
		{[]string{"Basic Z2xvYmV4OnNlY3JldA=="}, nil, unknown, unknown}, // globex:secret
		{[]string{"Basic OnNlY3JldA=="}, nil, unknown, unknown},         // :secret
		{[]string{"Basic %%%"}, nil, unknown, unknown},
		{[]string{"Basic YWNtZQ=="}, nil, unknown, unknown}, // acme without a password
		{[]string{"Digest secret"}, nil, unknown, unknown},
		{[]string{"Bearer wrong"}, []string{"acme"}, unknown, unknown},
		{[]string{"Bearer secret", "Bearer secret"}, nil, unknown, unknown},
		{nil, nil, none, none},
		{nil, []string{"acme"}, none, "acme"},
		{nil, []string{"acme", "acme"}, none, denied},
		{nil, []string{"no tenant"}, none, denied},
		{[]string{"Bearer secret"}, []string{"globex"}, "acme", denied},
		{[]string{"Bearer secret"}, []string{"acme"}, "acme", "acme"},
	} {
		h := http.Header{"Authorization": tt.header, http.CanonicalHeaderKey(orgHeader): tt.org}
		for behindProxy, want := range map[bool]string{false: tt.alone, true: tt.with} {
			id, err := resolver(ts, behindProxy).Resolve(t.Context(), tenant.Request{Header: h.Values})
			if got := id.String(); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, behind a proxy %v: %q, %v; want %s", h, behindProxy, got, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error %v has the token", err)
			}
		}
	}
}

// TestCancelledQuery: nothing keeps running after the client has gone, and the place is free.
func TestCancelledQuery(t *testing.T) {
	s := filled(t, someLimits)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"query?query=requests_total", "series?match[]=up", "labels", "query_exemplars?query=up"} {
		w := s.send(httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, nil), "a")
		if w.Body.Len() > 0 && w.Code == http.StatusOK {
			t.Errorf("%s: %s, want no answer", path, w.Body)
		}
	}
	if status, got := s.get("query", "query", "up", "time", at(0)); status != http.StatusOK || !strings.Contains(got, `"1"`) || len(s.gate.held) != 0 {
		t.Errorf("afterwards: %d %s", status, got)
	}
}

// TestQueryCancelledInTheMiddle: a client that goes away ends the reads that its query waits for.
func TestQueryCancelledInTheMiddle(t *testing.T) {
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	s := over(t, store, schema, tsdb.WriterOptions{}, someLimits)
	s.put("a", line("m", []string{"i", "1"}, 1), line("m", []string{"i", "2"}, 1))
	if status, got := s.get("query", "query", "m", "time", at(0)); status != http.StatusOK { // lists are cached
		t.Fatal(status, got)
	}
	for _, path := range []string{"query?query=m&time=" + at(0), "query_range?query=m&start=" + at(0) + "&end=" + at(60) + "&step=15", "query_exemplars?query=m", "metadata"} {
		conn.Clear()
		conn.Inject(tsdbtest.Hang(0).On(tsdbtest.ReadRows))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan *httptest.ResponseRecorder)
		go func() {
			ended <- s.send(httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, nil), "a")
		}()
		for s.held(acme) == 0 { // until the query runs
			runtime.Gosched()
		}
		select {
		case w := <-ended:
			t.Fatalf("%s: %d %s, want it to wait for the store", path, w.Code, w.Body)
		default:
		}
		cancel()
		if w := <-ended; w.Body.Len() > 0 || s.held(acme) != 0 {
			t.Errorf("%s: %d %s with %d places held, want no answer and none", path, w.Code, w.Body, s.held(acme))
		}
	}
}

// held is the number of requests of a tenant that are under way.
func (s *stand) held(id tenant.ID) int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.held[id]
}

// TestParallelAfterACancellation: calls that were left out because the client has gone are an error, and no result.
func TestParallelAfterACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := parallel(ctx, 5, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cancellation", err)
	}
}
