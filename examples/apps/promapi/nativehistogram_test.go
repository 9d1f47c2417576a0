package main

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/codec"
)

// exponential returns the fields of an exponential histogram.
func exponential(name string, scale int64, zeros uint64, positive, negative string) map[string]codec.Value {
	fields := map[string]codec.Value{name + ":scale": codec.Int(scale), name + ":zeros": codec.Uint(zeros)}
	count := float64(zeros)
	for suffix, text := range map[string]string{":positive": positive, ":negative": negative} {
		if text == "" {
			continue
		}
		fields[name+suffix] = codec.Str(text)
		_, counts, _ := parseBuckets(text, 0)
		for _, n := range counts {
			count += n
		}
	}
	return with(fields, map[string]codec.Value{name + ":count": codec.Uint(uint64(count)), name + ":sum": codec.Float(count * 2)})
}

// TestNativeHistogram: an exponential histogram is a native one, and its parts are not listed.
func TestNativeHistogram(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	s.recordsAt("a", 0, exponential("lat", 0, 0, "", ""), exponential("lat", 0, 2, "1:4,0,4", ""), exponential("lat", 0, 2, "1:10,0,8", "0:5"))
	s.recordsAt("b", 2, with(exponential("lat", 1, 0, "2:3,3", ""), map[string]codec.Value{"state": codec.Str("on")}))
	for path, want := range map[string]string{
		"label/__name__/values": `["rec_info","rec_lat","rec_lat_count","rec_lat_sum"]`, "labels": `["__name__","id","state"]`, "label/id/values": `["a","b"]`,
	} {
		if _, got := s.get(path); got != `{"status":"success","data":`+want+`}` {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if _, got := s.get("series", "match[]", "rec_lat"); got != `{"status":"success","data":[{"__name__":"rec_lat","id":"a"},{"__name__":"rec_lat","id":"b"}]}` {
		t.Errorf("the series: %s", got)
	}
	for query, want := range map[string]float64{
		`histogram_count(rec_lat{id="a"})`: 25, `histogram_sum(rec_lat{id="a"})`: 50, `rec_lat_count{id="a"}`: 25,
		`histogram_fraction(2, 4, rec_lat{id="a"})`:                              10. / 25, // the bucket 1 of OpenTelemetry
		`histogram_fraction(8, 16, rec_lat{id="a"})`:                             8. / 25,
		`histogram_fraction(-2, -1, rec_lat{id="a"})`:                            5. / 25,
		`histogram_count(sum(rec_lat))`:                                          31, // of two scales
		`histogram_fraction(2, 4, sum(rec_lat))`:                                 16. / 31,
		`rec_lat_scale{id="b"}`:                                                  1, // answered as before, not listed
		`rec_lat_zeros{id="a"}`:                                                  2,
		`histogram_quantile(0.5, rec_lat{id="b"})`:                               math.Pow(2, 1.5),
		`count(rec_info{state="on"})`:                                            1,
		`resets(rec_lat{id="a"}[1m])`:                                            0,
		`histogram_count(last_over_time(rec_lat{id="b"}[1m]) + rec_lat{id="b"})`: 12,
	} {
		if got := s.value(query, 2); !near(got, want) {
			t.Errorf("%s is %v, want %v", query, got, want)
		}
	}
	if _, got := s.get("query", "query", `histogram_quantile(0.9, sum(rate(rec_lat[1m])))`, "time", at(2)); strings.Contains(got, "warnings") || strings.Contains(got, "infos") {
		t.Errorf("the quantile of a rate: %s", got)
	}
	if _, got := s.get("query", "query", `rec_info{id="a"}`, "time", at(2)); strings.Contains(got, "positive") {
		t.Errorf("the buckets are labels: %s", got)
	}
}

// TestNativeHistogramForms: scales, thresholds and sums that are unusual.
func TestNativeHistogramForms(t *testing.T) {
	lacks := func(fields map[string]codec.Value, name string) map[string]codec.Value {
		delete(fields, name)
		return fields
	}
	one := func(name string, v codec.Value) map[string]codec.Value { return map[string]codec.Value{name: v} }
	for name, tt := range map[string]struct {
		fields map[string]codec.Value
		query  string
		want   float64 // NaN for none
	}{
		// Bounds of scale 20 are powers of 2^(1/2^20). Of 4,096 buckets from 1 on, 4,096/2^12 = 1 bucket of scale 8
		// remains.
		"a finer scale":             {exponential("x", 20, 0, "0:"+strings.Repeat("1,", 4095)+"1", ""), "histogram_quantile(1, rec_x)", math.Pow(2, 1./256)},
		"a finer scale below 1":     {exponential("x", 20, 0, "-1:7", ""), "histogram_quantile(0, rec_x)", math.Pow(2, -1./256)},
		"the coarsest scale":        {exponential("x", -4, 0, "0:5", ""), "histogram_quantile(1, rec_x)", 65536},
		"a coarser scale":           {exponential("x", -5, 0, "0:5", ""), "rec_x", math.NaN()},
		"a scale out of range":      {exponential("x", math.MaxInt64, 0, "0:5", ""), "histogram_count(rec_x)", 5},
		"no sum":                    {lacks(exponential("x", 0, 0, "0:5", ""), "x:sum"), "histogram_quantile(1, rec_x)", 2},
		"no zeros":                  {lacks(exponential("x", 0, 0, "0:5", ""), "x:zeros"), "histogram_count(rec_x)", 5},
		"no values":                 {exponential("x", 0, 0, "", ""), "histogram_count(rec_x)", 0},
		"zeros with a threshold":    {with(exponential("x", 0, 4, "0:1", ""), one("x:zero_threshold", codec.Float(0.5))), "histogram_fraction(0, 0.5, rec_x)", 0.8},
		"a NaN threshold":           {with(exponential("x", 0, 4, "0:1", ""), one("x:zero_threshold", codec.Float(math.NaN()))), "rec_x", math.NaN()},
		"a negative threshold":      {with(exponential("x", 0, 4, "0:1", ""), one("x:zero_threshold", codec.Float(-1))), "rec_x", math.NaN()},
		"a text as a threshold":     {with(exponential("x", 0, 4, "0:1", ""), one("x:zero_threshold", codec.Str("y"))), "rec_x", math.NaN()},
		"a NaN count":               {with(exponential("x", 0, 4, "0:1", ""), one("x:count", codec.Float(math.NaN()))), "rec_x", math.NaN()},
		"a negative count":          {with(exponential("x", 0, 4, "0:1", ""), one("x:count", codec.Int(-1))), "rec_x", math.NaN()},
		"no buckets in the text":    {with(exponential("x", 0, 4, "0:1", ""), one("x:positive", codec.Str("0:"))), "rec_x", math.NaN()},
		"nonsense":                  {with(exponential("x", 0, 4, "0:1", ""), one("x:positive", codec.Str("abc"))), "rec_x", math.NaN()},
		"a negative bucket":         {with(exponential("x", 0, 4, "0:1", ""), one("x:negative", codec.Str("0:-1"))), "rec_x", math.NaN()},
		"a number as buckets":       {with(exponential("x", 0, 4, "0:1", ""), one("x:negative", codec.Int(1))), "rec_x", math.NaN()},
		"too many buckets":          {with(exponential("x", 0, 4, "0:1", ""), one("x:positive", codec.Str("0:"+strings.Repeat("0,", mostBuckets)+"1"))), "rec_x", math.NaN()},
		"the last offset":           {exponential("x", 0, 0, "2147483646:1", ""), "histogram_count(rec_x + rec_x)", 2},
		"an offset too large":       {with(exponential("x", 0, 4, "0:1", ""), one("x:positive", codec.Str("2147483647:1"))), "rec_x", math.NaN()},
		"more in buckets than all":  {with(exponential("x", 0, 0, "0:5", ""), one("x:count", codec.Int(1))), "histogram_count(rec_x)", 1},
		"a number in the same name": {with(exponential("x", 0, 0, "0:5", ""), one("x", codec.Int(42))), "rec_x", 42},
		"delta":                     {exponential("x:delta", 0, 0, "0:5", ""), "histogram_quantile(1, sum_over_time(rec_x_delta[1m]))", 2},
	} {
		s := mappedOver(t, someLimits, recorded)
		s.recordsAt("a", 0, tt.fields)
		if status, got := s.get("query", "query", "sum(rate(rec_x[1m])) + sum(rec_x + rec_x)", "time", at(0)); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, got)
		}
		if math.IsNaN(tt.want) {
			s.answers(0, map[string]string{tt.query: "[]"})
		} else if got := s.value(tt.query, 0); !near(got, tt.want) {
			t.Errorf("%s: %s is %v, want %v", name, tt.query, got, tt.want)
		}
	}
}

