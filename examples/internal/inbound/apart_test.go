package inbound

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestRecordsStayApart: records that differ in what identifies them are two points, or one of them is counted as left
// out.
func TestRecordsStayApart(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	const at = "2026-01-01T00:00:00Z"
	const arrival = "2026-01-01T00:01:18.00000"
	for i, test := range []struct {
		words, payload string
		want           []string
		out            string // the reason why one field is left out
	}{
		{"time=t,s key=d,n", `[{"t":1767225600,"n":89490200001234567890,"x":1},{"t":1767225600,"n":89490200001234567891,"x":2}]`, []string{`t1/89490200001234567890 ` + at + ` {"x":1}`, `t1/89490200001234567891 ` + at + ` {"x":2}`}, ""},
		{"time=t,s key=d,n", `{"t":1767225600,"n":1e3,"x":1}`, []string{`t1/1000 ` + at + ` {"x":1}`}, ""},
		{"time=arrival", `[{"x":1},{"x":2}]`, []string{`t1 ` + arrival + `09Z {"x":1}`, `t1 ` + arrival + `0901Z {"x":2}`}, ""},
		{"time=arrival,1m merge", `[{"x":1},{"y":2}]`, []string{`t1 2026-01-01T00:01:00Z {"x":1}`, `t1 2026-01-01T00:01:00Z {"y":2}`}, ""},
		{"time=arrival each=a.b", `{"a.b":[{"x":1}],"a":{"b":[{"x":2}]}}`, []string{`t1 ` + arrival + `09Z {"a.b.x":2}`}, outTwice},
		{"time=arrival key=d,site?", `{"x":1,"site":"-"}`, []string{`t1/\- ` + arrival + `09Z {"x":1}`}, ""},
		{"time=arrival key=d,site?", `{"x":1,"site":"\\-"}`, []string{`t1/\\- ` + arrival + `09Z {"x":1}`}, ""},
		{"time=arrival key=d,site", `{"x":1,"site":"-"}`, []string{`t1/- ` + arrival + `09Z {"x":1}`}, ""},
		{"time=arrival key=d,*", `{"x":1}`, []string{`t1/- ` + arrival + `09Z {"x":1}`}, ""},
		{"time=t,s each=l id=l.id count=1h", `{"t":1767225600,"l":[{"id":1},{"id":2}]}`, []string{`t1 ` + at + ` {"id":"1"}`, `t1 ` + at + ` {"id":"2"}`}, ""},
		{"time=l.t,s each=l id=id count=1h", `{"id":7,"l":[{"t":1767225600},{"t":1767225601}]}`, []string{`t1 ` + at + ` {"id":"7"}`}, outPlace},
	} {
		words := fmt.Sprintf("a/+d dataset=d%d %s", i, test.words)
		if !strings.Contains(words, "key=") {
			words += " key=d"
		}
		r, ds := route(t, store, words)
		got, err := r.texts(t, ds, "a/t1", test.payload)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s, %s:\n%q and %v, want\n%q", test.words, test.payload, got, err, test.want)
		}
		for l, n := range ds.LeftOut() {
			if l.Reason != test.out || n != 1 {
				t.Errorf("%s, %s: %d fields are left out because %s, want one because %q", test.words, test.payload, n, l.Reason, test.out)
			}
		}
		if n := len(ds.LeftOut()); n != min(1, len(test.out)) {
			t.Errorf("%s, %s: fields are left out for %d reasons, want %q", test.words, test.payload, n, test.out)
		}
	}
}

// TestLinesOfARoutesDataset: lines and messages that name their dataset merge, so a dataset that does not is none of
// theirs: a line would replace the point of another series.
func TestLinesOfARoutesDataset(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	for _, test := range []struct{ other, topic, payload string }{
		{"lines format=line key=host time=ns", "lines", "cpu,host=a,core=1 x=1 1767225600000000000"},
		{"all/+dataset/+host key=host time=t,s", "all/cpu/a", `{"t":1767225600,"y":2}`},
	} {
		rs, err := ParseRoutes(strings.NewReader("cpu/+host dataset=cpu key=host time=t,s\n" + test.other))
		if err != nil {
			t.Fatal(err)
		}
		schemas, err := rs.Schemas(tsdb.SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := NewDatasets(t.Context(), store, rs.Keys(), Options{Schemas: schemas})
		if err != nil {
			t.Fatal(err)
		}
		r, names := rs.Match(test.topic)
		_, err = r.Events(t.Context(), ds, acme, Message{Names: names, Payload: []byte(test.payload)})
		if err == nil || !IsFinal(err) || !strings.Contains(err.Error(), "does not say merge") {
			t.Errorf("%s: %v, want that it is refused", test.payload, err)
		}
	}
}

// TestManyFields: what is above the most fields of a point is left out.
func TestManyFields(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	for i, n := range []int{1024, 1030, 1200} {
		r, ds := route(t, store, fmt.Sprintf("a/+d/+e dataset=d%d key=d time=arrival", i))
		names, _ := r.pattern.match("a/t1/x")
		events, err := r.Events(t.Context(), ds, acme, Message{Names: names, Payload: []byte("{" + many(`"#":#`, n) + "}"), Arrived: time.Unix(1767225600, 0)})
		if err != nil || len(events) != 1 {
			t.Fatalf("%d fields: %d events and %v", n, len(events), err)
		}
		left := ds.LeftOut()[LeftOut{fmt.Sprint("d", i), outMany}]
		if stored := events[0].Record.Len(); stored != 1024 || int(left) != n+1-1024 {
			t.Errorf("of %d fields and a tag %d are stored and %d left out", n, stored, left)
		}
	}
}

// TestOneTenantDoesNotFillTheLog: the fields of one tenant do not take the place of another's in the log.
func TestOneTenantDoesNotFillTheLog(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	rs, err := ParseRoutes(strings.NewReader("a/+d dataset=d key=d time=arrival merge"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ds, err := NewDatasets(t.Context(), store, rs.Keys(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	send := func(id, payload string) {
		t.Helper()
		m := Message{Names: map[string]string{"d": "t1"}, Payload: []byte(payload), Arrived: time.Unix(1767225600, 0)}
		if _, err := rs.all[0].Events(t.Context(), ds, tenant.MustParse(id), m); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for i := range 3 {
			send("loud", `{"x":1,`+strings.ReplaceAll(many(`"n#":[]`, 1000), "n", fmt.Sprint("n", i, "-"))+`}`)
		}
		send("acme", `{"x":1,"mine":[]}`)
	}
	if n := strings.Count(log.String(), "field=mine "); n != 1 {
		t.Errorf("the log names the field of the other tenant %d times, want once", n)
	}
	if n := strings.Count(log.String(), "\n"); n > 1001 {
		t.Errorf("the log has %d lines", n)
	}
}

// TestAnotherRoutesDataset: a message whose topic names the dataset of another route, with another key, replaces no
// point of another device.
func TestAnotherRoutesDataset(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	_, ds := route(t, store, "a/+x dataset=telemetry key=x? time=t,s\nb/+dataset/+dev key=dev time=arrival,1m")
	rs, err := ParseRoutes(strings.NewReader("b/+dataset/+dev key=dev time=arrival,1m"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := rs.all[0].texts(t, ds, "b/telemetry/t1", `{"v":1}`)
	if err == nil || !IsFinal(err) {
		t.Errorf("%q and %v, want a final error", got, err)
	}
	if got, err := rs.all[0].texts(t, ds, "b/other/t1", `{"v":1}`); err != nil || len(got) != 1 {
		t.Errorf("%q and %v for a dataset of its own", got, err)
	}
}
