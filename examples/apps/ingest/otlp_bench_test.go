package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// benchPoints is how many data points a request of BenchmarkOTLP has.
const benchPoints = 1000

// benchRequest has a gauge of each of 1,000 CPUs, at another time in each call.
func benchRequest(name string, round int) *collectorpb.ExportMetricsServiceRequest {
	m := request()
	metric := gauge(name)
	for i := range benchPoints {
		p := number(float64(i), attr("cpu", i))
		p.TimeUnixNano = at + uint64(round)*uint64(time.Second)
		metric.GetGauge().DataPoints = append(metric.GetGauge().DataPoints, p)
	}
	m.ResourceMetrics[0].ScopeMetrics[0].Metrics = append(m.ResourceMetrics[0].ScopeMetrics[0].Metrics, metric)
	return m
}

// BenchmarkOTLP stores data points over one connection, with requests of 1,000 one after the other: by hand with the
// official client, which makes one row for each data point and checks nothing, and with this service, into a dataset
// with a hash, into one that merges, and through a journal.
func BenchmarkOTLP(b *testing.B) {
	run := func(b *testing.B, send func(round int)) {
		round := 0
		b.ReportAllocs()
		for b.Loop() {
			round++
			send(round)
		}
		b.ReportMetric(float64(b.N)*benchPoints/b.Elapsed().Seconds(), "points/s")
	}
	post := func(b *testing.B, metric string, handler http.Handler) func(int) {
		web := httptest.NewServer(handler)
		b.Cleanup(web.Close)
		return func(round int) {
			body, _ := proto.Marshal(benchRequest(metric, round))
			req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, web.URL+"/v1/metrics", bytes.NewReader(body))
			req.Header.Set("Content-Type", protobufType)
			req.Header.Set("Authorization", "Bearer secret")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 200 || len(text) > 0 {
				b.Fatalf("status %d: %s", res.StatusCode, text)
			}
		}
	}
	b.Run("http/raw", func(b *testing.B) { run(b, post(b, "raw", rawReceiver(b))) })
	for _, way := range []struct {
		name, metric string
		journal      bool
	}{{"hash", "hash.g", false}, {"merge", "all.g", false}, {"hash-journal", "hash.g", true}, {"merge-journal", "all.g", true}} {
		open := func(b *testing.B) *rig {
			args := []string{"-routes", write(b, hashMap), "-key", "cpu=host"}
			if way.journal {
				args = append(args, "-journal", b.TempDir())
			}
			return newRig(b, ample, args...)
		}
		b.Run("http/"+way.name, func(b *testing.B) { run(b, post(b, way.metric, open(b).handler)) })
		b.Run("grpc/"+way.name, func(b *testing.B) {
			conn, err := grpc.NewClient(open(b).listenGRPC(b), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			client := collectorpb.NewMetricsServiceClient(conn)
			ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer secret")
			run(b, func(round int) {
				if res, err := client.Export(ctx, benchRequest(way.metric, round)); err != nil || res.GetPartialSuccess() != nil {
					b.Fatal(res, err)
				}
			})
		})
	}
}

// rawReceiver is the least that a program without Tidemark needs.
func rawReceiver(b *testing.B) http.Handler {
	_, conn := tsdbtest.Open(b, tsdbtest.Options{})
	client, admin := tsdbtest.Clients(b, conn)
	if err := admin.CreateTableFromConf(b.Context(), &bigtable.TableConf{TableID: "raw", Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(1)}}); err != nil {
		b.Fatal(err)
	}
	table := client.Open("raw")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m := &collectorpb.ExportMetricsServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, m)
		}
		var keys []string
		var rows []*bigtable.Mutation
		for _, rm := range m.GetResourceMetrics() {
			for _, sm := range rm.GetScopeMetrics() {
				for _, metric := range sm.GetMetrics() {
					for _, p := range metric.GetGauge().GetDataPoints() {
						row := bigtable.NewMutation()
						row.Set("f", metric.GetName(), bigtable.Now(), fmt.Append(nil, p.GetAsDouble()))
						keys = append(keys, fmt.Sprintf("acme#a#%d#%d", p.GetAttributes()[0].GetValue().GetIntValue(), p.GetTimeUnixNano()))
						rows = append(rows, row)
					}
				}
			}
		}
		if err == nil {
			var errs []error
			if errs, err = table.ApplyBulk(r.Context(), keys, rows); len(errs) > 0 {
				err = errs[0]
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}
