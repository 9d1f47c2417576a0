package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestCSV: each query answers with CSV, by Accept or by format.
func TestCSV(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20, 21.5)
	odd := tsdb.NewEntity("berlin", "a \"b\",\nc")
	a.put(odd, 7)
	const at = "&from=2026-06-01T11:59:00Z&to=2026-06-01T12:01:00Z"
	const roofRows = "berlin,roof-7,2026-06-01T12:00:00Z,,21.5,,\nberlin,roof-7,2026-06-01T11:59:00Z,,20,,"
	const oddRow = "berlin,\"a \"\"b\"\",\nc\",2026-06-01T12:00:00Z,,7,,"
	const header = "site,device,time,id,temp_c,humidity,problem\n"
	for path, want := range map[string]string{
		"history?site=berlin&device=roof-7":                     header + roofRows,
		"history?site=berlin&device=roof-7&order=oldest&size=1": header + "berlin,roof-7,2026-06-01T11:59:00Z,,20,,",
		"range?site=berlin" + at:                                header + oddRow + "\n" + roofRows,
		"range?by=time&order=oldest" + at:                       header + "berlin,roof-7,2026-06-01T11:59:00Z,,20,,\n" + oddRow + "\nberlin,roof-7,2026-06-01T12:00:00Z,,21.5,,",
		"group?site=berlin":                                     header + oddRow + "\nberlin,roof-7,2026-06-01T12:00:00Z,,21.5,,",
		"silent?since=2026-06-01T13:00:00Z&limit=1":             "site,device,last\nberlin,\"a \"\"b\"\",\nc\",2026-06-01T12:00:00Z",
		"chart?site=berlin&device=roof-7&columns=2" + at:        "time,value,break,approx\n2026-06-01T11:59:00Z,20,false,false\n2026-06-01T12:00:00Z,21.5,false,false",
		"windows?site=berlin&device=roof-7&every=1h&measures=temp_c&aggregates=mean,max,first" + at: "start,end,points,bad,partial,temp_c.mean,temp_c.max,temp_c.first,filled\n" +
			"2026-06-01T11:00:00Z,2026-06-01T12:00:00Z,1,0,true,20,20,20,\n2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,1,0,true,21.5,21.5,21.5,",
	} {
		byName := a.get("/v1/weather/" + path + "&format=csv")
		byName.want(t, 200, want)
		if kind := byName.Header.Get("Content-Type"); kind != "text/csv; charset=utf-8; header=present" {
			t.Errorf("%s: Content-Type %q", path, kind)
		}
		if got := a.get("/v1/weather/"+path, "Accept: text/csv"); got.body != byName.body {
			t.Errorf("%s: by Accept %q", path, got.body)
		}
		if head := a.do(http.MethodHead, "/v1/weather/"+path+"&format=csv", ""); head.StatusCode != 200 || head.body != "" {
			t.Errorf("HEAD %s: %d %q", path, head.StatusCode, head.body)
		}
		if p := a.get("/v1/weather/"+path+"&format=xml").wantProblem(t, invalidInput); p.Field != "format" || !strings.Contains(p.Limit, "csv") {
			t.Errorf("%s as XML: %+v", path, p)
		}
	}
	if more := a.get("/v1/weather/silent?since=2026-06-01T13:00:00Z&limit=1&format=csv").Header.Get("X-More"); more != "true" {
		t.Errorf("of two silent devices one is returned with X-More %q", more)
	}
	a.get("/v1/weather/range?format=csv&cursor=x"+at).wantProblem(t, invalidInput)
	a.get("/v1/weather/keys?format=csv").wantProblem(t, invalidInput)
	a.spoil("acme#weather#berlin#roof-7#", noon)
	if got := a.get("/v1/weather/history?site=berlin&device=roof-7&format=csv"); !strings.Contains(got.body, `12:00:00Z,,,,"`+unreadablePoint.title+`"`) {
		t.Errorf("a point that cannot be read: %s", got.body)
	}
}

