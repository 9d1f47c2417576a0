package main

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	cumulative  = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	delta       = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	unspecified = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_UNSPECIFIED
)

// at is the time of the tests' data points, and begun their start.
var at, begun = uint64(start.UnixNano()), uint64(start.Add(-time.Minute).UnixNano())

func attr(name string, v any) *commonpb.KeyValue {
	kv := &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{}}
	switch v := v.(type) {
	case string:
		kv.Value.Value = &commonpb.AnyValue_StringValue{StringValue: v}
	case int:
		kv.Value.Value = &commonpb.AnyValue_IntValue{IntValue: int64(v)}
	case bool:
		kv.Value.Value = &commonpb.AnyValue_BoolValue{BoolValue: v}
	case []*commonpb.AnyValue:
		kv.Value.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: v}}
	case []*commonpb.KeyValue:
		kv.Value.Value = &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: v}}
	}
	return kv
}

// number is a data point with an int or a float.
func number(v any, attributes ...*commonpb.KeyValue) *metricspb.NumberDataPoint {
	p := &metricspb.NumberDataPoint{Attributes: attributes, StartTimeUnixNano: begun, TimeUnixNano: at}
	switch v := v.(type) {
	case int:
		p.Value = &metricspb.NumberDataPoint_AsInt{AsInt: int64(v)}
	case float64:
		p.Value = &metricspb.NumberDataPoint_AsDouble{AsDouble: v}
	}
	return p
}

func gauge(name string, points ...*metricspb.NumberDataPoint) *metricspb.Metric {
	return &metricspb.Metric{Name: name, Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points}}}
}

func sum(name string, t metricspb.AggregationTemporality, monotonic bool, points ...*metricspb.NumberDataPoint) *metricspb.Metric {
	return &metricspb.Metric{Name: name, Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: t, IsMonotonic: monotonic, DataPoints: points}}}
}

func histogram(name string, t metricspb.AggregationTemporality, p *metricspb.HistogramDataPoint) *metricspb.Metric {
	p.TimeUnixNano, p.StartTimeUnixNano = at, begun
	return &metricspb.Metric{Name: name, Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: t, DataPoints: []*metricspb.HistogramDataPoint{p}}}}
}

// request has the metrics of the host a.
func request(metrics ...*metricspb.Metric) *collectorpb.ExportMetricsServiceRequest {
	return &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource:     &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("host.name", "a"), attr("process.pid", 7)}},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: metrics}},
	}}}
}

// otlpMap is the mapping of most tests.
const otlpMap = "drop resource.process.*\nstore m.* in host by resource.host.name\nstore all.* in every by resource.host.name *\n"

func newOTLP(t *testing.T, l app.Bounds, args ...string) *rig {
	t.Helper()
	return newRig(t, l, append([]string{"-key", "cpu=host", "-routes", write(t, otlpMap)}, args...)...)
}

// send posts a request in protobuf, and returns the response, which has the same encoding.
func (r *rig) send(t *testing.T, m proto.Message, change ...func(*http.Request)) (*httptest.ResponseRecorder, *collectorpb.ExportMetricsServiceResponse) {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := r.post("/v1/metrics", string(body), append([]func(*http.Request){func(req *http.Request) {
		req.Header.Set("Content-Type", protobufType)
		req.Header.Set("Authorization", "Bearer secret")
	}}, change...)...)
	if kind := got.Header().Get("Content-Type"); kind != protobufType {
		t.Errorf("the response has the type %q, want that of the request", kind)
	}
	response := &collectorpb.ExportMetricsServiceResponse{}
	if got.Code == http.StatusOK {
		err = proto.Unmarshal(got.Body.Bytes(), response)
	} else {
		err = proto.Unmarshal(got.Body.Bytes(), &status.Status{})
	}
	if err != nil {
		t.Errorf("the response with status %d: %v", got.Code, err)
	}
	return got, response
}

