package main

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// listenGRPC serves OTLP over gRPC until the test ends, and returns the address.
func (r *rig) listenGRPC(t testing.TB) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := r.grpc()
	done := make(chan error)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		stopGRPC(t.Context(), srv)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// exporters returns the official exporters, with acme's token and connected to the rig.
func (r *rig) exporters(t testing.TB, deltas bool) map[string]sdk.Exporter {
	t.Helper()
	web := httptest.NewServer(r.handler)
	t.Cleanup(web.Close)
	selector := sdk.DefaultTemporalitySelector
	if deltas {
		selector = func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }
	}
	auth := map[string]string{"authorization": "Bearer secret"}
	overHTTP, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(web.URL+"/v1/metrics"), otlpmetrichttp.WithHeaders(auth), otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression),
		otlpmetrichttp.WithTemporalitySelector(selector), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	overGRPC, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithEndpoint(r.listenGRPC(t)), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithHeaders(auth), otlpmetricgrpc.WithCompressor("gzip"),
		otlpmetricgrpc.WithTemporalitySelector(selector), otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	both := map[string]sdk.Exporter{"http": overHTTP, "grpc": overGRPC}
	t.Cleanup(func() {
		for _, e := range both {
			_ = e.Shutdown(context.Background())
		}
	})
	return both
}

// TestOfficialExporters: what OpenTelemetry's SDK records is stored, over both protocols and with both temporalities,
// also while the store fails for a while: the exporter sends the same data points again.
func TestOfficialExporters(t *testing.T) {
	for _, deltas := range []bool{false, true} {
		r := newOTLP(t, ample)
		for protocol, exporter := range r.exporters(t, deltas) {
			host := fmt.Sprint(protocol, deltas)
			reader := sdk.NewPeriodicReader(exporter, sdk.WithInterval(time.Hour))
			provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(resource.NewSchemaless(attribute.String("host.name", host))),
				sdk.WithView(sdk.NewView(sdk.Instrument{Name: "m.exp"}, sdk.Stream{Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 20, MaxScale: 3}})))
			meter := provider.Meter("")
			counter, _ := meter.Int64Counter("m.count")
			gauge, _ := meter.Float64Gauge("m.gauge")
			hist, _ := meter.Float64Histogram("m.hist", metric.WithExplicitBucketBoundaries(1, 10))
			exp, _ := meter.Float64Histogram("m.exp")
			for round := range 2 {
				counter.Add(t.Context(), 5)
				gauge.Record(t.Context(), 1.5)
				hist.Record(t.Context(), 3)
				exp.Record(t.Context(), 4)
				if round == 1 { // each of the first writes fails
					r.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Times(2))
				}
				if err := provider.ForceFlush(t.Context()); err != nil {
					t.Errorf("%s, deltas %v: %v", protocol, deltas, err)
				}
			}
			all := map[string]string{}
			for p, err := range r.repository(t, "host", acme).Range(t.Context(), tsdb.NewEntity(host), tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				for name, v := range p.Value.All() {
					all[name] += v.String() + " "
				}
			}
			want := map[string]string{"m.gauge": "1.5 1.5 ", "m.count:total": "5i 10i ", "m.hist:count": "1u 2u ", "m.hist:le:1": "0u 0u ", "m.hist:le:10": "1u 2u ", "m.hist:sum": "3 6 ", "m.exp:count": "1u 2u ", "m.exp:scale": "3i 3i "}
			if deltas {
				want = map[string]string{"m.gauge": "1.5 1.5 ", "m.count:delta": "5i 5i ", "m.hist:delta:count": "1u 1u ", "m.hist:delta:le:10": "1u 1u ", "m.exp:delta:sum": "4 4 "}
			}
			for name, values := range want {
				if got := all[name]; got != values && got != reversed(values) {
					t.Errorf("%s, deltas %v: %s is %q, want %q; all: %v", protocol, deltas, name, got, values, all)
				}
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// reversed returns the words in the opposite order: newest first.
func reversed(words string) string {
	out := ""
	for _, w := range strings.Fields(words) {
		out = w + " " + out
	}
	return out
}

// call exports one request over gRPC with a token.
func call(t *testing.T, conn *grpc.ClientConn, token string, m *collectorpb.ExportMetricsServiceRequest) (*collectorpb.ExportMetricsServiceResponse, error) {
	t.Helper()
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
	}
	return collectorpb.NewMetricsServiceClient(conn).Export(ctx, m)
}

