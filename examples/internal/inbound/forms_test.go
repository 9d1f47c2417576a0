package inbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// texts returns the points of a message as texts: the key, the time and the fields.
func (r *Route) texts(t *testing.T, ds *Datasets, topic, payload string) (texts []string, err error) {
	t.Helper()
	names, ok := r.pattern.match(topic)
	if !ok {
		t.Fatalf("the topic %q does not match the route", topic)
	}
	before := maps.Clone(names)
	events, err := r.Events(t.Context(), ds, acme, Message{Names: names, Payload: []byte(payload), Arrived: time.Unix(1767225678, 900)})
	if !maps.Equal(before, names) {
		t.Errorf("%s: the names of the message are %v now, and were %v", payload, names, before)
	}
	for _, e := range events {
		fields, err := json.Marshal(e.Record)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprintf("%v %s %s", e.Entity, e.Time.UTC().Format(time.RFC3339Nano), fields))
	}
	return texts, err
}

// TestForms reads payloads of every form. Each case says the route's words, the topic, the payload, and the points or a
// part of the error.
func TestForms(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	const at = "2026-01-01T00:00:00Z"
	const arrival = "2026-01-01T00:01:18.0000009Z"
	for i, test := range []struct {
		words, topic, payload string
		want                  []string
		fault                 string
	}{
		// A message is stored with what can be stored.
		{"time=t,s", "a/t1", `{"t":1767225600,"x":1,"list":[1,2],"deep":{"1":{"2":{"3":{"4":{"5":{"6":{"7":{"8":1}}}}}}}},"big":1e999,"":2,"tag:x":3}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t,s", "a/t1", `{"t":1767225600,"list":[1,2]}`, nil, `"list" is left out, it is an array`},
		{"time=t,s", "a/t1", `{"t":1767225600,"x":null}`, nil, ""},
		{"time=arrival", "a/t1", `{"x":null,"y":{"z":null}}`, nil, ""},
		{"time=arrival", "a/t1", `{}`, nil, `no fields`},
		{"time=t,s strict", "a/t1", `{"t":1767225600,"x":1,"list":[1,2]}`, nil, `"list" is an array`},
		{"time=t,s strict", "a/t1", `{"t":1767225600,"x":1e999}`, nil, `too large`},
		{"time=t,s strict", "a/t1", `{"t":1767225600,"a":{"b":1},"a.b":2}`, nil, `twice`},
		{"time=t,s", "a/t1", `{"t":1767225600,"a":{"b":1},"a.b":2}`, []string{`t1 ` + at + ` {"a.b":1}`}, ""},
		// Arrays.
		{
			"time=t,s arrays=index", "a/t1", `{"t":1767225600,"by_minute":[0,1.5,null],"in":[[1],{"x":2}]}`,
			[]string{`t1 ` + at + ` {"by_minute.0":0,"by_minute.1":1.5,"in.0.0":1,"in.1.x":2}`},
			"",
		},
		{
			"time=t,s arrays=json", "a/t1", `{"t":1767225600,"by_minute":[0,1.50,null,{"b":"z","a":1}]}`,
			[]string{`t1 ` + at + ` {"by_minute":"[0,1.50,null,{\"a\":1,\"b\":\"z\"}]"}`},
			"",
		},
		{"time=arrival arrays=index", "a/t1", `[1,2]`, []string{`t1 ` + arrival + ` {"value.0":1,"value.1":2}`}, ""},
		{"time=arrival", "a/t1", `[1,{"x":2}]`, nil, "is an array"},
		// each= makes a point of each element.
		{
			"time=t,s each=rx.meta key=d,rx.meta.gw", "a/t1", `{"t":1767225600,"x":1,"rx":{"n":2,"meta":[{"gw":"g1","rssi":-1},{"gw":"g2","rssi":-2}]}}`,
			[]string{`t1/g1 ` + at + ` {"rx.meta.rssi":-1,"rx.n":2,"x":1}`, `t1/g2 ` + at + ` {"rx.meta.rssi":-2,"rx.n":2,"x":1}`},
			"",
		},
		{"time=list.t,s each=list", "a/t1", `{"list":[{"t":1767225600,"x":1},{"t":1767225601,"x":2}]}`, []string{`t1 ` + at + ` {"list.x":1}`, `t1 2026-01-01T00:00:01Z {"list.x":2}`}, ""},
		{
			"time=arrival each=list key=d,list.k", "a/t1", `{"list":[{"k":"a","x":1},{"k":"b","x":2},{"k":"a","x":3}]}`,
			[]string{`t1/a ` + arrival + ` {"list.x":1}`, `t1/b ` + arrival + ` {"list.x":2}`},
			"",
		},
		{"time=arrival each=list strict", "a/t1", `{"list":[1,2]}`, nil, "same key and time"},
		{"time=arrival each=list", "a/t1", `{"x":1,"list":[]}`, []string{`t1 ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival each=list", "a/t1", `{"x":1}`, []string{`t1 ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival each=list", "a/t1", `{"list":[7]}`, []string{`t1 ` + arrival + ` {"list":7}`}, ""},
		{"time=arrival each=list", "a/t1", `{"list":[` + strings.Repeat("1,", 1000) + `1]}`, nil, "at most 1000 points"},
		{"time=arrival each=list", "a/t1", `{` + many(`"f#":1`, 900) + `,"list":[` + strings.Repeat("1,", 99) + `1]}`, nil, "at most 20000 values"},
		// Payloads that are no object.
		{"time=arrival", "a/t1", `21.5`, []string{`t1 ` + arrival + ` {"value":21.5}`}, ""},
		{"time=arrival", "a/t1", `true`, []string{`t1 ` + arrival + ` {"value":true}`}, ""},
		{"time=arrival", "a/t1", `on`, []string{`t1 ` + arrival + ` {"value":"on"}`}, ""},
		{"time=arrival", "a/t1", ` 21.5 °C` + "\n", []string{`t1 ` + arrival + ` {"value":"21.5 °C"}`}, ""},
		{"time=arrival", "a/t1", `"on"`, []string{`t1 ` + arrival + ` {"value":"on"}`}, ""},
		{"time=arrival", "a/t1", `null`, nil, ""},
		{"time=arrival number=value", "a/t1", `"on"`, nil, "wants a number"},
		{"time=arrival into=state", "a/t1", `on`, []string{`t1 ` + arrival + ` {"state":"on"}`}, ""},
		{"time=arrival into=state strict", "a/t1", `on`, []string{`t1 ` + arrival + ` {"state":"on"}`}, ""},
		{"time=arrival strict", "a/t1", `on`, nil, "not JSON"},
		{"time=arrival strict", "a/t1", `1`, nil, "into="},
		{"time=arrival into=+e", "a/t1/power", `1`, []string{`t1 ` + arrival + ` {"power":1}`}, ""},
		{"time=arrival into=+e", "a/t1/power", `{"x":1}`, []string{`t1 ` + arrival + ` {"tag:e":"power","x":1}`}, ""},
		{"time=arrival into=+e", "a/t1/", `1`, nil, "e is empty"},
		{"time=arrival", "a/t1", `{"x":1`, nil, "not JSON"},
		{"time=arrival", "a/t1", `"on`, nil, "not JSON"},
		{"time=arrival", "a/t1", "on\x00", nil, "not JSON"},
		{"time=arrival", "a/t1", "1 2", []string{`t1 ` + arrival + ` {"value":"1 2"}`}, ""},
		{"time=arrival", "a/t1", `{"x":1}{"x":2}`, nil, "more than one"},
		{"time=arrival", "a/t1", "\ufeff" + `{"x":1}`, []string{`t1 ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival", "a/t1", "\ufeff", nil, ""},
		{"time=arrival", "a/t1", "", nil, ""},
		{"time=arrival strict", "a/t1", "", nil, "empty"},
		// Times.
		{"time=arrival,1m merge", "a/t1", `1`, []string{`t1 2026-01-01T00:01:00Z {"value":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":1767225600,"x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":"1767225600000","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":1767225600000000,"x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":1767225600000000000,"x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":1.7672256005e9,"x":1}`, []string{`t1 2026-01-01T00:00:00.5Z {"x":1}`}, ""},
		{"time=t,auto", "a/t1", `{"t":17,"x":1}`, nil, "in no unit"},
		{"time=t,auto", "a/t1", `{"t":"2026-01-01t00:00:00z","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-01-01T01:00:00.123456789123+0100","x":1}`, []string{`t1 2026-01-01T00:00:00.123456789Z {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-01-01 01:00:00,5 +01","x":1}`, []string{`t1 2026-01-01T00:00:00.5Z {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-01-01 00:00:00 UTC","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-01-01T00:00:00","x":1}`, nil, "zone="},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2026-01-01T01:00:00","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2026-01-01T00:00:00Z","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2025-10-26T02:30:00","x":1}`, []string{`t1 2025-10-26T00:30:00Z {"x":1}`}, ""},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2025-10-26T03:00:00","x":1}`, []string{`t1 2025-10-26T02:00:00Z {"x":1}`}, ""},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2025-03-30T02:30:00","x":1}`, nil, "skip"},
		{"time=t zone=Europe/Berlin", "a/t1", `{"t":"2026-01-02","x":1}`, []string{`t1 2026-01-01T23:00:00Z {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-01-02","x":1}`, nil, "zone="},
		{"time=t zone=Pacific/Kiritimati", "a/t1", `{"t":"2026-01-01T14:00:00","x":1}`, []string{`t1 ` + at + ` {"x":1}`}, ""},
		{"time=t", "a/t1", `{"t":"2026-13-01T00:00:00Z","x":1}`, nil, "RFC 3339"},
		{"time=t", "a/t1", `{"t":"yesterday","x":1}`, nil, "RFC 3339"},
		{"time=t", "a/t1", `{"t":true,"x":1}`, nil, "neither"},
		{"time=t", "a/t1", `{"t":[1],"x":1}`, nil, "missing"},
		// text= keeps texts as they are written.
		{"time=t,s text=x,y,z", "a/t1", `{"t":1767225600,"x":7.0,"y":true,"z":"1e5","n":1e5}`, []string{`t1 ` + at + ` {"n":100000.0,"x":"7.0","y":"true","z":"1e5"}`}, ""},
		{"time=t,s text=x,gps.lat", "a/t1", `{"t":1767225600,"gps":{"lat":1.50},"x":null}`, []string{`t1 ` + at + ` {"gps.lat":"1.50"}`}, ""},
		{"time=t,s key=d,n text=n", "a/t1", `{"t":1767225600,"n":7.0,"x":1}`, []string{`t1/7.0 ` + at + ` {"x":1}`}, ""},
		// Parts of the key that may be missing.
		{"time=arrival key=d,site?", "a/t1", `{"x":1}`, []string{`t1/- ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival key=d,site?", "a/t1", `{"x":1,"site":""}`, []string{`t1/- ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival key=d,site?", "a/t1", `{"x":1,"site":"s"}`, []string{`t1/s ` + arrival + ` {"x":1}`}, ""},
		{"time=arrival key=d,site", "a/t1", `{"x":1}`, nil, `"site" is missing`},
	} {
		pattern := strings.Replace("a/+d/+e", "/+e", strings.Repeat("/+e", strings.Count(test.topic, "/")-1), 1)
		words := fmt.Sprintf("%s dataset=d%d %s", pattern, i, test.words)
		if !strings.Contains(words, "key=") {
			words += " key=d"
		}
		r, ds := route(t, store, words)
		got, err := r.texts(t, ds, test.topic, test.payload)
		switch {
		case test.fault == "" && (err != nil || !slices.Equal(got, test.want)):
			t.Errorf("%s, %s: %q and %v, want %q", test.words, test.payload, got, err, test.want)
		case test.fault != "" && (err == nil || !IsFinal(err) || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%s, %.100s: %q and the error %v, want a final one with %q", test.words, test.payload, got, err, test.fault)
		}
	}
}

// TestLeftOutFieldsAreCounted counts fields by dataset and reason, and names each in the log once.
func TestLeftOutFieldsAreCounted(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	rs, err := ParseRoutes(strings.NewReader("a/+d dataset=d key=d time=arrival merge"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ds, err := NewDatasets(t.Context(), store, rs.Keys(), Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Schema: tsdb.SchemaOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := rs.all[0].texts(t, ds, "a/t1", `{"x":1,"l":[1],"m":[2],"big":1e999,"":1}`); err != nil {
			t.Fatal(err)
		}
	}
	want := map[LeftOut]uint64{{"d", outArray}: 6, {"d", outLarge}: 3, {"d", outName}: 3}
	if got := ds.LeftOut(); !maps.Equal(got, want) {
		t.Errorf("left out %v, want %v", got, want)
	}
	for _, name := range []string{"field=l ", "field=m ", "field=big "} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("the log has %q %d times, want once:\n%s", name, n, &log)
		}
	}
}

// FuzzEvents gives hostile payloads to routes of every form.
func FuzzEvents(f *testing.F) {
	store, _ := tsdbtest.Open(f, tsdbtest.Options{})
	var routes []*Route
	var all []*Datasets
	for i, words := range []string{"time=t,auto", "time=t zone=Europe/Berlin arrays=json", "time=arrival arrays=index each=l into=+e number=x", "time=t,ms strict"} {
		rs, err := ParseRoutes(strings.NewReader(fmt.Sprintf("a/+e dataset=d%d key=k? merge %s", i, words)))
		if err != nil {
			f.Fatal(err)
		}
		ds, err := NewDatasets(f.Context(), store, rs.Keys(), Options{})
		if err != nil {
			f.Fatal(err)
		}
		routes, all = append(routes, rs.all[0]), append(all, ds)
	}
	for _, payload := range []string{`{"t":1767225600,"l":[1,{"x":"2"}],"k":7}`, `{"t":"2026-01-01 00:00:00,5 +0100"}`, "on", "\ufeff21.5", `[[1],{"x":[]}]`, `{"a":{"b":null}}`} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		for i, r := range routes {
			events, err := r.Events(t.Context(), all[i], acme, Message{Names: map[string]string{"e": "v"}, Payload: []byte(payload), Arrived: time.Unix(1767225600, 0)})
			if err != nil && (len(events) > 0 || !IsFinal(err) || len(err.Error()) > 2048) {
				t.Errorf("route %d, %q: %d events and the error %.300v", i, payload, len(events), err)
			}
			for _, e := range events {
				if e.Record.Len() == 0 || e.Time.Year() < 2000 {
					t.Errorf("route %d, %q: the point %v at %v", i, payload, e.Record, e.Time)
				}
			}
		}
	})
}
