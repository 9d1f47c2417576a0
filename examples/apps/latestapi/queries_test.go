package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// newMeters returns a server with two meters of one street and one of another. For three hours up to noon each counts 1
// kWh every half hour; the first is silent for the second hour, and its switch is off from then on.
func newMeters(t *testing.T) *api {
	t.Helper()
	a := newAPI(t)
	var points []tsdb.Point[Meter]
	for n, e := range []tsdb.Entity{tsdb.NewEntity("main", "m-1"), tsdb.NewEntity("main", "m-2"), tsdb.NewEntity("side", "m-3")} {
		for i := range 6 {
			m := Meter{WattHours: num(float64(1000 * (i + 1))), Volts: num(float64(230 + n)), Switch: codec.Str("on")}
			if n == 0 && i >= 2 && i < 4 {
				continue
			} else if n == 0 && i >= 4 {
				m.Switch = codec.Str("off")
			}
			points = append(points, tsdb.Point[Meter]{Entity: e, Time: noon.Add(time.Duration(i-6) * 30 * time.Minute), Value: m})
		}
	}
	if err := put(t.Context(), meters.For(a.store, acme), points); err != nil {
		t.Fatal(err)
	}
	return a
}

const (
	morning = "&from=2026-06-01T09:00:00Z&to=2026-06-01T12:00:00Z"
	meterM1 = "street=main&meter=m-1" + morning
)

// TestStates: the time in each state, as JSON and as CSV.
func TestStates(t *testing.T) {
	a := newMeters(t)
	a.get("/v1/meters/windows?every=3h&measures=switch&aggregates=states,last&"+meterM1).want(t, 200,
		`{"buckets":[{"start":"2026-06-01T09:00:00Z","end":"2026-06-01T12:00:00Z","points":4,"values":{"switch":{"last":"off","states":`+
			`{"times":[{"state":"off","time_s":3600,"entered":1},{"state":"on","time_s":7200,"entered":0}],"transitions":1,"unknown_s":0,"first":"on","last":"off"}}}}]}`)
	a.get("/v1/meters/windows?every=3h&measures=switch&format=csv&"+meterM1).want(t, 200,
		"start,end,points,bad,partial,switch.count,switch.first,switch.last,switch.states,filled\n"+
			`2026-06-01T09:00:00Z,2026-06-01T12:00:00Z,4,0,false,4,on,off,"{""times"":[{""state"":""off"",""time_s"":3600,""entered"":1},`+
			`{""state"":""on"",""time_s"":7200,""entered"":0}],""transitions"":1,""unknown_s"":0,""first"":""on"",""last"":""off""}",`)
	if p := a.get("/v1/meters/windows?every=3h&measures=volts&aggregates=states&"+meterM1).wantProblem(t, invalidInput); p.Field != "aggregates" || !strings.Contains(p.Limit, "State") {
		t.Errorf("states of a gauge: %+v", p)
	}
	if p := a.get("/v1/meters/windows?every=3h&measures=switch&aggregates=mean&"+meterM1).wantProblem(t, invalidInput); p.Field != "aggregates" || !strings.Contains(p.Limit, "name") {
		t.Errorf("the mean of a state: %+v", p)
	}
	if got := a.get("/v1/meters/history?street=main&meter=m-1&size=1&format=csv").body; !strings.HasSuffix(got, "\nmain,m-1,2026-06-01T11:30:00Z,,6,230,off,\n") {
		t.Errorf("a point with a state is %q", got)
	}
	if p := a.get("/v1/meters/chart?measure=switch&"+meterM1).wantProblem(t, invalidInput); p.Field != "measure" {
		t.Errorf("a chart of a text: %+v", p)
	}
}

