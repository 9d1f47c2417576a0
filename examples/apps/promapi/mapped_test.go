package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// reading is what a truck sends.
type reading struct {
	Speed    float64 `json:"speed"`
	Odometer float64 `json:"odometer"`
	Moving   bool    `json:"moving"`
	Driver   string  `json:"driver,omitempty"`
	GPS      struct {
		Lat float64 `json:"lat"`
	} `json:"gps"`
}

var (
	truckData = tsdb.MustDefine("trucks", tsdb.Key("fleet", "truck"), codec.JSON[reading](), tsdb.SchemaOptions{})
	fuelData  = tsdb.MustDefine("fuel.state", tsdb.Key("fleet").Uint("truck", 3), codec.Float64(), tsdb.SchemaOptions{})
	recorded  = tsdb.MustDefine("rec", tsdb.Key("id"), codec.Records(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
)

// over a store with datasets of other programs.
func mappedOver(t testing.TB, l limits, datasets ...tsdb.Dataset) *stand {
	t.Helper()
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), append(datasets, schema)...); err != nil {
		t.Fatal(err)
	}
	return over(t, store, schema, tsdb.WriterOptions{}, l, shown(t, store, nil))
}

// shown is the datasets of a store as metrics.
func shown(t testing.TB, store *tsdb.Store, of *messages) *mappedSource {
	t.Helper()
	c, err := openCatalogue(t.Context(), store, of, slog.New(slog.DiscardHandler), noop.NewMeterProvider())
	if err != nil {
		t.Fatal(err)
	}
	return newMappedSource(c)
}

func catalogueError(t *testing.T, store *tsdb.Store) error {
	t.Helper()
	_, err := openCatalogue(t.Context(), store, nil, slog.New(slog.DiscardHandler), noop.NewMeterProvider())
	return err
}

func putPoints[T any](t testing.TB, s *stand, schema *tsdb.Schema[T], id tenant.ID, points ...tsdb.Point[T]) {
	t.Helper()
	if _, err := schema.For(s.store, id).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
}

func truckPoint(fleet, truck string, at int64, driver string, speed float64) tsdb.Point[reading] {
	r := reading{Speed: speed, Odometer: float64(at-start0) / 100, Moving: speed > 1, Driver: driver}
	r.GPS.Lat = 52.5
	return tsdb.Point[reading]{Entity: tsdb.NewEntity(fleet, truck), Time: time.UnixMilli(at), Value: r}
}