// TestOTLPFields: each kind of metric has the documented fields.
func TestOTLPFields(t *testing.T) {
	r := newOTLP(t, ample)
	since := fmt.Sprintf("%di", begun)
	two, most := 2.5, 9.0
	for _, tt := range []struct {
		metric *metricspb.Metric
		want   string
	}{
		{gauge("m.g", number(1.5)), "{m.g=1.5}"},
		{gauge("m.g", number(-3)), "{m.g=-3i}"},
		{sum("m.s", cumulative, true, number(7)), "{m.s:start=" + since + " m.s:total=7i}"},
		{sum("m.s", cumulative, false, number(-7)), "{m.s=-7i m.s:start=" + since + "}"},
		{sum("m.s", delta, true, number(2.0)), "{m.s:delta=2 m.s:start=" + since + "}"},
		{sum("m.s", delta, false, number(-2.0)), "{m.s:delta=-2 m.s:start=" + since + "}"},
		{
			histogram("m.h", cumulative, &metricspb.HistogramDataPoint{Count: 6, Sum: &two, Max: &most, BucketCounts: []uint64{1, 2, 3}, ExplicitBounds: []float64{0.5, 10}}),
			"{m.h:count=6u m.h:le:0.5=1u m.h:le:10=3u m.h:max=9 m.h:start=" + since + " m.h:sum=2.5}",
		},
		{histogram("m.h", delta, &metricspb.HistogramDataPoint{Count: 6, Min: &two}), "{m.h:delta:count=6u m.h:delta:min=2.5 m.h:delta:start=" + since + "}"},
		{
			&metricspb.Metric{Name: "m.e", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{
				AggregationTemporality: cumulative,
				DataPoints: []*metricspb.ExponentialHistogramDataPoint{{
					TimeUnixNano: at, Count: 7, ZeroCount: 1, Scale: -1, ZeroThreshold: 0.25,
					Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: -2, BucketCounts: []uint64{1, 0, 3}},
					Negative: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: 4, BucketCounts: []uint64{2}},
				}},
			}}},
			`{m.e:count=7u m.e:negative="4:2" m.e:positive="-2:1,0,3" m.e:scale=-1i m.e:zero_threshold=0.25 m.e:zeros=1u}`,
		},
		{
			&metricspb.Metric{Name: "m.q", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{{
				TimeUnixNano: at, Count: 4, Sum: 9,
				QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.5, Value: 2}, {Quantile: 1, Value: math.NaN()}},
			}}}}},
			"{m.q:count=4u m.q:q:0.5=2 m.q:sum=9}",
		},
	} {
		got, response := r.send(t, request(tt.metric))
		if got.Code != 200 || response.PartialSuccess != nil {
			t.Errorf("%v: status %d, %v", tt.metric, got.Code, response)
		}
		r.stored(t, "host", acme, start, tt.want, "a")
		if err := r.repository(t, "host", acme).Delete(t.Context(), tsdb.NewEntity("a"), start); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOTLPRefused: each data point that can never be stored is counted and described, and the others are stored.
func TestOTLPRefused(t *testing.T) {
	r := newOTLP(t, ample)
	early, none, old := number(1), number(1), number(1)
	none.TimeUnixNano, early.TimeUnixNano, old.StartTimeUnixNano = 0, 1, at+1
	many := number(1)
	for i := range maxAttributes {
		many.Attributes = append(many.Attributes, attr(fmt.Sprint(i), "x"))
	}
	deep := attr("d", "x").Value
	for range maxAttributeDepth {
		deep = attr("d", []*commonpb.AnyValue{deep}).Value
	}
	nested := number(1, &commonpb.KeyValue{Key: "deep", Value: deep})
	hist := func(count uint64, counts []uint64, bounds ...float64) *metricspb.Metric {
		return histogram("m.h", cumulative, &metricspb.HistogramDataPoint{Count: count, BucketCounts: counts, ExplicitBounds: bounds})
	}
	for _, tt := range []struct {
		metric *metricspb.Metric
		why    string
	}{
		{gauge("other", number(1)), `of "other": no line of the mapping stores this metric`},
		{gauge("", number(1)), "no name"},
		{gauge("m.g", number(nil)), "no value"},
		{gauge("m.g", number(math.NaN())), "NaN"},
		{gauge("m.g", number(math.Inf(1))), "Inf"},
		{gauge("m.g", none), "its time is 0"},
		{gauge("m.g", old), ""}, // a gauge has no start
		{sum("m.s", cumulative, true, old), "its start is after its time"},
		{sum("m.s", unspecified, true, number(1)), "temporality"},
		{sum("m.s", delta, true, number(-1)), "negative"},
		{gauge("m.g", number(1, attr("x", "1"), attr("x", "2"))), `the tag "x" comes twice`},
		{gauge("m.g", number(1, attr("x", nil))), "no value"},
		{gauge("m.g", many), "more than 128 attributes"},
		{gauge("m.g", nested), "nested more than 8 deep"},
		{gauge("tag:m", number(1)), "no line"},
		{hist(3, []uint64{1, 2}), "2 buckets and 0 bounds"},
		{hist(3, []uint64{1, 1, 1}, 2, 1), "do not ascend"},
		{hist(4, []uint64{1, 1, 1}, 1, 2), "hold 3 values, and its count is 4"},
		{hist(2, []uint64{1, math.MaxUint64, 2}, 1, 2), "more values than its count of 2"},
	} {
		got, response := r.send(t, request(tt.metric, gauge("m.good", number(1))))
		switch p := response.PartialSuccess; {
		case got.Code != 200:
			t.Errorf("%v: status %d; %s", tt.metric, got.Code, got.Body)
		case tt.why == "" && p != nil:
			t.Errorf("%v is refused: %v", tt.metric, p)
		case tt.why != "" && (p.GetRejectedDataPoints() != 1 || !strings.Contains(p.GetErrorMessage(), tt.why)):
			t.Errorf("%v: %v, want one refused data point and %q", tt.metric, p, tt.why)
		}
	}
	_, response := r.send(t, &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{gauge("m.g", number(1), number(2))}}},
	}}})
	if p := response.PartialSuccess; p.GetRejectedDataPoints() != 2 || !strings.Contains(p.GetErrorMessage(), `the tag "resource.host.name" is missing`) {
		t.Errorf("a resource without the key: %v", p)
	}
	r.stored(t, "host", acme, start, "{m.g=1i m.good=1i}", "a")
}

