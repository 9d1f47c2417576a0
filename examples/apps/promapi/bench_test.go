package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// BenchmarkRemoteWrite sends requests of 2,000 samples, as Prometheus does, one per series.
func BenchmarkRemoteWrite(b *testing.B) {
	const perRequest = 2000
	limits := someLimits
	limits.body = 16 << 20 // as -max-body is by default
	s := open(b, limits, embedded.Options{}, tsdb.WriterOptions{})
	var requests [][]byte
	for r := range 64 {
		var series []prompb.TimeSeries
		for i := range perRequest {
			ts := line(fmt.Sprintf("metric_%d_total", i%50), []string{"instance", fmt.Sprintf("host-%d:9100", i/50), "job", "node", "mode", "idle"}, float64(i))
			ts.Samples[0].Timestamp += int64(r) * 15_000
			series = append(series, ts)
		}
		requests = append(requests, message(&prompb.WriteRequest{Timeseries: series}))
	}
	var next atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if w := s.write("a", writeV1, requests[next.Add(1)%int64(len(requests))]); w.Code != http.StatusNoContent {
				b.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
	b.ReportMetric(float64(b.N*perRequest)/b.Elapsed().Seconds(), "samples/s")
	reportRSS(b)
}

// reportRSS reports the most memory that the process has had.
func reportRSS(b *testing.B) {
	var usage syscall.Rusage
	if runtime.GOOS == "linux" && syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		b.ReportMetric(float64(usage.Maxrss)/1024, "MiB-peak")
	}
}

// BenchmarkRate queries rate[5m] of 100 trucks for an hour, in steps of 15 seconds, from a point every ten seconds: of
// series that remote write stored, and of a field of a JSON dataset.
func BenchmarkRate(b *testing.B) {
	const perTruck = 430
	s := mappedOver(b, someLimits, truckData)
	for i := range 100 {
		ts := line("distance_total", []string{"fleet", []string{"East", "West"}[i%2], "truck", fmt.Sprint(i)})
		var points []tsdb.Point[reading]
		for j := range perTruck {
			at := start0 + int64(j)*10_000
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: at, Value: float64(j * i)})
			points = append(points, truckPoint([]string{"East", "West"}[i%2], fmt.Sprint("truck_", i), at, "Andy", 50))
		}
		s.put("a", ts)
		putPoints(b, s, truckData, acme, points...)
	}
	for _, metric := range []string{"distance_total", "trucks_odometer", `trucks_odometer{fleet="East"}`} {
		b.Run(metric, func(b *testing.B) {
			path := "/api/v1/query_range?query=" + url.QueryEscape("rate("+metric+"[5m])") + "&start=" + at(600) + "&end=" + at(4200) + "&step=15"
			for b.Loop() {
				if w := s.send(httptest.NewRequest(http.MethodGet, path, nil), "a"); w.Code != http.StatusOK || w.Body.Len() < 100_000 {
					b.Fatal(w.Code, w.Body)
				}
			}
			reportRSS(b)
		})
	}
}

// BenchmarkSeries lists 10,000 series that are in the cache.
func BenchmarkSeries(b *testing.B) {
	s := plain(b)
	for part := range 10 {
		var series []prompb.TimeSeries
		for i := range 1000 {
			series = append(series, line("up", []string{"instance", fmt.Sprint("host-", part*1000+i)}, 1))
		}
		s.put("a", series...)
	}
	for b.Loop() {
		if w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/series?match[]=up", nil), "a"); w.Code != http.StatusOK || w.Body.Len() < 10_000 {
			b.Fatal(w.Code, w.Body)
		}
	}
}