func TestMapping(t *testing.T) {
	s := mappedOver(t, someLimits, truckData, fuelData, recorded)
	putPoints(t, s, truckData, acme,
		truckPoint("East", "truck_1", start0, "Andy", 10), truckPoint("East", "truck_1", start0+15_000, "Bea", 20),
		truckPoint("East", "truck_2", start0, "Carl", 0), truckPoint("West", "truck_3", start0, "", 30),
	)
	seven, err := fuelData.Entity("East", 7)
	if err != nil {
		t.Fatal(err)
	}
	putPoints(t, s, fuelData, acme, tsdb.Point[float64]{Entity: seven, Time: time.UnixMilli(start0).Add(300 * time.Microsecond), Value: 0.5},
		tsdb.Point[float64]{Entity: seven, Time: time.UnixMilli(start0).Add(700 * time.Microsecond), Value: 0.75})
	record := recordOf(map[string]codec.Value{"temp": codec.Float(21.5), "n": codec.Int(-3), "ok": codec.Bool(true), "state": codec.Str("on")})
	putPoints(t, s, recorded, acme, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity("a"), Time: time.UnixMilli(start0), Value: record})
	putPoints(t, s, truckData, tenant.MustParse("globex"), truckPoint("secret", "t", start0, "Eve", 99))

	if status, got := s.get("query_range", "query", "trucks_speed[1d]", "start", "0", "end", "1", "step", "1"); status != http.StatusBadRequest {
		t.Errorf("a range vector in a range query: %d %s", status, got)
	}
	if status, got := s.get("query", "query", `{__name__=~".+"}[100y]`, "time", "9000000000"); status != http.StatusOK {
		t.Errorf("in the far future: %d %s", status, got)
	}

	const east1 = `"fleet":"East","truck":"truck_1"`
	for _, tt := range []struct{ path, query, data string }{
		{"label/__name__/values", "", `["fuel_state","rec_info","rec_n","rec_ok","rec_temp","trucks_gps_lat","trucks_info","trucks_moving","trucks_odometer","trucks_speed"]`},
		{"labels", "", `["__name__","driver","fleet","id","state","truck"]`},
		{"label/fleet/values", "", `["East","West"]`},
		{"label/driver/values", "", `["Bea","Carl"]`},
		{"query", `trucks_speed{truck=~"truck_1|truck_9",fleet="East"}`, `{"resultType":"vector","result":[{"metric":{"__name__":"trucks_speed",` + east1 + `},"value":[1767225630,"20"]}]}`},
		{"query", `count(trucks_speed)`, `{"resultType":"vector","result":[{"metric":{},"value":[1767225630,"3"]}]}`},
		{"query", `trucks_moving{fleet=~"East|West"} == 0`, `{"resultType":"vector","result":[{"metric":{"__name__":"trucks_moving","fleet":"East","truck":"truck_2"},"value":[1767225630,"0"]}]}`},
		{"query", `trucks_gps_lat{fleet!="East"}`, `{"resultType":"vector","result":[{"metric":{"__name__":"trucks_gps_lat","fleet":"West","truck":"truck_3"},"value":[1767225630,"52.5"]}]}`},
		{"query", `trucks_speed{fleet="North"}`, `{"resultType":"vector","result":[]}`},
		{"query", `fuel_state{truck="7"}[1m]`, `{"resultType":"matrix","result":[{"metric":{"__name__":"fuel_state","fleet":"East","truck":"7"},"values":[[1767225600,"0.75"]]}]}`},
		{"query", `fuel_state{fleet="East",truck="x"}`, `{"resultType":"vector","result":[]}`},
		{"query", `rec_n + rec_temp + rec_ok`, `{"resultType":"vector","result":[{"metric":{"id":"a"},"value":[1767225630,"19.5"]}]}`},
		{"query", `trucks_info{driver="Andy"}[1m]`, `{"resultType":"matrix","result":[{"metric":{"__name__":"trucks_info","driver":"Andy",` + east1 + `},"values":[[1767225600,"1"]]}]}`},
		{"query", `trucks_speed * on (truck) group_left (driver) trucks_info{truck="truck_1"}`, `{"resultType":"vector","result":[{"metric":{"driver":"Bea",` + east1 + `},"value":[1767225630,"20"]}]}`},
		{"series", `trucks_info{driver=~"A.*|B.*"}`, `[{"__name__":"trucks_info","driver":"Bea",` + east1 + `}]`},
	} {
		pairs := []string{"query", tt.query, "time", at(30)}
		if tt.path == "series" {
			pairs = []string{"match[]", tt.query}
		}
		status, got := s.get(tt.path, pairs...)
		if want := `{"status":"success","data":` + tt.data + `}`; status != http.StatusOK || got != want {
			t.Errorf("%s %s: %d\n got %s\nwant %s", tt.path, tt.query, status, got, want)
		}
	}
}

