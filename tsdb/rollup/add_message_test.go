package rollup_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestMessagesCountOnceUnderEveryFault: a message counts exactly once, however often it is delivered and whatever
// responses are lost.
func TestMessagesCountOnceUnderEveryFault(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByMessage}, tsdb.SchemaOptions{})
		in := rollup.NewAdder(a.rollup, a.repo, nil)
		r := rand.New(rand.NewPCG(9, 10))
		for f, kind := range addFaults {
			for _, method := range []tsdbtest.Method{tsdbtest.CheckAndMutateRow, tsdbtest.ReadRows} {
				for i, ev := range a.events(r, fewer(8)) {
					id := fmt.Sprintf("%d/%s/%d", f, method, i)
					if kind.name != "none" {
						a.conn.Inject(kind.fault.On(method))
					}
					added, err := in.AddMessage(t.Context(), id, ev.Entity, ev.Time, ev.Value)
					a.conn.Clear()
					said := added && err == nil
					if err != nil && method == tsdbtest.ReadRows {
						t.Errorf("%s on reads: %v", kind.name, err)
					}
					for range 2 { // the message is delivered again
						again, err := in.AddMessage(t.Context(), id, ev.Entity, ev.Time, ev.Value)
						if err != nil || again && said {
							t.Fatalf("%s: delivered again: %v, %v", kind.name, again, err)
						}
						said = said || again
					}
					a.count(ev)
				}
				a.check(kind.name + " on " + string(method))
			}
		}
	})
}

// TestMessagesAreForgotten: after Remember, a row forgets a message and would count it again. A full row refuses new
// messages until it has forgotten old ones.
func TestMessagesAreForgotten(t *testing.T) {
	clock := testkit.NewClock(start)
	r := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: rollup.ByMessage, Remember: time.Minute, MaxMessages: 32})
	s := tsdb.MustDefine("views", tsdb.Key("ip", "ad"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, s)
	a := &ads{t: t, rollup: r, table: table, model: map[string]int64{}}
	in := rollup.NewAdder(r, s.For(store, acme), nil)
	ev := tsdb.Point[view]{Entity: tsdb.NewEntity("10.0.0.1", "x"), Time: start, Value: view{Cents: 1}}
	add := func(id string, want bool) {
		t.Helper()
		added, err := in.AddMessage(t.Context(), id, ev.Entity, ev.Time, ev.Value)
		if err != nil || added != want {
			t.Fatalf("message %s: %v, %v, want %v", id, added, err, want)
		}
		if added {
			a.count(ev)
		}
	}
	add("a", true)
	add("a", false)
	clock.Add(time.Minute - time.Millisecond)
	add("a", false)
	clock.Add(2 * time.Millisecond)
	add("a", true)
	full := 0
	for i := range 200 {
		added, err := in.AddMessage(t.Context(), fmt.Sprint(i), ev.Entity, ev.Time, ev.Value)
		switch {
		case errors.Is(err, rollup.ErrTooManyMessages) && errors.Is(err, tsdb.ErrRejected):
			full++
		case err != nil || !added:
			t.Fatalf("message %d: %v, %v", i, added, err)
		default:
			a.count(ev)
		}
	}
	_, control := a.stored()
	if full == 0 || len(control) > 32 {
		t.Errorf("%d of 200 messages were refused, and the row holds %d markers, want some and at most 32", full, len(control))
	}
	clock.Add(2 * time.Minute)
	for i := range 16 {
		add(fmt.Sprint("later ", i), true)
	}
	a.check("forgotten")
	if _, control = a.stored(); len(control) > 32 {
		t.Errorf("the row still holds %d markers", len(control))
	}
}

// TestOnceNeverCountsTwice: a stored event counts, a rejected one does not, and an unknown one counts at most once.
func TestOnceNeverCountsTwice(t *testing.T) {
	for _, many := range []bool{false, true} {
		t.Run(fmt.Sprintf("many=%v", many), func(t *testing.T) {
			addBubble(t, func(t *testing.T) {
				a := newAds(t, rollup.Options{Mode: rollup.Once}, tsdb.SchemaOptions{})
				in := rollup.NewAdder(a.rollup, a.repo, nil)
				r := rand.New(rand.NewPCG(11, 12))
				method := tsdbtest.MutateRow
				if many {
					method = tsdbtest.MutateRows
				}
				before := int64(0)
				for _, f := range addFaults {
					a.conn.Clear()
					if f.name != "none" {
						a.conn.Inject(f.fault.On(method))
					}
					events := a.events(r, 30)
					var outcomes []tsdb.Outcome
					if many {
						outcomes, _ = in.AddMany(t.Context(), events)
					} else {
						for _, ev := range events {
							err := in.Add(t.Context(), ev.Entity, ev.Time, ev.Value)
							o := tsdb.Outcome{State: tsdb.Stored}
							if w, ok := errors.AsType[*tsdb.WriteError](err); ok {
								o = w.Outcome
							}
							outcomes = append(outcomes, o)
						}
					}
					stored, unknown := int64(0), int64(0)
					for _, o := range outcomes {
						switch o.State {
						case tsdb.Stored:
							stored++
						case tsdb.Unknown:
							unknown++
						}
					}
					cells, _ := a.stored()
					n := int64(0)
					for k, v := range cells {
						if strings.Contains(k, "keep.s:n@") {
							n += v
						}
					}
					if got := n - before; got < stored || got > stored+unknown {
						t.Errorf("%s: %d events are counted; %d were stored and %d unknown", f.name, got, stored, unknown)
					}
					if lost := strings.HasPrefix(f.name, "answer"); lost && (n-before != 30 || stored < 30 && f.name != "answers lost for a while") {
						t.Errorf("%s: %d stored, %d unknown, %d counted", f.name, stored, unknown, n-before)
					}
					before = n
				}
			})
		})
	}
}

