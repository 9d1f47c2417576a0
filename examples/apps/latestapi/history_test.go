package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

type historyPage struct {
	Points []struct {
		Time  time.Time
		Value Reading
	}
	Next string
}

func TestHistory(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 0, 1, 2, 3, 4, 5, 6)
	for _, test := range []struct {
		query string
		want  []float64
	}{
		{"", []float64{6, 5, 4, 3, 2, 1, 0}},
		{"&size=3", []float64{6, 5, 4, 3, 2, 1, 0}},
		{"&size=2&order=oldest", []float64{0, 1, 2, 3, 4, 5, 6}},
		{"&size=1&from=2026-06-01T11:55:00Z&to=2026-06-01T11:58:00Z", []float64{3, 2, 1}},
		{"&size=1&from=2026-06-01T13:55:00%2B02:00&order=oldest", []float64{1, 2, 3, 4, 5, 6}},
		{"&to=2026-06-01T11:54:00Z", nil},
	} {
		var got []float64
		pages := 0
		for path := "/v1/weather/history?site=berlin&device=roof-7" + test.query; path != ""; pages++ {
			r := a.get(path)
			if r.StatusCode != 200 {
				t.Fatalf("%s: %d %s", path, r.StatusCode, r.body)
			}
			page := decode[historyPage](t, r.body)
			for _, p := range page.Points {
				got = append(got, float(p.Value.TempC))
			}
			if link := r.Header.Get("Link"); (page.Next == "") != (link == "") || page.Next != "" && link != "<"+page.Next+`>; rel="next"` {
				t.Errorf("%s: Link %q differs from next %q", path, link, page.Next)
			}
			path = page.Next
		}
		if !equal(got, test.want) {
			t.Errorf("history%s: %v in %d pages, want %v", test.query, got, pages, test.want)
		}
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestCursorsStayWhereTheyBelong uses a cursor with other tenants, queries and datasets, and changes it.
func TestCursorsStayWhereTheyBelong(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 0, 1, 2)
	a.put(tsdb.NewEntity("berlin", "roof-8"), 0, 1, 2)
	if err := put(t.Context(), weather.For(a.store, acme2), []tsdb.Point[Reading]{
		{Entity: roof, Time: noon, Value: Reading{TempC: num(7)}}, {Entity: roof, Time: noon.Add(-time.Minute), Value: Reading{TempC: num(8)}},
	}); err != nil {
		t.Fatal(err)
	}
	first := decode[historyPage](t, a.get("/v1/weather/history?site=berlin&device=roof-7&size=1").body)
	if r := a.get(first.Next); r.StatusCode != 200 {
		t.Fatalf("the next page: %d %s", r.StatusCode, r.body)
	}
	a.get(first.Next, "Authorization: Bearer secret=2").wantProblem(t, badCursor)
	u, err := url.Parse(first.Next)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(url.Values, string){
		"another device":  func(q url.Values, _ string) { q.Set("device", "roof-8") },
		"another order":   func(q url.Values, _ string) { q.Set("order", "oldest") },
		"another start":   func(q url.Values, _ string) { q.Set("from", "2026-06-01T00:00:00Z") },
		"another text":    func(q url.Values, c string) { q.Set("cursor", "x"+c[1:]) },
		"a shorter text":  func(q url.Values, c string) { q.Set("cursor", c[:len(c)-1]) },
		"no base64":       func(q url.Values, _ string) { q.Set("cursor", "%&/") },
		"a time in clear": func(q url.Values, _ string) { q.Set("cursor", "AQAAAAAAAAAA") },
	} {
		q := u.Query()
		change(q, q.Get("cursor"))
		if p := a.get(u.Path+"?"+q.Encode()).wantProblem(t, badCursor); strings.Contains(p.Detail, "acme") {
			t.Errorf("%s: %v", name, p)
		}
	}
	q := u.Query()
	a.get("/v1/positions/history?company=berlin&route=roof-7&bus=1&cursor="+q.Get("cursor")).wantProblem(t, badCursor)
}

