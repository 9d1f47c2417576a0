package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// message marshals a message, which cannot fail.
func message(m interface{ Marshal() ([]byte, error) }) []byte {
	data, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	return data
}

func one(ts prompb.TimeSeries) []byte {
	return message(&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}})
}

// TestWriteAnswers: each status tells the sender whether to try again. The type is checked before the body is
// decompressed, and the stated length before anything is.
func TestWriteAnswers(t *testing.T) {
	s := plain(t)
	good := one(line("m", nil, 1))
	bomb := append(binary.AppendUvarint(nil, 1<<31), bytes.Repeat([]byte{0xfe, 1, 0}, 1000)...)
	huge := one(line("m", []string{"a", strings.Repeat("x", 10<<20)}, 1))
	for _, tt := range []struct {
		name, kind, encoding string
		body                 []byte
		status               int
	}{
		{"version 1", "application/x-protobuf;proto=prometheus.WriteRequest", "snappy", snappy.Encode(nil, good), 204},
		{"without parameters", "application/x-protobuf", "snappy", snappy.Encode(nil, good), 204},
		{"without headers", "", "", snappy.Encode(nil, good), 204},
		{"other case", "Application/X-Protobuf", "Snappy", snappy.Encode(nil, good), 204},
		{"empty request", "application/x-protobuf", "snappy", snappy.Encode(nil, nil), 204},
		{"JSON, not snappy", "application/json", "snappy", []byte("{}"), 415},
		{"unknown message", "application/x-protobuf;proto=io.prometheus.write.v3.Request", "snappy", []byte("junk"), 415},
		{"bad parameter", "application/x-protobuf;proto", "snappy", []byte("junk"), 415},
		{"gzip", "application/x-protobuf", "gzip", []byte("junk"), 415},
		{"not snappy", "application/x-protobuf", "snappy", []byte("\xff\xff\xff\xff\xff\xff"), 400},
		{"empty body", "application/x-protobuf", "snappy", nil, 400},
		{"not protobuf", "application/x-protobuf", "snappy", snappy.Encode(nil, []byte("junk")), 400},
		{"not protobuf, version 2", "application/x-protobuf;proto=io.prometheus.write.v2.Request", "snappy", snappy.Encode(nil, []byte("junk")), 400},
		{"a snappy bomb", "application/x-protobuf", "snappy", bomb, 413},
		{"a label of 10 MB", "application/x-protobuf", "snappy", snappy.Encode(nil, huge), 413},
		{"a body over the limit", "application/x-protobuf", "snappy", make([]byte, 5<<20), 413},
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(tt.body))
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		if tt.encoding != "" {
			r.Header.Set("Content-Encoding", tt.encoding)
		}
		if w := s.send(r, "a"); w.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.name, w.Code, w.Body, tt.status)
		}
	}
	if w := s.write("wrong", writeV1, good); w.Code != http.StatusUnauthorized {
		t.Errorf("without a tenant: %d, want 401", w.Code)
	}
	if w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/write", nil), "a"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want 405", w.Code)
	}
}

// TestRefusedSeries: a bad series is refused with 400, and the good one next to it is stored.
func TestRefusedSeries(t *testing.T) {
	for name, bad := range map[string]prompb.TimeSeries{
		"no name":             {Labels: []prompb.Label{{Name: "a", Value: "b"}}, Samples: []prompb.Sample{{Timestamp: start0}}},
		"no labels":           {Samples: []prompb.Sample{{Timestamp: start0}}},
		"a label twice":       line("m", []string{"a", "1", "a", "2"}, 1),
		"a name that is bad":  line("m\xff", nil, 1),
		"a label that is bad": line("m", []string{"\xff", "1"}, 1),
		"no label name":       line("m", []string{"", "1"}, 1),
		"a value that is bad": line("m", []string{"a", "\xff"}, 1),
		"too long":            line("m", []string{"a", strings.Repeat("x", 5000)}, 1),
		"before 1970":         {Labels: line("m", nil).Labels, Samples: []prompb.Sample{{Timestamp: -1}}},
		"the last time":       {Labels: line("m", nil).Labels, Samples: []prompb.Sample{{Timestamp: math.MaxInt64}}},
		"a bad histogram": {Labels: line("m", nil).Labels, Histograms: []prompb.Histogram{
			prompb.FromIntHistogram(start0, &histogram.Histogram{Count: 5, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1}}),
		}},
		"a bad exemplar": {Labels: line("m", nil).Labels, Exemplars: []prompb.Exemplar{{Labels: []prompb.Label{{Name: "\xff"}}}}},
	} {
		s := plain(t)
		w := s.write("a", writeV1, message(&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{bad, line("good", nil, 7)}}))
		if w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "xxx") {
			t.Errorf("%s: %d %s, want 400 without the value", name, w.Code, w.Body)
		}
		if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":["good"]}` {
			t.Errorf("%s: stored %s, want the good series only", name, got)
		}
	}
}