// TestOutages: silences longer than a time, and the uptime by windows.
func TestOutages(t *testing.T) {
	a := newMeters(t)
	a.get("/v1/meters/outages?longer=31m&"+meterM1).want(t, 200, `{"outages":[{"from":"2026-06-01T09:30:00Z","to":"2026-06-01T11:00:00Z"}],"more":false}`)
	a.get("/v1/meters/outages?longer=10m&limit=1&order=oldest&"+meterM1).want(t, 200, `{"outages":[{"from":"2026-06-01T09:00:00Z","to":"2026-06-01T09:30:00Z"}],"more":true}`)
	a.get("/v1/meters/outages?longer=10m&format=csv&"+meterM1).want(t, 200,
		"from,to\n2026-06-01T11:30:00Z,\n2026-06-01T11:00:00Z,2026-06-01T11:30:00Z\n2026-06-01T09:30:00Z,2026-06-01T11:00:00Z\n2026-06-01T09:00:00Z,2026-06-01T09:30:00Z")
	a.get("/v1/meters/uptime?longer=31m&every=2h&"+meterM1).want(t, 200, `{"buckets":[`+
		`{"start":"2026-06-01T08:00:00Z","end":"2026-06-01T10:00:00Z","partial":true,"up_s":1800,"down_s":1800,"outages":1},`+
		`{"start":"2026-06-01T10:00:00Z","end":"2026-06-01T12:00:00Z","up_s":3600,"down_s":3600,"outages":1}]}`)
	a.get("/v1/meters/uptime?longer=31m&every=3h&order=newest&format=csv&"+meterM1).want(t, 200,
		"start,end,partial,up_s,down_s,outages\n2026-06-01T09:00:00Z,2026-06-01T12:00:00Z,false,5400,5400,1")
	for _, path := range []string{"outages?", "uptime?every=1h&"} {
		for query, field := range map[string]string{"": "longer", "&longer=0s": "longer", "&longer=-1s": "longer", "&longer=long": "longer"} {
			if p := a.get("/v1/meters/"+path+meterM1+query).wantProblem(t, invalidInput); p.Field != field {
				t.Errorf("%s%s: the problem is with %q", path, query, p.Field)
			}
		}
	}
	if p := a.get("/v1/meters/outages?longer=1m&limit=1001&"+meterM1).wantProblem(t, invalidInput); p.Field != "limit" {
		t.Errorf("1001 outages: %+v", p)
	}
	a.get("/v1/meters/uptime?longer=1m&every=1s&"+meterM1).wantProblem(t, tooManyBuckets)
}

// TestGroups: the windows of each street add up those of its meters.
func TestGroups(t *testing.T) {
	a := newMeters(t)
	const query = "/v1/meters/groups?every=3h&measures=kwh&aggregates=increase" + morning
	const bucket = `{"start":"2026-06-01T09:00:00Z","end":"2026-06-01T12:00:00Z","points":%d,"entities":%d,"values":{"kwh":{"increase":%d}}}`
	street := func(name string, entities, points, kwh int) string {
		return fmt.Sprintf(`{"key":{%s},"entities":%d,"buckets":[`+bucket+`]}`, name, entities, points, entities, kwh)
	}
	a.get(query).want(t, 200, `{"groups":[`+street("", 3, 16, 15)+`]}`)
	a.get(query+"&by=street").want(t, 200, `{"groups":[`+street(`"street":"main"`, 2, 10, 10)+`,`+street(`"street":"side"`, 1, 6, 5)+`]}`)
	a.get(query+"&street=main").want(t, 200, `{"groups":[`+street(`"street":"main"`, 2, 10, 10)+`]}`)
	a.get(query+"&by=street&street=side").want(t, 200, `{"groups":[`+street(`"street":"side"`, 1, 6, 5)+`]}`)
	a.get(query+"&by=street&format=lines").want(t, 200, street(`"street":"main"`, 2, 10, 10)+"\n"+street(`"street":"side"`, 1, 6, 5)+"\n"+`{"end":true}`)
	a.get(query+"&by=street&format=csv").want(t, 200, "street,start,end,entities,points,bad,partial,kwh.increase,filled\n"+
		"main,2026-06-01T09:00:00Z,2026-06-01T12:00:00Z,2,10,0,false,10,\nside,2026-06-01T09:00:00Z,2026-06-01T12:00:00Z,1,6,0,false,5,")
	a.get(query+"&street=none").want(t, 200, `{"groups":[]}`)
	a.get(query+"&by=street", "Authorization: Bearer secret=2").want(t, 200, `{"groups":[]}`)
	for parameter, field := range map[string]string{"&by=meter": "by", "&by=": "by", "&street=main&meter=m-1": "meter", "&meter=m-1": "street"} {
		if p := a.get(query+parameter).wantProblem(t, invalidInput); p.Field != field {
			t.Errorf("%s: the problem is with %q, want %q", parameter, p.Field, field)
		}
	}
	a.get(strings.Replace(query, "every=3h", "every=1s", 1)).wantProblem(t, tooManyBuckets)
}