// TestOTLPOverGRPC: codes, partial success, and RetryInfo exactly where a retry helps.
func TestOTLPOverGRPC(t *testing.T) {
	limitsFile := write(t, `{"overrides": {"acme2": {"points_per_second": 1, "points_burst": 2}}}`)
	r := newOTLP(t, ample, "-limits", limitsFile)
	conn, err := grpc.NewClient(r.listenGRPC(t), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	good := request(gauge("m.g", number(1)))
	got, err := call(t, conn, "Bearer secret", request(gauge("m.g", number(1)), gauge("other", number(1))))
	if err != nil || got.GetPartialSuccess().GetRejectedDataPoints() != 1 {
		t.Errorf("in part: %v, %v", got, err)
	}
	r.stored(t, "host", acme, start, "{m.g=1i}", "a")
	hosts := func(n int) *collectorpb.ExportMetricsServiceRequest {
		m := request()
		for i := range n {
			p := number(1)
			p.TimeUnixNano += uint64(i)
			m.ResourceMetrics[0].ScopeMetrics[0].Metrics = append(m.ResourceMetrics[0].ScopeMetrics[0].Metrics, gauge("m.g", p))
		}
		return m
	}
	large := hosts(30_000) // more than 1 MiB
	for _, tt := range []struct {
		name, token string
		m           *collectorpb.ExportMetricsServiceRequest
		code        codes.Code
		retry       bool
	}{
		{"empty", "Bearer secret", &collectorpb.ExportMetricsServiceRequest{}, codes.OK, false},
		{"no token", "", good, codes.Unauthenticated, false},
		{"wrong", "Bearer x", good, codes.Unauthenticated, false},
		{"basic", "Basic eDpzZWNyZXQ=", good, codes.Unauthenticated, false},
		{"too large", "Bearer secret", large, codes.ResourceExhausted, false},
		{"as the burst", "Bearer other", hosts(2), codes.OK, false},
		{"too soon", "Bearer other", hosts(2), codes.ResourceExhausted, true},
		{"more than the burst", "Bearer other", hosts(3), codes.ResourceExhausted, false},
		{"a fault of the store", "Bearer secret", good, codes.Unavailable, true},
	} {
		if tt.code == codes.Unavailable {
			r.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Times(1))
		}
		_, err := call(t, conn, tt.token, tt.m)
		st := status.Convert(err)
		retry := false
		for _, d := range st.Details() {
			info, ok := d.(*errdetails.RetryInfo)
			retry = retry || ok && info.GetRetryDelay().AsDuration() > 0
		}
		if st.Code() != tt.code || retry != tt.retry {
			t.Errorf("%s: %v, RetryInfo %v; want %v, %v", tt.name, err, retry, tt.code, tt.retry)
		}
	}
}

// TestOTLPWhileTheStoreIsDown: in two minutes without the store, clients that retry get an answer each time, memory
// stays bounded, and afterwards every data point is stored.
func TestOTLPWhileTheStoreIsDown(t *testing.T) {
	clients, perRequest := 10, 200/testkit.Stride(4)
	mapping := write(t, otlpMap)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, app.Bounds{Body: 1 << 20, Requests: 8, Timeout: 10 * time.Second}, "-key", "cpu=host", "-routes", mapping, "-max-future", "0") // the test's clock begins in 2000
		before := heap()
		end := r.conn.Outage()
		down := time.Now()
		var answers atomic.Int64
		var all sync.WaitGroup
		for client := range clients {
			m := request()
			for n := range perRequest {
				p := number(client, attr("n", "x"))
				p.TimeUnixNano = at + uint64(client*perRequest+n)
				m.ResourceMetrics[0].ScopeMetrics[0].Metrics = append(m.ResourceMetrics[0].ScopeMetrics[0].Metrics, gauge("m.g", p))
			}
			all.Go(func() {
				for {
					begin := time.Now()
					got, response := r.send(t, m)
					switch {
					case got.Code == 200 && response.PartialSuccess == nil && time.Since(down) >= 2*time.Minute:
						return
					case got.Code != 503 || got.Header().Get("Retry-After") == "" || time.Since(begin) > 15*time.Second:
						t.Errorf("status %d after %v, %v", got.Code, time.Since(begin), response.PartialSuccess)
						return
					}
					answers.Add(1)
					time.Sleep(time.Second)
				}
			})
		}
		most := before
		for range 12 {
			time.Sleep(10 * time.Second)
			most = max(most, heap())
		}
		refused := answers.Load()
		end()
		all.Wait()
		t.Logf("%d answers in the outage; the heap grew by %d KiB at most; all stored %v after it", refused, (most-before)>>10, time.Since(down)-2*time.Minute)
		if most > before+16<<20 {
			t.Errorf("the heap grew from %d to %d MiB", before>>20, most>>20)
		}
		stored := 0
		for _, err := range r.repository(t, "host", acme).Range(t.Context(), tsdb.NewEntity("a"), tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			stored++
		}
		if stored != clients*perRequest {
			t.Errorf("%d points are stored, want %d", stored, clients*perRequest)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