// v2 is a request of version 2 with a float, a histogram and what belongs to them.
func v2() *writev2.Request {
	h := histogram.Histogram{Schema: 0, Count: 3, Sum: 4.5, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1, 1}}
	return &writev2.Request{
		Symbols: []string{"", "__name__", "reqs", "job", "api", "help", "unit", "trace_id", "t1", "lat"},
		Timeseries: []writev2.TimeSeries{
			{
				LabelsRefs: []uint32{1, 2, 3, 4},
				Samples:    []writev2.Sample{{Value: 5, Timestamp: start0, StartTimestamp: start0 - 1000}},
				Exemplars:  []writev2.Exemplar{{LabelsRefs: []uint32{7, 8}, Value: 2}},
				Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: 5, UnitRef: 6},
			},
			{LabelsRefs: []uint32{1, 9}, Histograms: []writev2.Histogram{writev2.FromIntHistogram(start0-1000, start0, &h)}},
		},
	}
}

func TestVersion2(t *testing.T) {
	headers := func(w *httptest.ResponseRecorder) string {
		h := w.Header()
		const prefix = "X-Prometheus-Remote-Write-"
		return fmt.Sprint(w.Code, h[prefix+"Samples-Written"], h[prefix+"Histograms-Written"], h[prefix+"Exemplars-Written"])
	}
	s := plain(t)
	if got := headers(s.write("a", writeV2, message(v2()))); got != "204 [1] [1] [1]" {
		t.Fatalf("%s, want 204 and one of each", got)
	}
	for _, tt := range []struct {
		path string
		want string
	}{
		{"query?query=reqs&time=" + at(0), `[{"metric":{"__name__":"reqs","job":"api"},"value":[1767225600,"5"]}]}`},
		{"query?query=lat&time=" + at(0), `[{"metric":{"__name__":"lat"},"histogram":[1767225600,{"count":"3","sum":"4.5","buckets":[[0,"0.5","1","1"],[0,"1","2","2"]]}]}]}`},
		{"metadata", `{"reqs":[{"type":"counter","unit":"unit","help":"help"}]}`},
		{"metadata?metric=reqs", `{"reqs":[{"type":"counter","unit":"unit","help":"help"}]}`},
		{"metadata?metric=lat", `{}`},
		{"query_exemplars?query=reqs", `"exemplars":[{"labels":{"trace_id":"t1"},"value":"2","timestamp":1767225600}]}]`},
	} {
		w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/"+tt.path, nil), "a")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %s", tt.path, w.Code, w.Body, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		change func(*writev2.Request)
		want   string
	}{
		"a reference beyond the symbols": {func(r *writev2.Request) { r.Timeseries[0].LabelsRefs[1] = 99 }, "400 [0] [1] [0]"},
		"an odd number of references":    {func(r *writev2.Request) { r.Timeseries[0].LabelsRefs = []uint32{1} }, "400 [0] [1] [0]"},
		"nothing":                        {func(r *writev2.Request) { r.Timeseries[0].Samples, r.Timeseries[0].Exemplars = nil, nil }, "400 [0] [1] [0]"},
		"an exemplar alone":              {func(r *writev2.Request) { r.Timeseries[0].Samples = nil }, "204 [0] [1] [1]"},
		"both":                           {func(r *writev2.Request) { r.Timeseries[1].Samples = r.Timeseries[0].Samples }, "400 [1] [0] [1]"},
		"no empty symbol":                {func(r *writev2.Request) { r.Symbols[0] = "x" }, "400 [] [] []"},
		"help beyond the symbols":        {func(r *writev2.Request) { r.Timeseries[0].Metadata.HelpRef = 99 }, "400 [1] [1] [1]"},
		"a bad exemplar":                 {func(r *writev2.Request) { r.Timeseries[0].Exemplars[0].LabelsRefs = []uint32{7} }, "400 [1] [1] [0]"},
	} {
		req := v2()
		tt.change(req)
		if got := headers(s.write("a", writeV2, message(req))); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestOrder: samples may come in any order. Of two with one time, the last one stays.
func TestOrder(t *testing.T) {
	s := plain(t)
	ts := line("m", nil)
	ts.Samples = []prompb.Sample{{Timestamp: start0 + 2000, Value: 3}, {Timestamp: start0, Value: 1}, {Timestamp: start0 + 1000, Value: 9}, {Timestamp: start0 + 1000, Value: 2}}
	s.put("a", ts)
	ts.Samples = []prompb.Sample{{Timestamp: start0, Value: 7}}
	s.put("a", ts)
	s.put("a", line("n", nil, math.NaN(), math.Inf(-1), math.Float64frombits(value.StaleNaN)))
	s.put("a", line("a name, of 100%#", []string{"a label", "x"}, 1))
	for _, want := range []string{`"result":[]`, `"value":[0,"5"]`} { // a device without a clock: it is found at once, too
		if _, got := s.get("query", "query", "first", "time", "0"); !strings.Contains(got, want) {
			t.Errorf("a sample of 1970: %s, want %s", got, want)
		}
		first := line("first", nil)
		first.Samples = []prompb.Sample{{Timestamp: 0, Value: 5}}
		s.put("a", first)
	}
	if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":["a name, of 100%#","first","m","n"]}` {
		t.Errorf("names %s", got)
	}
	for query, want := range map[string]string{
		"m[1m]": `"values":[[1767225600,"7"],[1767225601,"2"],[1767225602,"3"]]`,
		"n[1m]": `"values":[[1767225600,"NaN"],[1767225615,"-Inf"]]`,
		"n":     `"result":[]`,

		`{"a name, of 100%#","a label"="x"}`: `"value":[1767225630,"1"]`,
	} {
		if _, got := s.get("query", "query", query, "time", at(30)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestTryAgain: a failure that may pass is 5xx or 429 with Retry-After, so that the sender tries again, and nothing is
// lost.
func TestTryAgain(t *testing.T) {
	t.Run("limit", func(t *testing.T) {
		table, err := limit.Parse([]byte(`{"defaults": {"entities": 1}}`))
		if err != nil {
			t.Fatal(err)
		}
		limiter, err := limit.New(table, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, someLimits, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}}, tsdb.WriterOptions{})
		s.put("a", line("m", nil, 1))
		if w := s.write("a", writeV1, one(line("n", nil, 1))); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s, want 429 with Retry-After", w.Code, w.Body)
		}
	})
	t.Run("outage", func(t *testing.T) {
		schema, err := defineProm(0)
		if err != nil {
			t.Fatal(err)
		}
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		s := over(t, store, schema, tsdb.WriterOptions{}, someLimits)
		conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(string) bool { return true }))
		twice := v2()
		twice.Timeseries = append(twice.Timeseries, twice.Timeseries[0])
		w := s.write("a", writeV2, message(twice))
		if w.Code < 500 || w.Header().Get("X-Prometheus-Remote-Write-Samples-Written") != "0" {
			t.Errorf("%d with %s samples, want 5xx with 0", w.Code, w.Header().Get("X-Prometheus-Remote-Write-Samples-Written"))
		}
		conn.Clear()
		if w := s.write("a", writeV2, message(v2())); w.Code != http.StatusNoContent {
			t.Errorf("the second time: %d %s", w.Code, w.Body)
		}
		if _, got := s.get("metadata"); !strings.Contains(got, "reqs") {
			t.Errorf("metadata %s, want that of the second request", got)
		}
	})
}

