package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestManyEmptyParts: a message of empty parts takes many times its size in memory when it is parsed. It is refused
// before that, and the memory that it held is free again.
func TestManyEmptyParts(t *testing.T) {
	s := plain(t)
	of := func(field byte, n int) []byte { return bytes.Repeat([]byte{field<<3 | 2, 0}, n) }
	in := func(field, inner byte) []byte {
		part := of(inner, 500_000)
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(part))), part...)
	}
	for name, tt := range map[string]struct {
		path, kind string
		message    []byte
	}{
		"series":               {"write", writeV1, of(1, 500_000)},
		"metadata":             {"write", writeV1, of(3, 500_000)},
		"labels":               {"write", writeV1, in(1, 1)},
		"samples":              {"write", writeV1, in(1, 2)},
		"histograms":           {"write", writeV1, in(1, 4)},
		"series, version 2":    {"write", writeV2, of(5, 500_000)},
		"symbols, version 2":   {"write", writeV2, of(4, 500_000)},
		"exemplars, version 2": {"write", writeV2, in(5, 4)},
		"queries of a read":    {"read", "", of(1, 500_000)},
		"matchers of a read":   {"read", "", in(1, 3)},
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/"+tt.path, bytes.NewReader(snappy.Encode(nil, tt.message)))
		r.Header.Set("Content-Type", protobufType+";proto="+tt.kind)
		if w := s.send(r, "a"); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d, want 413", name, w.Code)
		}
	}
	if !s.memory.Take(acme, bodies*someLimits.body) {
		t.Error("memory is still held")
	}
}

// TestHistogramThreshold: PromQL would add histograms for ever if the width of their zero bucket were not a number.
func TestHistogramThreshold(t *testing.T) {
	for _, threshold := range []float64{math.NaN(), -1, math.Inf(1)} {
		for _, h := range []prompb.Histogram{
			prompb.FromIntHistogram(start0, &histogram.Histogram{ZeroThreshold: threshold}),
			prompb.FromFloatHistogram(start0, &histogram.FloatHistogram{ZeroThreshold: threshold}),
		} {
			ts := line("m", nil)
			ts.Histograms = append(ts.Histograms, h)
			if w := plain(t).write("a", writeV1, one(ts)); w.Code != http.StatusBadRequest {
				t.Errorf("zero threshold %v: %d, want 400", threshold, w.Code)
			}
		}
	}
}

// TestEmptyLabels: a label without a value is as good as none, so that a series is not stored twice.
func TestEmptyLabels(t *testing.T) {
	s := plain(t)
	s.put("a", line("m", []string{"b", "1"}, 1), line("m", []string{"a", "", "b", "1"}, 2))
	if _, got := s.get("series", "match[]", "m"); got != `{"status":"success","data":[{"__name__":"m","b":"1"}]}` {
		t.Errorf("series %s, want one without the empty label", got)
	}
	if w := s.write("a", writeV1, one(prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__"}}, Samples: []prompb.Sample{{Timestamp: start0}}})); w.Code != http.StatusBadRequest {
		t.Errorf("a series with an empty name: %d, want 400", w.Code)
	}
}

// TestPointThatIsNeverAccepted: a sender must not try again what the tenant's limits never allow, because it would do
// so for ever.
func TestPointThatIsNeverAccepted(t *testing.T) {
	table, err := limit.Parse([]byte(`{"defaults": {"point_bytes": 100}}`))
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := limit.New(table, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, someLimits, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}}, tsdb.WriterOptions{})
	large := line("m", nil)
	large.Exemplars = []prompb.Exemplar{{Timestamp: start0, Labels: []prompb.Label{{Name: "trace_id", Value: strings.Repeat("1", 200)}}}}
	w := s.write("a", writeV1, message(&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{large, line("good", nil, 1)}}))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "point_bytes") {
		t.Errorf("%d %s, want 400 with the limit", w.Code, w.Body)
	}
	if _, got := s.get("label/__name__/values"); !strings.Contains(got, "good") {
		t.Errorf("stored %s, want the good series", got)
	}
}

// TestStepsOverAllTime: the number of steps is bounded for intervals that no time.Duration holds, too.
func TestStepsOverAllTime(t *testing.T) {
	if status, got := plain(t).get("query_range", "query", "1", "start", "-9e12", "end", "9e12", "step", "900000"); status != http.StatusBadRequest {
		t.Errorf("%d %s, want 400", status, got)
	}
}

