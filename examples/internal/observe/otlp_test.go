package observe

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector accepts OTLP over HTTP.
type collector struct {
	t *testing.T

	mu      sync.Mutex
	spans   []string // with their kind
	metrics []string
	about   []string // attributes of the resources
	headers []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		c.t.Error(err)
	}
	c.headers = append(c.headers, r.Header.Get("X-Token"))
	switch r.URL.Path {
	case "/base/v1/traces":
		var req tracepb.ExportTraceServiceRequest
		if err := proto.Unmarshal(text, &req); err != nil {
			c.t.Error(err)
		}
		for _, rs := range req.GetResourceSpans() {
			c.note(rs.GetResource().GetAttributes())
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					c.spans = append(c.spans, s.GetName()+" "+spanpb.Span_SpanKind_name[int32(s.GetKind())])
				}
			}
		}
	case "/base/v1/metrics":
		var req metricpb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(text, &req); err != nil {
			c.t.Error(err)
		}
		for _, rm := range req.GetResourceMetrics() {
			c.note(rm.GetResource().GetAttributes())
			for _, sm := range rm.GetScopeMetrics() {
				for _, m := range sm.GetMetrics() {
					c.metrics = append(c.metrics, m.GetName())
				}
			}
		}
	default:
		c.t.Errorf("a request for %s", r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) note(attrs []*commonpb.KeyValue) {
	for _, a := range attrs {
		c.about = append(c.about, a.GetKey()+"="+a.GetValue().GetStringValue())
	}
}

// open opens the telemetry for a command line.
func open(t *testing.T, o Options, log *slog.Logger) *Outlet {
	t.Helper()
	if err := o.Check(false); err != nil {
		t.Fatal(err)
	}
	out, err := Open(t.Context(), "test", o, log)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// work writes a point and reads it.
func work(t *testing.T, telemetry tsdb.Telemetry) {
	t.Helper()
	ctx := t.Context()
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Telemetry: telemetry}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, schema); err != nil {
		t.Fatal(err)
	}
	repo := schema.For(store, tenant.MustParse("acme"))
	if err := repo.Put(ctx, tsdb.NewEntity("roof-7"), time.Unix(1767225600, 0), 21.5); err != nil {
		t.Error(err)
	}
	if p, err := repo.Latest(ctx, tsdb.NewEntity("roof-7")); err != nil || p.Value != 21.5 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestOTLP: a collector gets the spans and metrics of all operations at the latest when the program ends.
func TestOTLP(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Token=secret")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial")
	for _, byFlag := range []bool{true, false} {
		c := &collector{t: t}
		server := httptest.NewServer(c)
		o := Options{otlp: server.URL + "/base", tenants: 10}
		if !byFlag {
			o.otlp = ""
			t.Setenv(endpointVariable, server.URL+"/base/")
		}
		out := open(t, o, slog.New(slog.DiscardHandler))
		work(t, out.Telemetry)
		out.Close()
		server.Close()
		for what, want := range map[*[]string][]string{
			&c.spans:   {"Ensure tidemark SPAN_KIND_CLIENT", "Put tidemark SPAN_KIND_CLIENT", "Latest tidemark SPAN_KIND_CLIENT"},
			&c.metrics: {"db.client.operation.duration", "tidemark.attempt.duration"},
			&c.about:   {"service.name=test", "deployment.environment.name=trial"},
			&c.headers: {"secret"},
		} {
			for _, w := range want {
				if !slices.Contains(*what, w) {
					t.Errorf("by flag %v: %q did not arrive; got %q", byFlag, w, *what)
				}
			}
		}
	}
}

// TestCollectorAway: a program works and ends even if its collector is missing, fails, or never answers. Without a
// bound on the end, a collector that never answers would delay it by the time in the environment variables.
func TestCollectorAway(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		t.Setenv(name, "3600000")
	}
	hanging := make(chan struct{})
	for name, h := range map[string]http.HandlerFunc{
		"away":  nil,
		"busy":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"wrong": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-hanging
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(h)
			defer server.Close()
			if h == nil {
				server.Close()
			}
			if name == "hangs" {
				defer close(hanging)
			}
			var log strings.Builder
			out := open(t, Options{otlp: server.URL}, slog.New(slog.NewTextHandler(&log, nil)))
			out.exit = 300 * time.Millisecond
			work(t, out.Telemetry)
			out.Close()
			if n := strings.Count(log.String(), "\n"); n < 1 || n > 2 {
				t.Errorf("the log has %d lines, want 1 or 2:\n%s", n, &log)
			}
		})
	}
}