// TestJournal: with a journal, a write is acknowledged while the store is away, and found afterwards.
func TestJournal(t *testing.T) {
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	s := over(t, store, schema, tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}}, someLimits)
	end := conn.Outage()
	s.put("a", line("m", nil, 1))
	if status, _ := s.get("query", "query", "m", "time", at(0), "timeout", "50ms"); status < 500 {
		t.Errorf("a query in the outage: %d, want 5xx", status)
	}
	end()
	if err := s.writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, got := s.get("query", "query", "m", "time", at(0)); !strings.Contains(got, `"1"`) {
		t.Error(got)
	}
}

// TestOneSamplePerTime: of several samples of a series with one time, wherever in a request they are, the last one
// stays, and all of them count as written.
func TestOneSamplePerTime(t *testing.T) {
	s := plain(t)
	first, second, other := line("m", []string{"a", "1"}), line("m", []string{"a", "1"}), line("m", []string{"a", "2"}, 9)
	at := func(ts *prompb.TimeSeries, values ...float64) {
		for i := 0; i < len(values); i += 2 {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: start0 + int64(values[i]), Value: values[i+1]})
		}
	}
	at(&first, 0, 1, 1000, 2, 0, 3, 2000, 4, 1000, 5, 3000, 6)
	at(&second, 3000, 7, 4000, 8)
	second.Exemplars = []prompb.Exemplar{
		{Timestamp: start0, Value: 1, Labels: []prompb.Label{{Name: "trace_id", Value: "x"}}},
		{Timestamp: start0, Value: 2, Labels: []prompb.Label{{Name: "trace_id", Value: "y"}}},
	}
	batch := newWriteBatch()
	batch.fromV1(&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{first, other, second}}, time.Now(), new(metadataCache))
	sent := map[place]bool{}
	for _, p := range batch.points {
		if at := (place{p.Entity, p.Time.UnixMilli()}); sent[at] {
			t.Errorf("two points of %v are sent, and either might remain", at)
		} else {
			sent[at] = true
		}
	}
	s.put("a", first, other, second)
	if _, got := s.get("query", "query", `m{a="1"}[1m]`, "time", "1767225610"); !strings.Contains(got, `"values":[[1767225600,"3"],[1767225601,"5"],[1767225602,"4"],[1767225603,"7"],[1767225604,"8"]]`) {
		t.Errorf("samples %s", got)
	}
	if _, got := s.get("query", "query", `m{a="2"}`, "time", "1767225610"); !strings.Contains(got, `"9"`) {
		t.Errorf("another series: %s", got)
	}
	if _, got := s.get("query_exemplars", "query", "m"); strings.Count(got, "trace_id") != 1 || !strings.Contains(got, `"y"`) {
		t.Errorf("exemplars %s, want the last one", got)
	}
	req := v2()
	req.Timeseries = append(req.Timeseries, req.Timeseries[0])
	w := s.write("a", writeV2, message(req))
	if got := w.Header().Get("X-Prometheus-Remote-Write-Samples-Written"); w.Code != http.StatusNoContent || got != "2" {
		t.Errorf("%d with %s samples written, want 204 with both", w.Code, got)
	}
}