func TestWindows(t *testing.T) {
	a := newAPI(t)
	var points []tsdb.Point[Reading]
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// Two days; the first has 23 hours, because daylight saving time starts.
	for h := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin); h.Before(time.Date(2026, 3, 31, 0, 0, 0, 0, berlin)); h = h.Add(time.Hour) {
		points = append(points, tsdb.Point[Reading]{Entity: roof, Time: h, Value: Reading{TempC: num(float64(h.Day()))}})
	}
	if err := put(t.Context(), weather.For(a.store, acme), points); err != nil {
		t.Fatal(err)
	}
	const path = "/v1/weather/windows?site=berlin&device=roof-7"
	a.get(path+"&every=1d&zone=Europe/Berlin&from=2026-03-29T00:00:00%2B01:00&to=2026-04-01T00:00:00%2B02:00&gaps=null&aggregates=count,mean&measures=temp_c").
		want(t, 200, `{"buckets":[`+
			`{"start":"2026-03-29T00:00:00+01:00","end":"2026-03-30T00:00:00+02:00","points":23,"values":{"temp_c":{"count":23,"mean":29}}},`+
			`{"start":"2026-03-30T00:00:00+02:00","end":"2026-03-31T00:00:00+02:00","points":24,"values":{"temp_c":{"count":24,"mean":30}}},`+
			`{"start":"2026-03-31T00:00:00+02:00","end":"2026-04-01T00:00:00+02:00","points":0,"values":{"temp_c":{"count":0,"mean":null}}}]}`)
	a.get(path+"&every=1d&from=2026-03-30T12:00:00Z&to=2026-04-01T00:00:00Z&order=newest&gaps=previous&aggregates=max&measures=temp_c").
		want(t, 200, `{"buckets":[`+
			`{"start":"2026-03-31T00:00:00Z","end":"2026-04-01T00:00:00Z","points":0,"values":{"temp_c":{"max":30}},"filled":["temp_c"]},`+
			`{"start":"2026-03-30T00:00:00Z","end":"2026-03-31T00:00:00Z","points":10,"partial":true,"values":{"temp_c":{"max":30}}}]}`)
	got := a.get(path + "&every=1w&from=2026-03-01T00:00:00Z&to=2026-05-01T00:00:00Z")
	if got.StatusCode != 200 || strings.Count(got.body, `"humidity":{"count":0,"first":null,"last":null,"max":null,"mean":null,"min":null,"sum":0}`) != 2 {
		t.Errorf("all measures and aggregates: %d %s", got.StatusCode, got.body)
	}
	// The change counts from the last point of the day before.
	a.get(path+"&every=1d&zone=Europe/Berlin&from=2026-03-30T00:00:00%2B02:00&to=2026-03-31T00:00:00%2B02:00&aggregates=delta,stddev,integral,time_mean&measures=temp_c").
		want(t, 200, `{"buckets":[{"start":"2026-03-30T00:00:00+02:00","end":"2026-03-31T00:00:00+02:00","points":24,`+
			`"values":{"temp_c":{"delta":1,"integral":2484000,"stddev":0,"time_mean":30}}}]}`)
	// Of 45 hours, 23 have 29 degrees: the median is one of them, within 0.8 %.
	a.get(path+"&every=1mo&zone=Europe/Berlin&from=2026-03-29T00:00:00%2B01:00&to=2026-03-30T22:00:00%2B02:00&aggregates=count,p50,p99&measures=temp_c").
		want(t, 200, `{"buckets":[{"start":"2026-03-01T00:00:00+01:00","end":"2026-04-01T00:00:00+02:00","points":45,"partial":true,`+
			`"values":{"temp_c":{"count":45,"p50":29.125,"p99":30}}}]}`)
	// The last point, from before the interval, fills only the day that starts within 20 hours of it.
	a.get(path+"&every=1d&zone=Europe/Berlin&from=2026-03-31T09:00:00%2B02:00&to=2026-04-02T00:00:00%2B02:00&gaps=previous&max_gap=20h&aggregates=last&measures=temp_c").
		want(t, 200, `{"buckets":[`+
			`{"start":"2026-03-31T00:00:00+02:00","end":"2026-04-01T00:00:00+02:00","points":0,"partial":true,"values":{"temp_c":{"last":30}},"filled":["temp_c"]},`+
			`{"start":"2026-04-01T00:00:00+02:00","end":"2026-04-02T00:00:00+02:00","points":0,"values":{"temp_c":{"last":null}}}]}`)
	a.get(path+"&every=1s&gaps=null&from=2026-03-29T00:00:00Z&to=2026-03-30T00:00:00Z").wantProblem(t, tooManyBuckets)
}

func TestChart(t *testing.T) {
	a := newAPI(t)
	points := make([]tsdb.Point[Reading], 0, 60)
	for minute := range 60 {
		if minute < 20 || minute >= 50 { // no measurement for half an hour
			at := noon.Add(time.Duration(minute-60) * time.Minute)
			points = append(points, tsdb.Point[Reading]{Entity: roof, Time: at, Value: Reading{TempC: num(float64(minute % 7))}})
		}
	}
	if err := put(t.Context(), weather.For(a.store, acme), points); err != nil {
		t.Fatal(err)
	}
	const path = "/v1/weather/chart?site=berlin&device=roof-7&from=2026-06-01T11:00:00Z&to=2026-06-01T12:00:00Z&measure=temp_c&max_gap=10m"
	a.get(path+"&columns=2").want(t, 200, `{"source":{"exact":true},"samples":[`+
		`{"time":"2026-06-01T11:00:00Z","value":0},{"time":"2026-06-01T11:06:00Z","value":6},{"time":"2026-06-01T11:19:00Z","value":5},`+
		`{"time":"2026-06-01T11:50:00Z","value":1,"break":true},{"time":"2026-06-01T11:55:00Z","value":6},{"time":"2026-06-01T11:56:00Z","value":0},`+
		`{"time":"2026-06-01T11:59:00Z","value":3}]}`)
	a.get(path+"&columns=2&method=lttb").want(t, 200, `{"source":{"exact":true},"samples":[`+
		`{"time":"2026-06-01T11:00:00Z","value":0},{"time":"2026-06-01T11:19:00Z","value":5},`+
		`{"time":"2026-06-01T11:50:00Z","value":1,"break":true},{"time":"2026-06-01T11:59:00Z","value":3}]}`)
	a.get("/v1/weather/chart?site=berlin&device=roof-8&from=2026-06-01T11:00:00Z&to=2026-06-01T12:00:00Z").want(t, 200, `{"source":{"exact":true},"samples":[]}`)

	a.server.datasets["weather"] = show(a.store, weather, []window.Measure[Reading]{})
	p := a.get(path).wantProblem(t, invalidInput)
	if p.Field != "dataset" {
		t.Errorf("a dataset without measures: %+v", p)
	}
}