// TestAlign: the values of several meters at the same times.
func TestAlign(t *testing.T) {
	a := newMeters(t)
	const keys = `{"keys":[{"street":"main","meter":"m-1"},{"street":"side","meter":"m-3"}]}`
	align := func(query string) response { return a.do(http.MethodPost, "/v1/meters/align?"+query[1:], keys) }
	const series = `{"series":[{"key":{"street":"main","meter":"m-1"},"measure":"kwh"},{"key":{"street":"side","meter":"m-3"},"measure":"kwh"}],"rows":[`
	align(morning+"&every=1h&measures=kwh&max_age=20m").want(t, 200, series+
		`{"time":"2026-06-01T09:00:00Z","values":[{"value":1,"time":"2026-06-01T09:00:00Z"},{"value":1,"time":"2026-06-01T09:00:00Z"}]},`+
		`{"time":"2026-06-01T10:00:00Z","values":[null,{"value":3,"time":"2026-06-01T10:00:00Z"}]},`+
		`{"time":"2026-06-01T11:00:00Z","values":[{"value":5,"time":"2026-06-01T11:00:00Z"},{"value":5,"time":"2026-06-01T11:00:00Z"}]}]}`)
	align(morning+"&measures=kwh,volts&order=newest&format=csv").want(t, 200,
		"time,main/m-1 kwh,main/m-1 volts,side/m-3 kwh,side/m-3 volts\n2026-06-01T11:30:00Z,6,230,6,232\n2026-06-01T11:00:00Z,5,230,5,232\n"+
			"2026-06-01T10:30:00Z,2,230,4,232\n2026-06-01T10:00:00Z,2,230,3,232\n2026-06-01T09:30:00Z,2,230,2,232\n2026-06-01T09:00:00Z,1,230,1,232")
	for query, field := range map[string]string{"&every=1h&from=2026-06-01T09:00:00Z": "to", morning + "&measures=switch": "measures", morning + "&max_age=-1s": "max_age", morning + "&zone=UTC": `parameter "zone"`} {
		if p := align(query).wantProblem(t, invalidInput); p.Field != field {
			t.Errorf("%s: the problem is with %q, want %q", query, p.Field, field)
		}
	}
	align(morning+"&every=1s").wantProblem(t, tooManyBuckets)
	body := func(n int, key string) string {
		return `{"keys":[` + strings.TrimSuffix(strings.Repeat(key+",", n), ",") + `]}`
	}
	const key = `{"street":"main","meter":"m-1"}`
	for text, field := range map[string]string{body(51, key): "keys", `{"keys":[]}`: "keys", `{"keys":[{"street":"main"}]}`: "meter", `[]`: "body"} {
		if p := a.do(http.MethodPost, "/v1/meters/align?"+morning[1:], text).wantProblem(t, invalidInput); p.Field != field {
			t.Errorf("%.60s: the problem is with %q, want %q", text, p.Field, field)
		}
	}
	if got := a.do(http.MethodPost, "/v1/meters/align?every=1h"+morning, body(50, key)); got.StatusCode != 200 {
		t.Errorf("100 series: %d %s", got.StatusCode, got.body)
	}
}