// TestCreatedTimestamp: early senders of version 2 give one start time for all samples of a series.
func TestCreatedTimestamp(t *testing.T) {
	s := plain(t)
	req := v2()
	req.Timeseries[0].Samples[0].StartTimestamp = 0
	req.Timeseries[0].XXX_unrecognized = protowire.AppendVarint(protowire.AppendTag(nil, 6, protowire.VarintType), start0-5000)
	req.Timeseries[1].XXX_unrecognized = req.Timeseries[0].XXX_unrecognized // its histogram has a start time of its own
	if w := s.write("a", writeV2, message(req)); w.Code != http.StatusNoContent {
		t.Fatal(w.Code, w.Body)
	}
	for i, want := range []int64{start0 - 5000, start0 - 1000} {
		ls := labels.FromStrings("__name__", []string{"reqs", "lat"}[i])
		if i == 0 {
			ls = labels.FromStrings("__name__", "reqs", "job", "api")
		}
		p, err := s.prom.schema.For(s.store, acme).Latest(t.Context(), seriesEntity(samplesKind, ls))
		if err != nil || p.Value.start != want {
			t.Errorf("series %d starts at %d (%v), want %d", i, p.Value.start, err, want)
		}
	}
	for _, junk := range [][]byte{{0x32}, {0x30}, {0x32, 1, 0}, {0xff}} {
		if got := createdOf(&writev2.TimeSeries{XXX_unrecognized: junk}); got != 0 {
			t.Errorf("%x is the time %d", junk, got)
		}
	}
}

// TestLargerThanABurst: a request that the tenant's rate never lets through ends with 413, because the sender would
// send it for ever. A smaller one is sent again.
func TestLargerThanABurst(t *testing.T) {
	for name, defaults := range map[string]string{"points": `"points_per_second": 1, "points_burst": 5`, "bytes": `"bytes_per_second": 1, "bytes_burst": 45`} {
		table, err := limit.Parse([]byte(`{"defaults": {` + defaults + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		limiter, err := limit.New(table, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, someLimits, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}}, tsdb.WriterOptions{})
		w := s.write("a", writeV1, one(line("m", nil, 1, 2, 3, 4, 5, 6, 7)))
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "max_samples_per_send") {
			t.Errorf("%s: %d %s, want 413 with the remedy", name, w.Code, w.Body)
		}
		if w := s.write("a", writeV1, one(line("n", nil, 1, 2, 3))); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: a smaller request gets %d %s, want 429 with Retry-After", name, w.Code, w.Body)
		}
	}
}

// TestLargeLabelSets: labels of 10 MB together are refused, also if a body may be larger.
func TestLargeLabelSets(t *testing.T) {
	testkit.Plain(t)
	l := someLimits
	l.body = 64 << 20
	s := open(t, l, embedded.Options{}, tsdb.WriterOptions{})
	var pairs []string
	for i := range 100_000 {
		pairs = append(pairs, fmt.Sprintf("label_%06d", i), strings.Repeat("x", 90))
	}
	for name, ts := range map[string]prompb.TimeSeries{"many labels": line("m", pairs, 1), "one label": line("m", []string{"a", strings.Repeat("x", 10<<20)}, 1)} {
		if w := s.write("a", writeV1, one(ts)); w.Code != http.StatusBadRequest || w.Body.Len() > 1000 {
			t.Errorf("%s: %d %.200s, want 400", name, w.Code, w.Body)
		}
	}
	if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":[]}` {
		t.Errorf("stored %s, want nothing", got)
	}
}