// TestLabelsOfTexts: a text whose field would be no label, or the name of the metric, has a label that PromQL can name.
func TestLabelsOfTexts(t *testing.T) {
	s := mappedOver(t, someLimits, recorded)
	record := recordOf(map[string]codec.Value{"__name__": codec.Str("other"), "1st": codec.Str("on")})
	putPoints(t, s, recorded, acme, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity("a"), Time: time.UnixMilli(start0), Value: record})
	const want = `{"_1st":"on","__name__":"rec_info","__name___":"other","id":"a"}`
	for _, query := range []string{"rec_info", `rec_info{_1st="on"}`, `rec_info{__name___="other"}`} {
		if _, got := s.get("query", "query", query, "time", at(30)); !strings.Contains(got, `"metric":`+want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if _, got := s.get("series", "match[]", "rec_info"); !strings.Contains(got, want) {
		t.Errorf("series: %s, want %s", got, want)
	}
}

// TestHashedStreams: each stream of a dataset whose last key field is a hash is a series, and its attributes are those
// of the info metric.
func TestHashedStreams(t *testing.T) {
	hashed := tsdb.MustDefine("host", tsdb.Key("resource.host.name", "*hash"), codec.Records(), tsdb.SchemaOptions{})
	s := mappedOver(t, someLimits, hashed)
	for hash, cpu := range map[string]string{"iotg5qgp": "0", "jalo5eox": "1"} {
		n, _ := strconv.ParseInt(cpu, 10, 64)
		putPoints(t, s, hashed, acme, tsdb.Point[codec.Record]{
			Entity: tsdb.NewEntity("a", hash), Time: time.UnixMilli(start0),
			Value: recordOf(map[string]codec.Value{"load": codec.Int(5 + n), "tag:cpu": codec.Str(cpu)}),
		})
	}
	const first, second = `"_hash":"iotg5qgp"`, `"_hash":"jalo5eox"`
	for query, want := range map[string]string{
		`host_load`:      `[{"metric":{"__name__":"host_load",` + first + `,"resource_host_name":"a"},"value":[1767225630,"5"]},{"metric":{"__name__":"host_load",` + second + `,"resource_host_name":"a"},"value":[1767225630,"6"]}]`,
		`sum(host_load)`: `[{"metric":{},"value":[1767225630,"11"]}]`,
		`host_load * on (_hash) group_left (tag_cpu) host_info{tag_cpu="1"}`: `[{"metric":{` + second + `,"resource_host_name":"a","tag_cpu":"1"},"value":[1767225630,"6"]}]`,
	} {
		if status, got := s.get("query", "query", query, "time", at(30)); status != http.StatusOK || !strings.Contains(got, `"result":`+want) {
			t.Errorf("%s: %d\n got %s\nwant %s", query, status, got, want)
		}
	}
}

// TestClashes: two things that would have one name are refused with both: datasets at the start, fields when they are
// queried.
func TestClashes(t *testing.T) {
	clashing := tsdb.MustDefine("fuel-state", tsdb.Key("a"), codec.Float64(), tsdb.SchemaOptions{})
	store := openStoreInMemory(t)
	if err := store.Ensure(t.Context(), fuelData, clashing); err != nil {
		t.Fatal(err)
	}
	err := catalogueError(t, store)
	if err == nil || !strings.Contains(err.Error(), "fuel.state") || !strings.Contains(err.Error(), "fuel-state") {
		t.Errorf("datasets of one name: %v", err)
	}
	labels := tsdb.MustDefine("labels", tsdb.Key("a.b", "a-b"), codec.Float64(), tsdb.SchemaOptions{})
	store = openStoreInMemory(t)
	if err := store.Ensure(t.Context(), labels); err != nil {
		t.Fatal(err)
	}
	if err := catalogueError(t, store); err == nil || !strings.Contains(err.Error(), "a_b") {
		t.Errorf("key fields of one name: %v", err)
	}

	a := tsdb.MustDefine("a", tsdb.Key("k"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	ab := tsdb.MustDefine("a_b", tsdb.Key("k"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	s := mappedOver(t, someLimits, a, ab)
	point := func(v map[string]any) tsdb.Point[map[string]any] {
		return tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("x"), Time: time.UnixMilli(start0), Value: v}
	}
	putPoints(t, s, a, acme, point(map[string]any{"b": map[string]any{"c": 1}, "d": 1, "e": map[string]any{"f": 1}, "e_f": 2, "k": "text", "info": 3}))
	putPoints(t, s, ab, acme, point(map[string]any{"c": 2}))
	for query, want := range map[string]string{
		"a_b_c": "a field of dataset a and one of dataset a_b", "a_e_f": "the fields e_f and e.f of dataset a", "a_info": "the field info",
		`{__name__=~"a_.+"}`: "rename",
	} {
		if status, got := s.get("query", "query", query, "time", at(0)); status != http.StatusUnprocessableEntity || !strings.Contains(got, want) && !strings.Contains(got, "e.f and e_f") {
			t.Errorf("%s: %d %s, want 422 with %q", query, status, got, want)
		}
	}
	if _, got := s.get("query", "query", "a_d", "time", at(0)); !strings.Contains(got, `"1"`) {
		t.Errorf("another field: %s", got)
	}
}

// TestWindowsAgree: rate, increase and avg_over_time of a truck are what the SDK's own windows compute from the same
// points.
func TestWindowsAgree(t *testing.T) {
	s := mappedOver(t, someLimits, truckData)
	truck := tsdb.NewEntity("East", "truck_1")
	const width = 5 * time.Minute
	begin := time.UnixMilli(start0)
	var points []tsdb.Point[reading]
	odometer := 1000.0
	for i := range 360 { // an hour, with two resets of the odometer
		if odometer += 3 + math.Sin(float64(i)); i == 100 || i == 250 {
			odometer = 2
		}
		points = append(points, tsdb.Point[reading]{Entity: truck, Time: begin.Add(time.Duration(i)*10*time.Second + 5*time.Second), Value: reading{Speed: 50 + 30*math.Sin(float64(i)/9), Odometer: odometer}})
	}
	putPoints(t, s, truckData, acme, points...)
	windows, err := window.New(window.Every(width), []window.Measure[reading]{
		{Name: "speed", Of: func(r reading) (float64, bool) { return r.Speed, true }},
		{Name: "odometer", Kind: window.Counter, Of: func(r reading) (float64, bool) { return r.Odometer, true }},
	}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range 12 {
		from := begin.Add(time.Duration(i) * width)
		in := tsdb.Between(from, from.Add(width)) // one bucket at a time: PromQL does not look before its range
		for b, err := range windows.Read(t.Context(), alone{truckData.For(s.store, acme)}, truck, in, tsdb.NewestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			for query, want := range map[string]float64{
				"avg_over_time(trucks_speed[5m])": b.Values[0].Mean, "max_over_time(trucks_speed[5m])": b.Values[0].Max,
				"rate(trucks_odometer[5m])": b.Values[1].Rate, "increase(trucks_odometer[5m])": b.Values[1].Rate * width.Seconds(),
				"resets(trucks_odometer[5m])": float64(b.Values[1].Resets),
			} {
				var got float64
				_, text := s.get("query", "query", query, "time", fmt.Sprint(b.End.Unix()))
				_, text, _ = strings.Cut(text, `"value":[`+fmt.Sprint(b.End.Unix())+`,"`)
				if _, err := fmt.Sscanf(text, `%g"`, &got); err != nil || math.Abs(got-want) > 1e-9*math.Abs(want) {
					t.Errorf("%s of the bucket at %v is %v (%v), and the SDK's window has %v", query, b.Start, got, err, want)
				}
			}
		}
	}
	if n != 12 {
		t.Errorf("%d buckets, want 12", n)
	}
}

// TestErasedTenant: what is cached of an erased tenant is not shown any more.
func TestErasedTenant(t *testing.T) {
	s := mappedOver(t, someLimits, truckData)
	putPoints(t, s, truckData, acme, truckPoint("East", "truck_1", start0, "Andy", 10))
	s.put("a", line("up", nil, 1))
	ask := func(token string) (int, string) {
		w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/series?match[]={__name__=~\".%2B\"}", nil), token)
		return w.Code, w.Body.String()
	}
	if status, got := ask("a"); status != http.StatusOK || !strings.Contains(got, "truck_1") || !strings.Contains(got, "up") {
		t.Fatal(status, got)
	}
	if _, err := tenants.Erase(t.Context(), s.store, acme, tenants.EraseOptions{}); err != nil {
		t.Fatal(err)
	}
	if status, got := ask("a"); status != http.StatusGone || strings.Contains(got, "truck_1") {
		t.Errorf("after the erasure: %d %s, want 410", status, got)
	}
	for _, c := range []int{len(s.prom.series.tenants), len(s.sources[1].(*mappedSource).entities.tenants), len(s.sources[1].(*mappedSource).fields.tenants)} {
		if c != 0 {
			t.Errorf("%d tenants are cached after the erasure", c)
		}
	}
	if status, got := ask("g"); status != http.StatusOK {
		t.Errorf("another tenant: %d %s", status, got)
	}
	if w := s.write("a", writeV1, one(line("up", nil, 1))); w.Code != http.StatusBadRequest {
		t.Errorf("a write of the erased tenant: %d %s, want 400", w.Code, w.Body)
	}
}

// TestReadsInParts: many series are read in parts at the same time, one for each value of a key field, and none is lost
// or read twice.
func TestReadsInParts(t *testing.T) {
	s := mappedOver(t, someLimits, truckData, recorded)
	want := 0.0
	for i := range 60 {
		fleet := []string{"East", "Eas", "West"}[i%3]
		putPoints(t, s, truckData, acme, truckPoint(fleet, fmt.Sprint("truck_", i), start0, "Andy", float64(i)))
		if i != 7 {
			want += float64(i)
		}
	}
	for query, want := range map[string]string{
		`sum(trucks_speed{truck!="truck_7"})`: fmt.Sprint(want), "count(trucks_speed)": "60", `count(trucks_speed{fleet=~"E.*"})`: "40", `count(trucks_speed{fleet="East"})`: "20",
	} {
		if _, got := s.get("query", "query", query, "time", at(0)); !strings.Contains(got, `"`+want+`"]`) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	src := s.sources[1].(*mappedSource)
	for metric, want := range map[string]int{"trucks_speed": 3, `trucks_speed{fleet="East"}`: 1} {
		matchers, err := s.parser.ParseMetricSelector(metric)
		if err != nil {
			t.Fatal(err)
		}
		of, err := src.list(t.Context(), acme, "trucks_speed", matchers, span{})
		if err != nil || len(of[0].from.(*from).parts(of)) != want || len(of[0].from.(*from).parts(of[:4])) != 1 {
			t.Errorf("%s is read in %d parts (%v), want %d", metric, len(of[0].from.(*from).parts(of)), err, want)
		}
	}
}

// alone reads the points of one interval at a time, and none around it.
type alone struct{ *tsdb.Repository[reading] }

func (a alone) Range(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[reading], error] {
	_, hasStart := in.Start()
	_, hasEnd := in.End()
	if !hasStart || !hasEnd {
		return func(func(tsdb.Point[reading], error) bool) {}
	}
	return a.Repository.Range(ctx, e, in, opts...)
}

// recordOf returns a record with the map's names and values.
func recordOf(values map[string]codec.Value) codec.Record {
	fields := make([]codec.Field, 0, len(values))
	for name, v := range values {
		fields = append(fields, codec.Field{Name: name, Value: v})
	}
	return codec.NewRecord(fields...)
}
