package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/fieldtable"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestTableOfFields: the newest value, the history, CSV and windows show each field of the table with all its digits.
func TestTableOfFields(t *testing.T) {
	a := newAPI(t)
	cells := fieldtable.Store(t, a.store)
	opts := dynamic.Options{Descriptors: fieldtable.Descriptors(), Messages: map[string]string{"pb": fieldtable.Message}}
	of := map[string][]fieldtable.Cell{}
	for _, c := range cells {
		of[c.Dataset] = append(of[c.Dataset], c)
	}
	for d, err := range a.store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		cells := of[d.Name()]
		if cells == nil {
			continue
		}
		schema, err := dynamic.Schema(d, opts)
		if err != nil {
			t.Fatal(err)
		}
		var measures []window.Measure[codec.Record]
		for i, c := range cells {
			if i > 0 && c.Field == cells[i-1].Field {
				continue
			}
			measures = append(measures, window.Measure[codec.Record]{Name: "n:" + c.Field, Of: func(r codec.Record) (float64, bool) { // an enum is a text here
				v, _ := r.Lookup(c.Field)
				return v.AsNumber().Number()
			}}, window.Measure[codec.Record]{Name: "s:" + c.Field, Kind: window.State, Text: func(r codec.Record) (string, bool) { return r.Text(c.Field) }})
		}
		a.server.datasets[d.Name()] = show(a.store, schema, measures)
		tableOf(t, a, d, cells)
	}
	t.Logf("%d cells", len(cells))
}