// TestErasedTenantOfWritesAndReads: writes and remote reads find out, too, that a tenant is erased, and drop what is
// cached of it.
func TestErasedTenantOfWritesAndReads(t *testing.T) {
	for name, ask := range map[string]func(*stand) int{
		"write": func(s *stand) int { return s.write("a", writeV1, one(line("up", nil, 1))).Code },
		"read": func(s *stand) int {
			return s.remoteRead("a", &prompb.ReadRequest{Queries: []*prompb.Query{query(start0, start0, "__name__", "up", "job", "none")}}).Code
		},
	} {
		s := plain(t)
		s.put("a", line("up", nil, 1))
		if status, got := s.get("series", "match[]", "up"); status != http.StatusOK {
			t.Fatal(status, got)
		}
		if _, err := tenants.Erase(t.Context(), s.store, acme, tenants.EraseOptions{}); err != nil {
			t.Fatal(err)
		}
		if status := ask(s); status < 400 || status >= 500 || len(s.prom.series.tenants) != 0 {
			t.Errorf("%s: status %d with %d tenants cached, want 4xx and none", name, status, len(s.prom.series.tenants))
		}
	}
}

// TestMetadataInMemory: long texts of metadata are not kept in memory.
func TestMetadataInMemory(t *testing.T) {
	var all metadataCaches
	known := all.of(acme)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 32 {
		help := strings.Repeat("x", 1<<20)
		if !known.isNew(fmt.Sprint(i), storedMetadata{Help: help}, time.Now()) || known.isNew(fmt.Sprint(i), storedMetadata{Help: help}, time.Now()) {
			t.Fatal("metadata is not new, or new twice")
		}
	}
	if held := int64(heap()) - int64(before); held > 8<<20 {
		t.Errorf("%d bytes are held for 32 metrics", held)
	}
	if !known.isNew("0", storedMetadata{Help: "other"}, time.Now()) {
		t.Error("other metadata of a metric is not new")
	}
}

// TestDeepPayload: a payload of many objects within each other makes no metric, whose name would be as long.
func TestDeepPayload(t *testing.T) {
	deep := tsdb.MustDefine("deep", tsdb.Key("id"), codec.JSON[any](), tsdb.SchemaOptions{})
	var v any = 1.0
	for range 2000 {
		v = map[string]any{"a": v}
	}
	s := mappedOver(t, someLimits, deep)
	putPoints(t, s, deep, acme, tsdb.Point[any]{Entity: tsdb.NewEntity("x"), Time: time.UnixMilli(start0), Value: map[string]any{"deep": v, "flat": 1}})
	if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":["deep_flat"]}` {
		t.Errorf("metrics %.200s, want the flat one", got)
	}
}

// TestCatalogueThatCannotBeRead: the program does not start with a part of the datasets.
func TestCatalogueThatCannotBeRead(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, truckData)
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied))
	if catalogueError(t, store) == nil {
		t.Error("no error without a catalogue")
	}
}

// TestLargeSamples: histograms and exemplars count as many samples as take the memory that they do.
func TestLargeSamples(t *testing.T) {
	l := someLimits
	l.samples = 1000
	s := open(t, l, embedded.Options{}, tsdb.WriterOptions{})
	h := histogram.FloatHistogram{PositiveSpans: []histogram.Span{{Length: 500}}, PositiveBuckets: make([]float64, 500)}
	for name, ts := range map[string]prompb.TimeSeries{"few": line("few", nil), "many": line("many", nil)} {
		for i := range map[string]int64{"few": 2, "many": 10}[name] {
			ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(start0+i, &h))
			ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Timestamp: start0 + i, Labels: []prompb.Label{{Name: "a", Value: strings.Repeat("x", 4000)}}})
		}
		s.put("a", ts)
	}
	for name, want := range map[string]int{"few": http.StatusOK, "many": http.StatusUnprocessableEntity} {
		w := s.remoteRead("a", &prompb.ReadRequest{Queries: []*prompb.Query{query(start0, start0+1000, "__name__", name)}})
		if w.Code != want {
			t.Errorf("%s histograms: %d, want %d", name, w.Code, want)
		}
		if status, got := s.get("query_exemplars", "query", name); status != want {
			t.Errorf("%s exemplars: %d %.100s, want %d", name, status, got, want)
		}
	}
}