// TestMixedHistogram: a gauge, a histogram and an exponential one of one name are samples of their own series, and a
// point that has both a number and an exponential histogram shows the number.
func TestMixedHistogram(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	gauge := map[string]codec.Value{"x": codec.Float(1.5)}
	s.recordsAt("a", 0, gauge, exponential("x", 0, 0, "0:5", ""), classic("x", []float64{1}, 3, 4), with(exponential("x", 0, 0, "0:6", ""), gauge), exponential("x", 0, 0, "0:7", ""))
	if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":["rec_x","rec_x_bucket","rec_x_count","rec_x_sum"]}` {
		t.Errorf("the names are %s", got)
	}
	for second, want := range map[int]string{0: `"value":[1767225600,"1.5"]`, 1: `"histogram":[1767225601,{"count":"5"`, 2: `"histogram":[1767225602,{"count":"5"`, 3: `"value":[1767225603,"1.5"]`, 4: `"histogram":[1767225604,{"count":"7"`} {
		if _, got := s.get("query", "query", "rec_x", "time", at(second)); !strings.Contains(got, want) {
			t.Errorf("after %d s: %s, want %s", second, got, want)
		}
	}
	s.answers(4, map[string]string{`rec_x_bucket{le="1.0"}`: `[{"metric":{"__name__":"rec_x_bucket","id":"a","le":"1.0"},"value":[1767225604,"3"]}]`})
}