func tableOf(t *testing.T, a *api, d tsdb.Dataset, cells []fieldtable.Cell) {
	t.Helper()
	address := func(query string) string {
		return "/v1/" + d.Name() + "/" + query + "?" + url.Values{
			fieldtable.Key: {fieldtable.Entity}, "from": {fieldtable.Start.Format(time.RFC3339)}, "to": {fieldtable.End.Format(time.RFC3339)},
		}.Encode()
	}
	type row struct {
		Time  time.Time
		Value json.RawMessage
	}
	history := decode[struct{ Points []row }](t, a.get(address("history")).body).Points
	history = append(history, decode[row](t, a.get("/v1/"+d.Name()+"/latest?"+fieldtable.Key+"="+fieldtable.Entity).body))
	lines := a.get(address("history") + "&format=lines").body
	for line := range strings.Lines(lines) {
		if r := decode[row](t, line); !r.Time.IsZero() {
			history = append(history, r)
		}
	}
	if !strings.HasSuffix(lines, `{"end":true}`+"\n") {
		t.Errorf("%s: the lines do not end: %s", d.Name(), lines)
	}
	for _, r := range history {
		fields := map[string]json.RawMessage{"": r.Value}
		if len(r.Value) > 0 && r.Value[0] == '{' {
			if err := json.Unmarshal(r.Value, &fields); err != nil {
				t.Fatalf("%s: %v in %s", d.Name(), err, r.Value)
			}
		}
		for _, c := range cells {
			if c.Time.Equal(r.Time) && !fieldtable.Same(c.Value, fields[c.Field]) {
				t.Errorf("%v is %s, want %v", c, fields[c.Field], c.Value)
			}
		}
	}
	file, err := csv.NewReader(strings.NewReader(a.get(address("history") + "&format=csv").body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	filed := map[string]string{}
	for _, r := range file[1:] {
		for i, name := range file[0] {
			filed[r[1]+" "+name] = r[i]
		}
	}
	buckets := map[time.Time]map[string]map[string]json.RawMessage{}
	for _, b := range decode[struct {
		Buckets []struct {
			Start  time.Time
			Values map[string]map[string]json.RawMessage
		}
	}](t, a.get(address("windows")+"&every=1h").body).Buckets {
		buckets[b.Start] = b.Values
	}
	for _, c := range cells {
		at := c.Time.Format(time.RFC3339)
		number := c.Number
		if strings.HasPrefix(c.Dataset, "t_pb") && c.Value.Kind() == codec.KindStr && number.Kind() == codec.KindInt {
			number = codec.Value{} // an enum, which is a text among the fields of a record
		}
		x, wanted := number.Number()
		if got := filed[at+" n:"+c.Field]; wanted && !fieldtable.Nearest(number, got) || !wanted && got != "" {
			t.Errorf("%v is %q in a file, want %v", c, got, number)
		}
		if got := filed[at+" s:"+c.Field]; got != c.State {
			t.Errorf("%v is the state %q in a file, want %q", c, got, c.State)
		}
		wanted = wanted && !math.IsNaN(x) && !math.IsInf(x, 0) // which no window counts
		in := buckets[c.Time]["n:"+c.Field]
		for _, aggregate := range []string{"sum", "first", "last", "min", "max"} {
			if got := string(in[aggregate]); wanted && !fieldtable.Nearest(number, got) || !wanted && got != "null" && got != "" && aggregate != "sum" {
				t.Errorf("%v has the %s %s, want %v", c, aggregate, got, number)
			}
		}
		if got := in["count"]; wanted != (string(got) == "1") {
			t.Errorf("%v counts %s", c, got)
		}
		if got := buckets[c.Time]["s:"+c.Field]["last"]; c.State == "" && string(got) != "null" && got != nil || c.State != "" && string(got) != quoted(c.State) {
			t.Errorf("%v is the state %s, want %q", c, got, c.State)
		}
	}
}

func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSpace(b.String())
}

// TestFieldsOfOwnDatasets: devices send null, leave fields out, and write numbers in many ways. What is not there is
// neither 0 nor in a count, and whole numbers keep their digits.
func TestFieldsOfOwnDatasets(t *testing.T) {
	a := newAPI(t)
	readings := tsdb.MustDefine(weather.Name(), tsdb.Key("site", "device"), codec.JSON[json.RawMessage](), tsdb.SchemaOptions{Retention: d90, MaxFuture: time.Hour})
	energy := tsdb.MustDefine(meters.Name(), tsdb.Key("street", "meter"), codec.JSON[json.RawMessage](), tsdb.SchemaOptions{})
	for i, tt := range []struct{ temp, shown, number string }{
		{"null", "", ""},
		{"", "", ""},
		{"{}", "", ""},
		{"0", "0", "0"},
		{`""`, `""`, ""},
		{`"n/a"`, `"n/a"`, ""},
		{`"21.5"`, `"21.5"`, "21.5"},
		{"9007199254740993", "9007199254740993", "9007199254740992"},
		{"100000000000000000000", "1e+20", "100000000000000000000"},
		{"true", "true", "1"},
	} {
		device := fmt.Sprint("d", i)
		value, want := "{}", `"value":{}`
		if tt.temp != "" {
			value = `{"temp_c":` + tt.temp + `}`
		}
		if tt.shown != "" {
			want = `"value":{"temp_c":` + tt.shown + `}`
		}
		if err := readings.For(a.store, acme).Put(t.Context(), tsdb.NewEntity("berlin", device), noon, json.RawMessage(value)); err != nil {
			t.Fatal(err)
		}
		query := "?site=berlin&device=" + device
		if got := a.get("/v1/weather/latest" + query).body; !strings.Contains(got, want+"}") {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
		rows := strings.Split(a.get("/v1/weather/history"+query+"&format=csv").body, "\n")
		if got, want := rows[1], "berlin,"+device+",2026-06-01T12:00:00Z,,"+tt.number+",,"; got != want {
			t.Errorf("%s: the file has %s, want %s", value, got, want)
		}
		count := map[bool]string{false: `"count":0`, true: `"count":1`}[tt.number != ""]
		windows := a.get("/v1/weather/windows" + query + "&every=1h&from=2026-06-01T12:00:00Z&to=2026-06-01T13:00:00Z&measures=temp_c&aggregates=count,first").body
		if !strings.Contains(windows, count) || tt.number != "" && !strings.Contains(windows, `"first":`+tt.number) || tt.number == "" && !strings.Contains(windows, `"first":null`) {
			t.Errorf("%s: the windows are %s, want %s with the first number %s", value, windows, count, tt.number)
		}
	}
	for i, wh := range []string{"9007199254740993", `"9007199254740995"`, "null", "9007199254740998.0"} {
		if err := energy.For(a.store, acme).Put(t.Context(), tsdb.NewEntity("main", "m"), noon.Add(time.Duration(i)*time.Minute), json.RawMessage(`{"wh":`+wh+`,"switch":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	windows := a.get("/v1/meters/windows?street=main&meter=m&every=1h&from=2026-06-01T12:00:00Z&to=2026-06-01T13:00:00Z").body
	for _, want := range []string{`"first":9007199254740.993`, `"last":9007199254740.998`, `"increase":0.005`, `"count":3`, `"first":"true"`} {
		if !strings.Contains(windows, want) {
			t.Errorf("the meter's windows are %s, want %s", windows, want)
		}
	}
}