// TestOTLPSeriesThatMeet: two series that differ only in an attribute outside the key must not become one. With all
// attributes in the key they are two, and metrics of one series and time are one point.
func TestOTLPSeriesThatMeet(t *testing.T) {
	r := newOTLP(t, ample)
	_, response := r.send(t, request(gauge("m.g", number(1, attr("cpu", 0)), number(2, attr("cpu", 1)))))
	if p := response.PartialSuccess; p.GetRejectedDataPoints() != 1 || !strings.Contains(p.GetErrorMessage(), `data point 2, of "m.g": its tag "cpu" is "1", and "0" on data point 1`) {
		t.Errorf("in one request: %v", p)
	}
	_, response = r.send(t, request(gauge("m.g", number(2, attr("cpu", 1)))))
	if p := response.PartialSuccess; p.GetRejectedDataPoints() != 1 {
		t.Errorf("in two requests: %v", p)
	}
	r.stored(t, "host", acme, start, `{m.g=1i tag:cpu="0"}`, "a")
	list := attr("list", []*commonpb.AnyValue{attr("", "x").Value, attr("", true).Value})
	pairs := attr("map", []*commonpb.KeyValue{attr("b", 1), attr("a", "y")})
	got, response := r.send(t, request(gauge("all.g", number(1, attr("cpu", 0)), number(2, attr("cpu", 1)), number(3, list, pairs)), gauge("all.h", number(4, attr("cpu", 0)))))
	if got.Code != 200 || response.PartialSuccess != nil {
		t.Errorf("with all attributes in the key: %v", response)
	}
	r.stored(t, "every", acme, start, "{all.g=1i all.h=4i}", "a", "cpu=0")
	r.stored(t, "every", acme, start, "{all.g=2i}", "a", "cpu=1")
	r.stored(t, "every", acme, start, "{all.g=3i}", "a", `list=["x"\,true],map={"a":"y"\,"b":1}`)
	// The scope and the resource are part of a series, too.
	scoped := request(gauge("all.g", number(5)))
	scoped.ResourceMetrics[0].ScopeMetrics[0].Scope = &commonpb.InstrumentationScope{Name: "lib", Version: "1", Attributes: []*commonpb.KeyValue{attr("x", "y")}}
	scoped.ResourceMetrics[0].Resource.Attributes = append(scoped.ResourceMetrics[0].Resource.Attributes, attr("zone", "z"))
	r.send(t, scoped)
	r.stored(t, "every", acme, start, "{all.g=5i}", "a", "resource.zone=z,scope.name=lib,scope.version=1,scope.x=y")
}