// TestDeltaHistogram: what a delta histogram has counted between two points is no counter: it is summed over time.
func TestDeltaHistogram(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	bounds := []float64{1, 2}
	s.recordsAt("a", 0, with(classic("c:delta", bounds, 1, 2, 2), exponential("e:delta", 0, 0, "0:5", "")), with(classic("c:delta", bounds, 3, 4, 6), exponential("e:delta", 0, 0, "0:2,1", "")))
	for query, want := range map[string]float64{
		`sum_over_time(rec_c_delta_bucket{le="2.0"}[1m])`:                              6,
		`histogram_quantile(0.5, sum by (le) (sum_over_time(rec_c_delta_bucket[1m])))`: 1,
		`histogram_count(sum_over_time(rec_e_delta[1m]))`:                              8,
		`histogram_fraction(1, 2, sum_over_time(rec_e_delta[1m]))`:                     7. / 8,
		`sum_over_time(rec_c_delta_count[1m])`:                                         8,
	} {
		if got := s.value(query, 1); !near(got, want) {
			t.Errorf("%s is %v, want %v", query, got, want)
		}
	}
	if _, got := s.get("query", "query", "rate(rec_e_delta[1m])", "time", at(1)); !strings.Contains(got, "warnings") {
		t.Errorf("the rate of a delta histogram has no warning: %s", got)
	}
}

