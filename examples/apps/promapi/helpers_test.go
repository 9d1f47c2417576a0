package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start0 is the time of the first samples of the tests.
const start0 = 1_767_225_600_000

var (
	acme       = tenant.MustParse("acme")
	someLimits = limits{
		body: 4 << 20, samples: 1_000_000, series: 100_000, timeout: time.Minute, lookback: 5 * time.Minute, requests: 64, perTenant: 32,
	}
)

// log is written and read by several goroutines.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// stand is a server over a store in memory. The tokens a, g and demo are those of acme, globex and demo.
type stand struct {
	testing.TB
	*server
	handler http.Handler
	log     *log
}

func open(t testing.TB, l limits, opts embedded.Options, w tsdb.WriterOptions) *stand {
	t.Helper()
	store, err := embedded.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return over(t, store, schema, w, l)
}

// over is a server over a store.
func over(t testing.TB, store *tsdb.Store, schema *tsdb.Schema[sample], w tsdb.WriterOptions, l limits, others ...source) *stand {
	t.Helper()
	writer, err := store.NewWriter(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close(context.Background()) })
	ts := &tokens{new(edge.Tokens)}
	for _, text := range []string{"a=acme", "g=globex", "demo=demo"} {
		if err := ts.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	logged := new(log)
	s, err := newServer(store, writer, schema, resolver(ts, false), l, slog.New(slog.NewTextHandler(logged, nil)), others...)
	if err != nil {
		t.Fatal(err)
	}
	return &stand{t, s, s.handler(), logged}
}

func plain(t testing.TB) *stand {
	return open(t, someLimits, embedded.Options{}, tsdb.WriterOptions{})
}

// send sends a request with a token, and returns the status and the body.
func (s *stand) send(r *http.Request, token string) *httptest.ResponseRecorder {
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// get returns the response to a query of acme: its status, and its body without the newline.
func (s *stand) get(path string, pairs ...string) (int, string) {
	s.Helper()
	w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/"+path+"?"+form(pairs).Encode(), nil), "a")
	return w.Code, strings.TrimSuffix(w.Body.String(), "\n")
}

func form(pairs []string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// write sends a message of remote write.
func (s *stand) write(token, kind string, message []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(snappy.Encode(nil, message)))
	r.Header.Set("Content-Type", protobufType+";proto="+kind)
	r.Header.Set("Content-Encoding", "snappy")
	return s.send(r, token)
}

// put stores series of a tenant, or fails the test.
func (s *stand) put(token string, series ...prompb.TimeSeries) {
	s.Helper()
	message, err := (&prompb.WriteRequest{Timeseries: series}).Marshal()
	if err != nil {
		s.Fatal(err)
	}
	if w := s.write(token, writeV1, message); w.Code != http.StatusNoContent {
		s.Fatalf("status %d: %s", w.Code, w.Body)
	}
}

// line returns a series with values every 15 seconds.
func line(name string, pairs []string, values ...float64) prompb.TimeSeries {
	ts := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}}}
	for i := 0; i < len(pairs); i += 2 {
		ts.Labels = append(ts.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	for i, v := range values {
		ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: start0 + int64(i)*15_000, Value: v})
	}
	return ts
}

func at(seconds int) string { return fmt.Sprint(start0/1000 + seconds) }