// TestOTLPWithoutValues: a data point that says that it has no value, and a request without data points, are accepted.
func TestOTLPWithoutValues(t *testing.T) {
	r := newOTLP(t, ample)
	gap := number(nil)
	gap.Flags = uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	for name, m := range map[string]*collectorpb.ExportMetricsServiceRequest{
		"no resource": {}, "no scope": {ResourceMetrics: []*metricspb.ResourceMetrics{{}}}, "no metric": request(), "no data": request(&metricspb.Metric{Name: "m.x"}), "a gap": request(gauge("m.g", gap)),
	} {
		if got, response := r.send(t, m); got.Code != 200 || got.Body.Len() > 0 {
			t.Errorf("%s: status %d, %v", name, got.Code, response)
		}
	}
	if _, rep, _ := r.sum(); rep.lines != 0 || rep.blank != 1 || rep.points != 0 {
		t.Errorf("the report is %+v", rep)
	}
	r.stored(t, "host", acme, start, "", "a")
}

// TestOTLPOfALaterKind: a metric of a kind that this version does not know is refused, and not taken for an empty one.
func TestOTLPOfALaterKind(t *testing.T) {
	r := newOTLP(t, ample)
	later := &metricspb.Metric{Name: "m.later"}
	later.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), []byte{0x0a, 0}))
	_, got := r.send(t, request(gauge("m.g", number(1)), later, &metricspb.Metric{Name: "m.empty"}))
	if p := got.GetPartialSuccess(); p.GetRejectedDataPoints() != 1 || !strings.Contains(p.GetErrorMessage(), "m.later") {
		t.Errorf("partial success %v, want that m.later is refused", p)
	}
	r.stored(t, "host", acme, start, "{m.g=1i}", "a")
}

// TestOTLPOverHTTP: encodings, tokens, sizes and other statuses.
func TestOTLPOverHTTP(t *testing.T) {
	small := ample
	small.Body = 4096
	r := newOTLP(t, small)
	m := request(gauge("m.g", number(1)))
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	isJSON := func(req *http.Request) { req.Header.Set("Content-Type", "application/json; charset=utf-8") }
	unknown := strings.Replace(string(text), "{", `{"unknownField":[{"x":1}],`, 1)
	exemplar := `{"resourceMetrics":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"b"}}]},"scopeMetrics":[{"metrics":[{"name":"m.g","sum":{"aggregationTemporality":2,"dataPoints":[{"asInt":"3","timeUnixNano":"1767225600000000000","exemplars":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","asInt":1}]}]}}]}]}]}`
	for name, body := range map[string]string{"as it is": string(text), "with unknown fields": unknown, "with integers as enums, and exemplars": exemplar} {
		got := r.post("/v1/metrics", body, isJSON)
		want(t, "JSON "+name, got, 200, "{}")
		if kind := got.Header().Get("Content-Type"); kind != jsonType {
			t.Errorf("the response has the type %q", kind)
		}
	}
	r.stored(t, "host", acme, start, "{m.g=1i}", "a")
	r.stored(t, "host", acme, start, "{m.g=3i}", "b")
	partial := strings.Replace(string(text), "m.g", "other", 1)
	want(t, "JSON in part", r.post("/v1/metrics", partial, isJSON), 200, `"rejectedDataPoints":"1"`)
	micros := strings.Replace(exemplar, "1767225600000000000", "1767225600000000", 1)
	want(t, "a time in another unit", r.post("/v1/metrics", micros, isJSON), 200, `"rejectedDataPoints":"1"`,
		"the time 1767225600000000 read as ns is 1970-01-21T10:53:45.6Z, before 2000-01-01T00:00:00Z, which is -not-before; as us it is 2026-01-01T00:00:00Z")

	raw, _ := proto.Marshal(m)
	isProto := func(req *http.Request) { req.Header.Set("Content-Type", protobufType) }
	for _, tt := range []struct {
		name, body string
		change     []func(*http.Request)
		status     int
		text       string
	}{
		{"gzip", packed(string(raw)), []func(*http.Request){isProto, isGzip}, 200, ""},
		{"no gzip", string(raw), []func(*http.Request){isProto, isGzip}, 400, "gzip"},
		{"another encoding", string(raw), []func(*http.Request){isProto, func(r *http.Request) { r.Header.Set("Content-Encoding", "br") }}, 415, "encoding"},
		{"no type", string(raw), nil, 415, "Content-Type"},
		{"another type", string(raw), []func(*http.Request){func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}, 415, "Content-Type"},
		{"no protobuf", "nonsense", []func(*http.Request){isProto}, 400, "not an ExportMetricsServiceRequest"},
		{"no JSON", "nonsense", []func(*http.Request){isJSON}, 400, "not an ExportMetricsServiceRequest"},
		{"too large", strings.Repeat("x", 5000), []func(*http.Request){isProto}, 413, "-max-body"},
		{"too large when unpacked", packed(strings.Repeat("x", 5000)), []func(*http.Request){isProto, isGzip}, 413, "-max-body"},
		{"no token", string(raw), []func(*http.Request){isProto, func(r *http.Request) { r.Header.Del("Authorization") }}, 401, "token"},
		{"a wrong token", string(raw), []func(*http.Request){isProto, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }}, 401, "token"},
	} {
		got := r.post("/v1/metrics", tt.body, tt.change...)
		if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.text) {
			t.Errorf("%s: status %d %q, want %d and %q", tt.name, got.Code, got.Body, tt.status, tt.text)
		}
	}
	if got := r.get("/v1/metrics"); got.Code != 405 {
		t.Errorf("GET: %d", got.Code)
	}
}

