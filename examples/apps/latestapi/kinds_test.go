package main

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestKeysOfKinds: clients write and read numbers as numbers, whatever their stored form. Anything else is refused, and
// the error names the field.
func TestKeysOfKinds(t *testing.T) {
	a := newAPI(t)
	gates := tsdb.MustDefine("gates", tsdb.Key("station").Int("level", 2).Uint("gate", 4), codec.Int64(), tsdb.SchemaOptions{})
	if err := a.store.Ensure(t.Context(), gates); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["gates"] = show(a.store, gates, nil)
	for level := range 3 {
		e, err := gates.Entity("zoo", -level, 7)
		if err != nil {
			t.Fatal(err)
		}
		if err := gates.For(a.store, acme).Put(t.Context(), e, noon.Add(time.Duration(level)*time.Second), int64(level)); err != nil {
			t.Fatal(err)
		}
	}
	const lowest = `{"key":{"station":"zoo","level":"-2","gate":"7"},"time":"2026-06-01T12:00:02Z","value":2}`
	a.get("/v1/gates/latest?station=zoo&level=-2&gate=7").want(t, 200, lowest)
	a.get("/v1/gates/latest?station=zoo&level=-02&gate=0007").want(t, 200, lowest)
	a.get("/v1/gates/group?station=zoo&level=-2").want(t, 200, `{"points":[`+lowest+`],"more":false}`)
	a.do("POST", "/v1/gates/latest", `{"keys":[{"station":"zoo","level":"-2","gate":"7"},{"station":"zoo","level":"up","gate":"7"}]}`).want(t, 200,
		`{"answers":[{"status":"found",`+lowest[1:len(lowest)-1]+`},{"status":"failed","key":{"station":"zoo","level":"up","gate":"7"},`+
			`"problem":{"type":"`+problemTypes+`invalid-input","title":"A parameter or a part of the body was refused","status":400,`+
			`"detail":"key field level is \"up\"; want a number from -99 to 99","field":"key field level","value":"\"up\"","limit":"a number from -99 to 99"}}],"complete":false}`)
	for _, path := range []string{"latest?station=zoo&level=100&gate=7", "group?station=zoo&level=up", "history?station=zoo&level=0&gate=-1"} {
		a.get("/v1/gates/"+path).wantProblem(t, invalidInput)
	}
}

// TestEvents: two events at one instant both appear, with their IDs, also if a page ends between them.
func TestEvents(t *testing.T) {
	a := newAPI(t)
	visits := tsdb.MustDefine("visits", tsdb.Key("user"), codec.Int64(), tsdb.SchemaOptions{Identity: true})
	if err := a.store.Ensure(t.Context(), visits); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["visits"] = show(a.store, visits, nil)
	ada := tsdb.NewEntity("ada")
	for i, id := range []string{"a", "b", "c"} {
		if err := visits.For(a.store, acme).WithID(id).Put(t.Context(), ada, noon, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	const first = `{"key":{"user":"ada"},"time":"2026-06-01T12:00:00Z","id":"a","value":0}`
	a.get("/v1/visits/latest?user=ada").want(t, 200, first)
	type answer struct {
		Points []struct{ ID string }
		Next   string
	}
	ids := ""
	for path := "/v1/visits/history?user=ada&size=1"; path != ""; {
		got := decode[answer](t, a.get(path).body)
		for _, p := range got.Points {
			ids += p.ID
		}
		path = got.Next
	}
	if ids != "abc" {
		t.Errorf("the pages show the events %q, want abc", ids)
	}
}
