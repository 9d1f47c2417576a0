package main

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// exponential has one exponential histogram.
func exponential(name string, counts []uint64) *metricspb.Metric {
	p := &metricspb.ExponentialHistogramDataPoint{TimeUnixNano: at, Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{BucketCounts: counts}}
	for _, n := range counts {
		p.Count += n
	}
	return &metricspb.Metric{Name: name, Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{
		AggregationTemporality: cumulative, DataPoints: []*metricspb.ExponentialHistogramDataPoint{p},
	}}}
}

// TestOTLPHostileDataPoints: data points with very many or very long parts are refused in little time and memory, and
// described in a short text.
func TestOTLPHostileDataPoints(t *testing.T) {
	r := newOTLP(t, app.Bounds{Body: 25 << 20, Requests: 4, Timeout: time.Minute})
	quantiles := &metricspb.SummaryDataPoint{TimeUnixNano: at}
	for i := range 50_000 {
		quantiles.QuantileValues = append(quantiles.QuantileValues, &metricspb.SummaryDataPoint_ValueAtQuantile{Quantile: float64(i), Value: math.Inf(1)})
	}
	bounds := make([]float64, 100_000)
	for i := range bounds {
		bounds[i] = float64(i)
	}
	many := make([]*metricspb.NumberDataPoint, 1000)
	for i := range many {
		many[i] = number(i, attr("cpu", i))
	}
	long := strings.Repeat("x", 1<<20)
	longAttribute := request(gauge("all.g", many...))
	longAttribute.ResourceMetrics[0].Resource.Attributes = append(longAttribute.ResourceMetrics[0].Resource.Attributes, attr(long, "x"))
	manyAttributes := request(gauge("all.g", many...))
	for i := range 100 {
		manyAttributes.ResourceMetrics[0].Resource.Attributes = append(manyAttributes.ResourceMetrics[0].Resource.Attributes, attr(fmt.Sprint(i, long[:200]), long[:1000]))
	}
	for _, tt := range []struct {
		name    string
		request *collectorpb.ExportMetricsServiceRequest
		refused int64
		why     string
	}{
		{"infinite quantiles", request(&metricspb.Metric{Name: "m.s", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{quantiles}}}}), 1, "m.s:q:0 is +Inf"},
		{"bounds", request(histogram("m.h", cumulative, &metricspb.HistogramDataPoint{BucketCounts: make([]uint64, len(bounds)+1), ExplicitBounds: bounds})), 1, "100000 bounds"},
		{"buckets", request(exponential("m.e", make([]uint64, 100_000))), 1, "100000 buckets"},
		{"a long name of a metric", request(gauge("m."+long, number(math.NaN()))), 1, "its metric's name has 1048578 bytes"},
		{"a long name of an attribute", longAttribute, 1000, "the name of the attribute \"resource.xxx"},
		{"attributes of the resource", manyAttributes, 1000, ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		got, response := r.send(t, tt.request)
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		if p := response.GetPartialSuccess(); got.Code != 200 || p.GetRejectedDataPoints() != tt.refused || !strings.Contains(p.GetErrorMessage(), tt.why) {
			t.Errorf("%s: status %d, %d refused, %.500s", tt.name, got.Code, p.GetRejectedDataPoints(), p.GetErrorMessage())
		}
		if most := 5 * time.Second; took > most {
			t.Errorf("%s: %v, want less than %v", tt.name, took, most)
		}
		if most := 16 << 10; got.Body.Len() > most {
			t.Errorf("%s: the response has %d bytes, want less than %d", tt.name, got.Body.Len(), most)
		}
		if n := (after.Sys - before.Sys) >> 20; n > 200 {
			t.Errorf("%s: %d MB more memory", tt.name, n)
		}
	}
}

// TestOTLPManyNumbers: a list of numbers that takes more memory than bytes is refused before it is decoded.
func TestOTLPManyNumbers(t *testing.T) {
	testkit.Plain(t)
	r := newOTLP(t, app.Bounds{Body: 25 << 20, Requests: 4, Timeout: time.Minute})
	got, _ := r.send(t, request(exponential("m.e", make([]uint64, 20<<20))))
	if got.Code != 413 {
		t.Errorf("protobuf: status %d, want 413", got.Code)
	}
	body := `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m.h","histogram":{"dataPoints":[{"explicitBounds":[0` + strings.Repeat(",0", 12<<20) + `]}]}}]}]}]}`
	if got := r.post("/v1/metrics", body, func(req *http.Request) { req.Header.Set("Content-Type", jsonType) }); got.Code != 413 {
		t.Errorf("JSON: status %d, want 413", got.Code)
	}
}

// TestOTLPNumbersOfDataPoints: a refused data point is named by its number in the request, also behind one without a
// value.
func TestOTLPNumbersOfDataPoints(t *testing.T) {
	r := newOTLP(t, ample)
	gap := number(nil)
	gap.Flags = uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	_, response := r.send(t, request(gauge("m.g", gap, gap, number(math.NaN()))))
	if p := response.GetPartialSuccess(); !strings.HasPrefix(p.GetErrorMessage(), "data point 3,") {
		t.Errorf("%v, want data point 3", p)
	}
}
