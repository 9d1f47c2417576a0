package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// recordsAt stores points of the dataset rec, one a second.
func (s *stand) recordsAt(id string, second int, all ...map[string]codec.Value) {
	s.Helper()
	var points []tsdb.Point[codec.Record]
	for i, fields := range all {
		at := time.UnixMilli(start0).Add(time.Duration(second+i) * time.Second)
		points = append(points, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(id), Time: at, Value: recordOf(fields)})
	}
	putPoints(s, s, recorded, acme, points...)
}

// classic returns the fields of a histogram: how many values are at most each bound, and then all.
func classic(name string, bounds []float64, counts ...uint64) map[string]codec.Value {
	fields := map[string]codec.Value{name + ":count": codec.Uint(counts[len(bounds)]), name + ":sum": codec.Float(float64(counts[len(bounds)]) * 1.5)}
	for i, b := range bounds {
		fields[name+":le:"+strconv.FormatFloat(b, 'g', -1, 64)] = codec.Uint(counts[i])
	}
	return fields
}

// with returns the fields of both maps.
func with(fields, more map[string]codec.Value) map[string]codec.Value {
	for name, v := range more {
		fields[name] = v
	}
	return fields
}

// answers asks queries at a time, and compares their results in JSON.
func (s *stand) answers(second int, want map[string]string) {
	s.Helper()
	for query, result := range want {
		status, got := s.get("query", "query", query, "time", at(second))
		if status != http.StatusOK || !strings.Contains(got, `"result":`+result) {
			s.Errorf("%s: %d\n got %s\nwant %s", query, status, got, result)
		}
	}
}

// value returns the number that a query has.
func (s *stand) value(query string, second int) float64 {
	s.Helper()
	_, body := s.get("query", "query", query, "time", at(second))
	var got struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Data.Result) != 1 {
		s.Errorf("%s: %v, %s; want one value", query, err, body)
		return math.NaN()
	}
	x, err := strconv.ParseFloat(got.Data.Result[0].Value[1].(string), 64)
	if err != nil {
		s.Error(err)
	}
	return x
}

// near reports whether two numbers differ by float error only.
func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*math.Abs(b) }

// TestHistogram: a histogram has the series of Prometheus, and is listed as those.
func TestHistogram(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	bounds := []float64{1e-06, 0.5, 1, 1e+06}
	s.recordsAt("a", 0, classic("http.lat", bounds, 0, 0, 0, 0, 0), classic("http.lat", bounds, 0, 4, 8, 9, 10))
	s.recordsAt("b", 1, with(classic("http.lat", bounds, 1, 1, 1, 1, 1), map[string]codec.Value{"state": codec.Str("on"), "temp": codec.Int(3)}))
	const b = `"__name__":"rec_http_lat_bucket","id":"b","le":`
	for _, tt := range []struct{ path, selector, data string }{
		{"label/__name__/values", "", `["rec_http_lat_bucket","rec_http_lat_count","rec_http_lat_sum","rec_info","rec_temp"]`},
		{"labels", "rec_http_lat_bucket", `["__name__","id","le"]`},
		{"labels", "", `["__name__","id","le","state"]`},
		{"label/le/values", "", `["+Inf","0.5","1.0","1e+06","1e-06"]`},
		{"label/le/values", `rec_http_lat_bucket{le=~"1.*"}`, `["1.0","1e+06","1e-06"]`},
		{"label/id/values", `rec_http_lat_bucket{le="0.5"}`, `["a","b"]`},
		{"series", `rec_http_lat_bucket{id="b",le!="0.5"}`, `[{` + b + `"+Inf"},{` + b + `"1.0"},{` + b + `"1e+06"},{` + b + `"1e-06"}]`},
		{"series", `rec_http_lat_count{id="b"}`, `[{"__name__":"rec_http_lat_count","id":"b"}]`},
	} {
		status, got := s.get(tt.path, form2(tt.selector)...)
		if want := `{"status":"success","data":` + tt.data + `}`; status != http.StatusOK || got != want {
			t.Errorf("%s %s: %d\n got %s\nwant %s", tt.path, tt.selector, status, got, want)
		}
	}
	s.answers(1, map[string]string{
		`rec_http_lat_bucket{id="a",le="0.5"}`:                                       `[{"metric":{"__name__":"rec_http_lat_bucket","id":"a","le":"0.5"},"value":[1767225601,"4"]}]`,
		`rec_http_lat_bucket{id="a",le="+Inf"} == on(id) rec_http_lat_count`:         `[{"metric":{"id":"a"},"value":[1767225601,"10"]}]`,
		`rec_http_lat_sum{id="a"}`:                                                   `[{"metric":{"__name__":"rec_http_lat_sum","id":"a"},"value":[1767225601,"15"]}]`,
		`sum by (le) (rec_http_lat_bucket)`:                                          `[{"metric":{"le":"+Inf"},"value":[1767225601,"11"]},{"metric":{"le":"0.5"},"value":[1767225601,"5"]},{"metric":{"le":"1.0"},"value":[1767225601,"9"]},{"metric":{"le":"1e+06"},"value":[1767225601,"10"]},{"metric":{"le":"1e-06"},"value":[1767225601,"1"]}]`,
		`count({__name__=~"rec_.+"})`:                                                `[{"metric":{},"value":[1767225601,"17"]}]`,
		`rec_http_lat_le_0_5{id="a"}`:                                                `[{"metric":{"__name__":"rec_http_lat_le_0_5","id":"a"},"value":[1767225601,"4"]}]`, // its name before there were buckets
		`histogram_quantile(0.6, rec_http_lat_bucket{id="a"})`:                       `[{"metric":{"id":"a"},"value":[1767225601,"0.75"]}]`,
		`histogram_quantile(0.6, rate(rec_http_lat_bucket{id="a"}[1m]))`:             `[{"metric":{"id":"a"},"value":[1767225601,"0.75"]}]`,
		`histogram_quantile(0.6, sum by (le) (rec_http_lat_bucket{id="a",le!="x"}))`: `[{"metric":{},"value":[1767225601,"0.75"]}]`,
	})
	if status, got := s.get("query", "query", "rec_http_lat_le_1e_06", "time", at(1)); status != http.StatusUnprocessableEntity || !strings.Contains(got, "le:1e+06") {
		t.Errorf("the former name of two bounds: %d %s, want 422 with both", status, got)
	}
}