// TestOfficialClientCountsTwice shows why the modes exist: the official client repeats an addition when its response
// was lost, and reports success.
func TestOfficialClientCountsTwice(t *testing.T) {
	a := newAds(t, rollup.Options{Mode: rollup.Once}, tsdb.SchemaOptions{})
	client, _ := tsdbtest.Clients(t, a.conn)
	a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))
	m := bigtable.NewMutation()
	m.AddIntToCell("keep.s", "n", 0, 5)
	if err := client.Open(tsdbtest.Table).Apply(t.Context(), "acme#by hand", m); err != nil {
		t.Fatal(err)
	}
	cells, _ := a.stored()
	if got := cells["acme#by hand keep.s:n@0"]; got != 10 {
		t.Errorf("the official client stored %d, want 10: if it stores 5, additions need no guard", got)
	}
}

// TestUnguardedClientIsRefused: a client without the interceptors would repeat an addition, so nothing is sent
// through it.
func TestUnguardedClientIsRefused(t *testing.T) {
	a := newAds(t, rollup.Options{Mode: rollup.Once}, tsdb.SchemaOptions{})
	client, _ := tsdbtest.Clients(t, a.conn)
	store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := rollup.NewAdder(a.rollup, a.schema.For(store, acme), nil)
	a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))
	ev := tsdb.Point[view]{Entity: tsdb.NewEntity("10.0.0.1", "x"), Time: start, Value: view{Cents: 1}}
	if err := in.Add(t.Context(), ev.Entity, ev.Time, ev.Value); !errors.Is(err, bt.ErrUnguarded) || !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("Add = %v, want ErrUnguardedClient", err)
	}
	if _, err := in.AddMany(t.Context(), []tsdb.Point[view]{ev}); !errors.Is(err, bt.ErrUnguarded) {
		t.Errorf("AddMany = %v, want ErrUnguardedClient", err)
	}
	a.check("unguarded")
}

// TestAMessageKnowsItsOwnMarker: the first attempt adds the event and its response is lost. The second attempt finds
// the marker, and the call returns true. Another delivery of the message also finds the marker, and returns false.
func TestAMessageKnowsItsOwnMarker(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByMessage}, tsdb.SchemaOptions{})
		in := rollup.NewAdder(a.rollup, a.repo, nil)
		for i, ev := range a.events(rand.New(rand.NewPCG(1, 2)), 4) {
			a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
			for n, want := range []bool{true, false} {
				if added, err := in.AddMessage(t.Context(), fmt.Sprint(i), ev.Entity, ev.Time, ev.Value); added != want || err != nil {
					t.Errorf("message %d, delivery %d: %v, %v, want %v", i, n, added, err, want)
				}
			}
			a.conn.Clear()
			a.count(ev)
		}
		a.check("own markers")
	})
}

// TestMessagesCountOnceAfterAKill: a process that was killed within its first minute has left a folder that knows the
// time, by which the next process remembers messages.
func TestMessagesCountOnceAfterAKill(t *testing.T) {
	views := rollup.MustDefine("views", window.Days(1), []rollup.Measure[reading]{}, rollup.Options{Mode: rollup.ByMessage})
	s := tsdb.MustDefine("readings", tsdb.Key("site"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{views}})
	live, killed := t.TempDir(), t.TempDir()
	first, err := embedded.New(t.Context(), embedded.Options{Dir: live, Exclusive: true}) // CopyFS copies no socket
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := first.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	testkit.CopyOpen(t, killed, live)
	store, err := embedded.Open(t.Context(), killed)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a := rollup.NewAdder(views, s.For(store, acme), nil)
	for i, want := range []bool{true, false} {
		added, err := a.AddMessage(t.Context(), "m", tsdb.NewEntity("a"), time.Unix(0, 0), reading{})
		if err != nil || added != want {
			t.Errorf("delivery %d: added is %v, %v, want %v", i+1, added, err, want)
		}
	}
}