// TestOTLPManySmallMessages: a small body that would take much memory when it is decoded is refused before that.
func TestOTLPManySmallMessages(t *testing.T) {
	r := newOTLP(t, app.Bounds{Body: 25 << 20, Requests: 4, Timeout: time.Minute})
	empty := bytes.Repeat([]byte{0x0a, 0}, maxMessages+1) // ResourceMetrics without anything
	got := r.post("/v1/metrics", packed(string(empty)), isGzip, func(req *http.Request) { req.Header.Set("Content-Type", protobufType) })
	if got.Code != 413 || !strings.Contains(got.Body.String(), "1000000 messages") {
		t.Errorf("status %d %q, want 413", got.Code, got.Body)
	}
	// With a small -max-body, fewer messages fit: a request that never fits must not be asked for again.
	r = newOTLP(t, app.Bounds{Body: 1 << 20, Requests: 4, Timeout: time.Minute})
	got = r.post("/v1/metrics", strings.Repeat("{", r.maxMessages()+1), func(req *http.Request) { req.Header.Set("Content-Type", jsonType) })
	if got.Code != 413 {
		t.Errorf("JSON: status %d, want 413", got.Code)
	}
	if !r.memory.Take(acme, 1) {
		t.Error("the memory was not released")
	}
}

// FuzzOTLP: no body makes the server panic, and each is answered.
func FuzzOTLP(f *testing.F) {
	m := request(gauge("m.g", number(1, attr("x", []*commonpb.KeyValue{attr("y", 1)}))), sum("m.s", delta, true, number(2.5)), histogram("m.h", cumulative, &metricspb.HistogramDataPoint{Count: 1, BucketCounts: []uint64{1}}))
	raw, _ := proto.Marshal(m)
	text, _ := protojson.Marshal(m)
	f.Add(raw, false)
	f.Add(text, true)
	r := newRig(f, ample, "-routes", "otlp.map", "-key", "cpu=host")
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		if len(body) > 4096 {
			return
		}
		n, err := countMessages(body, isJSON, maxMessages)
		response, fail := r.export(t.Context(), acme, body, isJSON)
		if fail == nil && (err != nil || response == nil || n < 0) {
			t.Fatalf("accepted with %v", err)
		}
	})
}