func form2(selector string) []string {
	if selector == "" {
		return nil
	}
	return []string{"match[]", selector}
}

// TestHostileHistograms: names and numbers that no histogram has are shown as the fields that they are, or as they are
// stored, and fail nothing.
func TestHostileHistograms(t *testing.T) {
	n := codec.Int(7)
	for name, tt := range map[string]struct {
		fields map[string]codec.Value
		names  string
		want   map[string]string
	}{
		"no numbers as bounds": {
			map[string]codec.Value{"x:count": n, "x:le:abc": n, "x:le:NaN": n, "x:le:": n, "x:le:0x1p-2": n, "x:le:2_0": n, "x:le:1.0": n, "x:le:1e999": n, ":le:1": n, "x:le:Inf": n, "x:le: 1": n},
			`["rec__le_1","rec_x_count","rec_x_le_","rec_x_le_0x1p_2","rec_x_le_1_0","rec_x_le_1e999","rec_x_le_2_0","rec_x_le_Inf","rec_x_le_NaN","rec_x_le__1","rec_x_le_abc"]`,
			map[string]string{"rec_x_bucket": "[]", "rec_x_le_abc": `[{"metric":{"__name__":"rec_x_le_abc","id":"a"},"value":[1767225600,"7"]}]`},
		},
		"no count": {map[string]codec.Value{"x:le:1": n}, `["rec_x_le_1"]`, map[string]string{"rec_x_bucket": "[]", "rec_x_le_1": `[{"metric":{"__name__":"rec_x_le_1","id":"a"},"value":[1767225600,"7"]}]`}},
		"texts": {
			map[string]codec.Value{"x:count": n, "x:le:1": codec.Str("many"), "x:le:2": n, "y:count": codec.Str("many"), "y:le:1": n},
			`["rec_info","rec_x_bucket","rec_x_count","rec_y_le_1"]`,
			map[string]string{"rec_x_bucket": `[{"metric":{"__name__":"rec_x_bucket","id":"a","le":"+Inf"},"value":[1767225600,"7"]},{"metric":{"__name__":"rec_x_bucket","id":"a","le":"2.0"},"value":[1767225600,"7"]}]`},
		},
		"decreasing": {
			map[string]codec.Value{"x:count": codec.Int(10), "x:le:1": codec.Int(9), "x:le:2": codec.Int(3), "x:le:4": codec.Int(-1)},
			`["rec_x_bucket","rec_x_count"]`,
			map[string]string{"count(rec_x_bucket)": `[{"metric":{},"value":[1767225600,"4"]}]`, "histogram_quantile(0.9, rec_x_bucket)": `[{"metric":{"id":"a"},"value":[1767225600,"1"]}]`},
		},
		"infinite bounds": {
			map[string]codec.Value{"x:count": codec.Int(10), "x:le:+Inf": codec.Int(9), "x:le:-Inf": codec.Int(0), "x:le:1": codec.Int(10)},
			`["rec_x_bucket","rec_x_count"]`,
			map[string]string{`rec_x_bucket{le="+Inf"}`: `[{"metric":{"__name__":"rec_x_bucket","id":"a","le":"+Inf"},"value":[1767225600,"10"]}]`, `rec_x_bucket{le="-Inf"}`: `[{"metric":{"__name__":"rec_x_bucket","id":"a","le":"-Inf"},"value":[1767225600,"0"]}]`},
		},
		"a bound in the name": {
			map[string]codec.Value{"x:le:1:count": n, "x:le:1:le:2": n},
			`["rec_x_le_1_bucket","rec_x_le_1_count"]`,
			map[string]string{`rec_x_le_1_bucket{le="2.0"}`: `[{"metric":{"__name__":"rec_x_le_1_bucket","id":"a","le":"2.0"},"value":[1767225600,"7"]}]`},
		},
		"no exponential histogram": {
			map[string]codec.Value{"x:scale": n, "x:positive": codec.Str("t"), "y:scale": codec.Str("t"), "y:count": n, "z:positive": codec.Str("0:1")},
			`["rec_info","rec_x_scale","rec_y_count"]`,
			map[string]string{"rec_x": "[]", "rec_info": `[{"metric":{"__name__":"rec_info","id":"a","x_positive":"t","y_scale":"t","z_positive":"0:1"},"value":[1767225600,"1"]}]`},
		},
	} {
		s := mappedOver(t, someLimits, recorded)
		s.recordsAt("a", 0, tt.fields)
		if _, got := s.get("label/__name__/values"); got != `{"status":"success","data":`+tt.names+`}` {
			t.Errorf("%s: the names are %s, want %s", name, got, tt.names)
		}
		s.answers(0, tt.want)
		if status, got := s.get("series", "match[]", `{__name__=~".+"}`); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}

// TestBoundsChange: after a histogram has got other bounds, the buckets of the former ones are gone at once. What else
// the entity sends between its points changes nothing.
func TestBoundsChange(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	s.recordsAt("a", 0, classic("lat", []float64{1, 2}, 3, 6, 9), map[string]codec.Value{"temp": codec.Int(1)}, classic("lat", []float64{2, 8}, 4, 8, 12), classic("lat", []float64{2, 8}, 5, 8, 12), classic("lat", []float64{1, 2}, 7, 8, 16))
	les := func(second int, les string) { // of the buckets there are
		t.Helper()
		_, got := s.get("query", "query", `count by (le) (rec_lat_bucket)`, "time", at(second))
		for _, le := range []string{"1.0", "2.0", "8.0", "+Inf"} {
			if strings.Contains(got, `"`+le+`"`) != strings.Contains(les, le) {
				t.Errorf("after %d s: %s, want only %s", second, got, les)
			}
		}
	}
	les(0, "1.0 2.0 +Inf")
	les(1, "1.0 2.0 +Inf")
	les(2, "2.0 8.0 +Inf")
	les(3, "2.0 8.0 +Inf")
	les(4, "1.0 2.0 +Inf")
	les(200, "1.0 2.0 +Inf")
	if got := s.value("histogram_quantile(0.5, rec_lat_bucket)", 2); got != 5 {
		t.Errorf("the quantile after the change is %v, want 5", got)
	}
	if _, got := s.get("query", "query", `rec_lat_bucket{le="1.0"}[1m]`, "time", at(5)); !strings.Contains(got, `"values":[[1767225600,"3"],[1767225604,"7"]]`) {
		t.Errorf("the samples of a bound that was away: %s", got)
	}
}

// TestHistogramNames: names that clash are refused, and what is in one name without a clash is one metric.
func TestHistogramNames(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	unlisted(s)
	fields := classic("x", []float64{1}, 1, 2)
	for _, more := range []map[string]codec.Value{
		{"x_bucket": codec.Int(3)}, classic("a.b", []float64{1}, 1, 2), classic("a_b", []float64{1}, 1, 2), classic("free", []float64{1}, 1, 2), {"free": codec.Int(5)},
	} {
		with(fields, more)
	}
	s.recordsAt("a", 0, fields, map[string]codec.Value{})
	for query, want := range map[string]string{"rec_x_bucket": "x:le and x_bucket", "rec_a_b_bucket": "a.b:le and a_b:le"} {
		if status, got := s.get("query", "query", query, "time", at(0)); status != http.StatusUnprocessableEntity || !strings.Contains(got, want) {
			t.Errorf("%s, which no newest point has: %d %s, want 422 with %q", query, status, got, want)
		}
	}
	s.recordsAt("a", 2, fields)
	s.forget(acme)
	for query, want := range map[string]string{"rec_x_bucket": "x_bucket and x:le", "rec_a_b_bucket": ":le and a"} {
		if status, got := s.get("query", "query", query, "time", at(2)); status != http.StatusUnprocessableEntity || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want 422 with %q", query, status, got, want)
		}
	}
	s.answers(2, map[string]string{"rec_free": `[{"metric":{"__name__":"rec_free","id":"a"},"value":[1767225602,"5"]}]`, "count(rec_free_bucket)": `[{"metric":{},"value":[1767225602,"2"]}]`})

	keyed := tsdb.MustDefine("keyed", tsdb.Key("le"), codec.Records(), tsdb.SchemaOptions{})
	s = mappedOver(t, someLimits, keyed)
	putPoints(t, s, keyed, acme, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity("k"), Time: time.UnixMilli(start0), Value: recordOf(classic("x", []float64{1}, 1, 2))})
	s.answers(0, map[string]string{`keyed_x_bucket{le_="1.0"}`: `[{"metric":{"__name__":"keyed_x_bucket","le":"k","le_":"1.0"},"value":[1767225600,"1"]}]`})
}