// TestCSVWithoutMeasures: values of a dataset without measures are JSON.
func TestCSVWithoutMeasures(t *testing.T) {
	a := newAPI(t)
	words := tsdb.MustDefine("words", tsdb.Key("user"), codec.JSON[map[string]string](), tsdb.SchemaOptions{Identity: true})
	if err := a.store.Ensure(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["words"] = show(a.store, words, nil)
	if err := words.For(a.store, acme).WithID("a").Put(t.Context(), tsdb.NewEntity("ada"), noon, map[string]string{"say": "a,b"}); err != nil {
		t.Fatal(err)
	}
	a.get("/v1/words/history?user=ada&format=csv").want(t, 200, "user,time,id,value,problem\nada,2026-06-01T12:00:00Z,a,\"{\"\"say\"\":\"\"a,b\"\"}\",")
}

// TestRange reads the points of a group in pages, and as lines in the order of their times.
func TestRange(t *testing.T) {
	a := newAPI(t)
	for i := range 3 {
		a.put(tsdb.NewEntity("berlin", fmt.Sprint("d", i)), 1, 2, 3)
	}
	a.put(tsdb.NewEntity("hamburg", "d0"), 9)
	path, got := "/v1/weather/range?site=berlin&size=2&order=oldest&from=2026-06-01T11:59:00Z&to=2026-06-01T13:00:00Z", ""
	first := path
	for pages := 0; path != ""; pages++ {
		r := a.get(path)
		if r.StatusCode != 200 || pages > 3 {
			t.Fatalf("%s: %d %s", path, r.StatusCode, r.body)
		}
		page := decode[struct {
			Points []struct {
				Key   struct{ Site, Device string }
				Value Reading
			}
			Next string
		}](t, r.body)
		for _, p := range page.Points {
			got += fmt.Sprint(p.Key.Device, "=", float(p.Value.TempC), " ")
		}
		path = page.Next
	}
	if want := "d0=2 d0=3 d1=2 d1=3 d2=2 d2=3 "; got != want {
		t.Errorf("the pages have %s, want %s", got, want)
	}
	next := decode[struct{ Next string }](t, a.get(first).body).Next
	a.get(strings.Replace(next, "site=berlin", "site=hamburg", 1)).wantProblem(t, badCursor)
	a.get(next, "Authorization: Bearer secret=2").wantProblem(t, badCursor)
	lines := a.get(strings.Replace(first, "size=2", "size=5&by=time", 1), "Accept: application/x-ndjson")
	if n := strings.Count(lines.body, `"temp_c":2`); n != 3 || strings.Count(lines.body, `"temp_c":3`) != 2 || !strings.HasSuffix(lines.body, `{"end":true,"more":true}`+"\n") {
		t.Errorf("as lines: %s", lines.body)
	}
	for query, field := range map[string]string{
		"": "from", "from=2026-06-01T11:59:00Z": "to", "&by=time": "by", "&by=size": "by", "&size=1001": "size", "&format=csv&size=1000001": "size", "&device=a": "device",
	} {
		if strings.HasPrefix(query, "&") {
			query = "site=berlin&from=2026-06-01T11:59:00Z&to=2026-06-01T13:00:00Z" + query
		}
		if p := a.get("/v1/weather/range?"+query).wantProblem(t, invalidInput); p.Field != field {
			t.Errorf("%q: the problem is with %q, want %q", query, p.Field, field)
		}
	}
}

// TestCSVIsCut: if reading fails after rows were sent, the client's read fails: the part does not look like the whole.
// If nothing was sent, the answer is a problem.
func TestCSVIsCut(t *testing.T) {
	a := newAPI(t)
	a.put(roof, make([]float64, 3000)...)
	const path = "/v1/weather/history?site=berlin&device=roof-7&format=csv"
	get := func() (rows int, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		resp, err := a.client.Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			text, _ := io.ReadAll(resp.Body)
			return 0, errors.New(string(text))
		}
		all, err := csv.NewReader(resp.Body).ReadAll()
		return len(all), err
	}
	if rows, err := get(); rows != 3001 || err != nil {
		t.Fatalf("%d rows, %v", rows, err)
	}
	cut := tsdbtest.CutStream(2000, codes.PermissionDenied)
	a.conn.Inject(cut)
	if rows, err := get(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream that is cut after 2,000 points: %d rows, %v; want an error of the connection", rows, err)
	}
	a.conn.Clear()
	a.conn.Inject(tsdbtest.Fail(codes.PermissionDenied))
	if rows, err := get(); err == nil || !strings.Contains(err.Error(), problemTypes) {
		t.Errorf("a read that fails at once: %d rows, %v; want a problem", rows, err)
	}
	const between = "&format=csv&from=2026-05-30T00:00:00Z&to=2026-06-01T13:00:00Z"
	for _, query := range []string{"windows?every=1h", "uptime?longer=1m&every=1h", "outages?longer=1m", "chart?columns=2"} {
		a.get("/v1/weather/"+query+"&site=berlin&device=roof-7"+between).wantProblem(t, internal)
	}
	a.get("/v1/weather/groups?every=1h"+between).wantProblem(t, internal)
	a.do(http.MethodPost, "/v1/weather/align?every=1h"+between, `{"keys":[{"site":"berlin","device":"roof-7"}]}`, "Content-Type: application/json").wantProblem(t, internal)
}