// TestNativeHistogramLimit: a histogram counts as many samples as it is large.
func TestNativeHistogramLimit(t *testing.T) {
	l := someLimits
	l.samples = 1000
	s := mappedOver(t, l, recorded)
	s.recordsAt("a", 0, exponential("x", 0, 0, "0:"+strings.Repeat("1,", 2500)+"1", ""))
	if status, got := s.get("query", "query", "rec_x", "time", at(0)); status != http.StatusUnprocessableEntity || !strings.Contains(got, "-max-samples") {
		t.Errorf("%d %.300s, want 422", status, got)
	}
}

// TestRemoteReadOfHistograms: both forms of remote read have them, through changes of the scale and the bounds, resets
// and numbers of the same name.
func TestRemoteReadOfHistograms(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	s.recordsAt("a", 0,
		with(exponential("x", 3, 2, "-4:1,2,3", "7:9"), classic("y", []float64{1}, 3, 4)), exponential("x", 2, 2, "-4:1,2,3,4", "7:9"), exponential("x", 12, 0, "5:1", ""),
		map[string]codec.Value{"x": codec.Int(7)}, with(exponential("x", 0, 9, "0:1,1", ""), classic("y", []float64{2}, 5, 6)), exponential("x:delta", 0, 0, "0:5", ""), exponential("x:delta", 0, 0, "3:2", ""),
	)
	req := &prompb.ReadRequest{Queries: []*prompb.Query{
		query(0, start0+1e6, "__name__", "rec_x"), query(0, start0+1e6, "__name__", "rec_x_delta"), query(0, start0+1e6, "__name__", "rec_y_bucket"),
	}}
	want := []string{
		"0 __name__=rec_x id=a 0=17 1000=21 2000=1 3000=7 4000=11", "1 __name__=rec_x_delta id=a 5000=5 6000=2",
		"2 __name__=rec_y_bucket id=a le=+Inf 0=4 4000=6", "2 __name__=rec_y_bucket id=a le=1.0 0=3 4000=NaN", "2 __name__=rec_y_bucket id=a le=2.0 4000=5",
	}
	w := s.remoteRead("a", req)
	if got := texts(t, w.Body.Bytes()); w.Code != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("samples: %d\n got %q\nwant %q", w.Code, got, want)
	}
	req.AcceptedResponseTypes = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS}
	w = s.remoteRead("a", req)
	if got := streamed(t, w.Body.Bytes()); w.Code != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("streamed: %d\n got %q\nwant %q", w.Code, got, want)
	}
}

// FuzzBucketText: a text of buckets is refused or has the counts that are in it, also on a coarser scale.
func FuzzBucketText(f *testing.F) {
	for _, text := range []string{"0:1,2,3", "-5:0,0,7", "2147483647:1", "-2147483648:1,1", "3", "", ":", "1:", "1:1,", "+1:18446744073709551615", "0:1:2"} {
		f.Add(text, 0)
		f.Add(text, 12)
	}
	f.Fuzz(func(t *testing.T, text string, coarser int) {
		span, counts, ok := parseBuckets(text, int64(max(0, coarser)))
		if !ok {
			return
		}
		if int(span.Length) != len(counts) || len(counts) == 0 || len(counts) > mostBuckets {
			t.Fatalf("%q has %d counts and the span %v", text, len(counts), span)
		}
		offset, list, _ := strings.Cut(text, ":")
		first, err := strconv.ParseInt(offset, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(counts))
		for i, part := range strings.Split(list, ",") {
			n, err := strconv.ParseUint(part, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			want[(first+int64(i))>>max(0, coarser)+1-int64(span.Offset)] += float64(n)
		}
		for i := range want {
			if want[i] != counts[i] {
				t.Fatalf("%q has %v from %v, want %v", text, counts, span, want)
			}
		}
		_, _, plain := parseBuckets(text, 0)
		if got := nativeHistogram(recordOf(exponential("x", 0, 0, text, "")), "x"); (got != nil) != plain {
			t.Fatalf("%q is the histogram %v", text, got)
		}
	})
}
