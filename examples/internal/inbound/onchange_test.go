package inbound_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// routed is a store that routes write to.
type routed struct {
	t      *testing.T
	routes *inbound.Routes
	ds     *inbound.Datasets
	sink   inbound.Sink
}

func newRouted(t *testing.T, routes ...string) *routed {
	t.Helper()
	rs, err := inbound.ParseRoutes(strings.NewReader(strings.Join(routes, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := rs.Schemas(tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	ds, err := inbound.NewDatasets(t.Context(), store, rs.Keys(), inbound.Options{Schemas: schemas})
	if err != nil {
		t.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) })
	return &routed{t, rs, ds, inbound.Sink{Store: store, Writer: w}}
}

// send gives a message to the sink, and returns the sorted states of its points. With batch it does so by a Batch.
func (r *routed) send(topic, payload string, batch bool) (states []string) {
	r.t.Helper()
	route, names := r.routes.Match(topic)
	acme := tenant.MustParse("acme")
	events, err := route.Events(r.t.Context(), r.ds, acme, inbound.Message{Names: names, Payload: []byte(payload), Arrived: time.Now()})
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan tsdb.Outcome, len(events))
	var b inbound.Batch[int]
	for i, e := range events {
		if !batch {
			r.sink.Enqueue(r.t.Context(), acme, e.Point, func(o tsdb.Outcome) { ended <- o })
		} else if _, err := b.Add(e.Point, i, len(payload)); err != nil {
			r.t.Fatal(err)
		}
	}
	if batch {
		if err := b.Store(r.t.Context(), r.sink, acme, func(_ []int, o tsdb.Outcome) { ended <- o }); err != nil {
			r.t.Fatal(err)
		}
	}
	for range events {
		states = append(states, (<-ended).State.String())
	}
	slices.Sort(states) // outcomes come in any order
	return states
}

// TestOnChangeRoutes: a route with onchange= leaves out what says nothing new: numbers within the dead band, equal
// texts and bools. A field that is new, gone or of another kind is a change, and topics with one field each do not
// disturb each other.
func TestOnChangeRoutes(t *testing.T) {
	for _, batch := range []bool{false, true} {
		r := newRouted(t,
			"data/+device dataset=data key=device time=ts,s onchange=0.5,5m",
			"each/+device/+ dataset=each key=device time=ts,s merge onchange=0,5m",
			"lines format=line key=device time=s onchange=2,5m",
		)
		for i, step := range []struct{ topic, payload, want string }{
			{"data/a", `{"ts":1000,"temp":20,"on":true,"mode":"auto"}`, "stored"},
			{"data/a", `{"ts":1010,"temp":20.5,"on":true,"mode":"auto"}`, "unchanged"},
			{"data/a", `{"ts":1020,"temp":20.6,"on":true,"mode":"auto"}`, "stored"},
			{"data/a", `{"ts":1030,"temp":20.6,"on":false,"mode":"auto"}`, "stored"},
			{"data/a", `{"ts":1040,"temp":20.6,"on":false,"mode":"heat"}`, "stored"},
			{"data/a", `{"ts":1050,"temp":20.6,"on":false,"mode":"heat","new":1}`, "stored"},
			{"data/a", `{"ts":1060,"temp":"20.6","on":false,"mode":"heat","new":1}`, "stored"},
			{"data/b", `{"ts":1060,"temp":20,"on":true,"mode":"auto"}`, "stored"},
			{"data/b", `{"ts":1360,"temp":20,"on":true,"mode":"auto"}`, "stored"},
			{"lines", "room,device=a t=20 1767225600\nroom,device=a t=21 1767225610\nroom,device=a t=22 1767225620\nroom,device=a t=23 1767225630", "stored stored stored unchanged"},
		} {
			payload := strings.ReplaceAll(step.payload, `"ts":`, `"ts":176722`) // in 2026
			if got := strings.Join(r.send(step.topic, payload, batch), " "); got != step.want {
				t.Errorf("batch %v, %d: %s is %s, want %s", batch, i, payload, got, step.want)
			}
		}
		for i := range 10 {
			want := map[bool]string{true: "stored", false: "unchanged"}[i == 0]
			for _, name := range []string{"temp", "power"} {
				if got := r.send("each/a/"+name, fmt.Sprintf(`{"ts":%d,%q:7}`, 1767225600+i, name), batch)[0]; got != want {
					t.Errorf("%d: %s is %s, want %s", i, name, got, want)
				}
			}
		}
	}
}

// TestOnChangeWords: faulty words are refused by name.
func TestOnChangeWords(t *testing.T) {
	for line, want := range map[string]string{
		"a dataset=a key=d time=ts onchange=x,5m":                            "dead band",
		"a dataset=a key=d time=ts onchange=-1,5m":                           "dead band",
		"a dataset=a key=d time=ts onchange=NaN,5m":                          "dead band",
		"a dataset=a key=d time=ts onchange=1":                               "the time of onchange",
		"a dataset=a key=d time=ts onchange=1,0s":                            "the time of onchange",
		"a dataset=a key=d time=ts onchange":                                 "no value",
		"a dataset=a key=d time=ts count=1h id=x onchange=1,5m":              "exclude",
		"a dataset=a key=d time=ts onchange=1,5m\nb dataset=a key=d time=ts": "another key, merge, onchange",
	} {
		if _, err := inbound.ParseRoutes(strings.NewReader(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