// TestMeters: a month of increase by days, and a chart that comes from a rollup.
func TestMeters(t *testing.T) {
	a := newAPI(t)
	hours := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[Meter]{
		{Name: "kwh", Kind: window.Counter, Int: wattHours, Decimals: 3, Max: 1e9, Aggregates: window.Min | window.Max | window.Increase},
		{Name: "volts", Of: volts, Decimals: 1, Max: 1e6, Aggregates: window.Basic | window.Ends},
	}, rollup.Options{})
	rolled := tsdb.MustDefine("rolled", tsdb.Key("street", "meter"), codec.JSON[Meter](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})
	if err := a.store.Ensure(t.Context(), rolled); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["rolled"] = show(a.store, rolled, []window.Measure[Meter]{
		{Name: "kwh", Kind: window.Counter, Int: wattHours, Decimals: 3}, {Name: "volts", Of: volts},
	})
	meter := tsdb.NewEntity("main-street", "m-17")
	var points []tsdb.Point[Meter]
	for h := -31 * 24; h < 0; h++ {
		points = append(points, tsdb.Point[Meter]{Entity: meter, Time: noon.Add(time.Duration(h) * time.Hour), Value: Meter{WattHours: num(float64(1_000_000 + 500*h)), Volts: num(230)}})
	}
	if err := put(t.Context(), rolled.For(a.store, acme), points); err != nil {
		t.Fatal(err)
	}
	const of = "/v1/rolled/%s?street=main-street&meter=m-17&from=2026-05-02T00:00:00Z&to=2026-06-01T00:00:00Z"
	got := a.get(fmt.Sprintf(of, "windows") + "&every=1d&measures=kwh&aggregates=increase&format=csv").body
	for every, from := range map[string]string{"1d": "hour", "30m": ""} {
		query := fmt.Sprintf(of, "windows") + "&measures=kwh&aggregates=increase&every=" + every
		windows := decode[struct {
			Rollup  string
			Buckets []struct{ Points int }
		}](t, a.get(query).body)
		if windows.Rollup != from || len(windows.Buckets) < 30 {
			t.Errorf("windows of %s: %d from rollup %q, want %q", every, len(windows.Buckets), windows.Rollup, from)
		}
	}
	if rows := strings.Split(strings.TrimSpace(got), "\n"); len(rows) != 31 || rows[1] != "2026-05-02T00:00:00Z,2026-05-03T00:00:00Z,24,0,false,12," {
		t.Errorf("the increase of a month by days is %s", got)
	}
	for _, measure := range []string{"kwh", "volts"} {
		chart := decode[struct {
			Source  struct{ Rollup string }
			Samples []struct{ Value float64 }
		}](t, a.get(fmt.Sprintf(of, "chart")+"&columns=30&measure="+measure).body)
		if chart.Source.Rollup != "hour" || len(chart.Samples) != 60 {
			t.Errorf("the chart of %s has %d samples from %q", measure, len(chart.Samples), chart.Source.Rollup)
		}
	}
}