// TestHistogramLimits: each bucket is a series and a sample, also where no list has them.
func TestHistogramLimits(t *testing.T) {
	bounds := make([]float64, 100)
	for i := range bounds {
		bounds[i] = float64(i)
	}
	few := someLimits
	few.series = 100
	for name, l := range map[string]limits{"-max-samples": {samples: 1000, series: someLimits.series}, "-max-series": {samples: someLimits.samples, series: 100}} {
		l.body, l.timeout, l.lookback, l.requests, l.perTenant = few.body, few.timeout, few.lookback, few.requests, few.perTenant
		s := mappedOver(t, l, recorded)
		for i := range 12 {
			s.recordsAt(fmt.Sprint("e", i), 0, classic("x", bounds, make([]uint64, 101)...))
		}
		if status, got := s.get("query", "query", "rec_x_bucket", "time", at(0)); status != http.StatusUnprocessableEntity || !strings.Contains(got, name) {
			t.Errorf("%s: %d %.300s, want 422", name, status, got)
		}
		status, got := s.get("series", "match[]", "rec_x_bucket")
		if tooMany := name == "-max-series"; (status == http.StatusUnprocessableEntity) != tooMany {
			t.Errorf("the list with %s: %d %.300s", name, status, got)
		}
	}
}

// TestNewestPointsOnce: the lists of a request read the newest point of an entity once, for all histograms and texts.
func TestNewestPointsOnce(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	s.recordsAt("a", 0, with(classic("x", []float64{1}, 3, 4), classic("y", []float64{1}, 3, 4)))
	src, read := s.sources[1].(*mappedSource), newNewest(time.Minute, newBudget(100, 100))
	complete := func(metric string, read *newest) (les string) {
		t.Helper()
		of, err := src.list(t.Context(), acme, metric, nil, span{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := src.complete(t.Context(), acme, of, read)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			les += " " + one.labels.Get("le")
		}
		return les
	}
	first := complete("rec_x_bucket", read)
	s.recordsAt("a", 1, with(classic("x", []float64{2}, 3, 4), classic("y", []float64{2}, 3, 4)))
	if got := complete("rec_y_bucket", read); first != " +Inf 1.0" || got != first {
		t.Errorf("the bounds are%s, and of another histogram in the same request%s, want +Inf 1.0 of one point", first, got)
	}
	if got := complete("rec_y_bucket", newNewest(time.Minute, newBudget(100, 100))); got != " +Inf 2.0" {
		t.Errorf("the bounds of another request are%s, want those of the newest point", got)
	}
}

// FuzzBucketField: a bucket has one field, and its label is the bound.
func FuzzBucketField(f *testing.F) {
	for _, field := range []string{"x:le:0.5", "x:le:1e+06", "x:le:abc", "x:le:NaN", "x:le:-Inf", "x:le:le:1", ":le:1", "x:le:1.0", "x:le:+1", "x:le:-0", "x:le:9007199254740993"} {
		f.Add(field)
	}
	f.Fuzz(func(t *testing.T, field string) {
		name, bound, ok := bucketOf(field)
		if !ok {
			return
		}
		x, err := strconv.ParseFloat(bound, 64)
		if again := name + ":le:" + strconv.FormatFloat(x, 'g', -1, 64); err != nil || math.IsNaN(x) || name == "" || again != field {
			t.Errorf("%q is the bucket %q of %q (%v), whose field is %q", field, bound, name, err, again)
		}
	})
}
