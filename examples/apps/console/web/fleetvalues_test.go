package web

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestFleetOfFieldsInTurn: a row has the newest value of each field, with its time if the newest point lacks it, also
// of more entities than are read one by one, and where a value is further back than the points that are read together.
func TestFleetOfFieldsInTurn(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, n := range []int{3, fewLacking + 10} {
		p := newPage(t, nil)
		p.login("secret-of-acme")
		for i := range n {
			e := tsdb.NewEntity("berlin", string(rune('a'+i%26))+string(rune('a'+i/26)))
			p.put(acme, e, noon, map[string]any{"temp": 20.5 + float64(i), "rare": true})
			for m := range 20 {
				p.put(acme, e, noon.Add(time.Duration(m+1)*time.Minute), map[string]any{"door": m})
			}
			p.put(acme, e, noon.Add(18*time.Minute+time.Second), map[string]any{"temp": 30 + i}) // late
			p.put(acme, e, noon.Add(time.Hour), map[string]any{"event": "connected", "temp": nil})
		}
		var list struct {
			Rows []struct {
				T  float64
				V  []any
				At []any
			}
		}
		p.read(address("latest", "field", "temp", "field", "rare", "field", "event", "field", "none"), &list)
		if len(list.Rows) != n {
			t.Fatalf("%d rows, want %d", len(list.Rows), n)
		}
		ms := func(d time.Duration) float64 { return float64(noon.Add(d).UnixMilli()) }
		temps := map[any]bool{}
		for _, r := range list.Rows {
			temps[r.V[0]] = true
			if r.T != ms(time.Hour) || !slices.Equal(r.V[1:], []any{true, "connected", nil}) ||
				!slices.Equal(r.At, []any{ms(18*time.Minute + time.Second), ms(0), nil, nil}) {
				t.Errorf("of %d entities, a row is %+v", n, r)
			}
		}
		if len(temps) != n || !temps[30.0] {
			t.Errorf("of %d entities, the temperatures are %v, want those of the late points", n, temps)
		}
		for where, want := range map[string]int{"rare": n, "rare now": 0, "event now": n} {
			if p.read(address("latest", "field", "temp", "where", where), &list); len(list.Rows) != want {
				t.Errorf("of %d entities, %d are %s, want %d", n, len(list.Rows), where, want)
			}
		}
		p.read(address("asof", "entity", "berlin/aa", "field", "temp", "field", "rare", "time", "2026-06-01T12:10:00Z"), &list)
		if r := list.Rows[0]; r.T != ms(10*time.Minute) || !slices.Equal(r.V, []any{20.5, true}) || !slices.Equal(r.At, []any{ms(0), ms(0)}) {
			t.Errorf("as of 12:10 the row is %+v", r)
		}
	}
}

// TestWaitingFields: the points of an entity of a fleet that wait together are sent as the newest value of each field.
func TestWaitingFields(t *testing.T) {
	w := newWaiting(true)
	e := tsdb.NewEntity("a")
	w.add(row{Entity: e, Time: 10, Values: []any{20.5, nil, "x"}})
	w.add(row{Entity: e, Time: 30, Values: []any{nil, "connected", nil}})
	w.add(row{Entity: e, Time: 20, Values: []any{21.5, "late", nil}})
	rows, _ := w.take()
	if r := rows[0]; len(rows) != 1 || r.Time != 30 || !slices.Equal(r.Values, []any{21.5, "connected", "x"}) || len(r.Times) != 3 || r.Times[0] != 20 || !math.IsNaN(r.Times[1]) || r.Times[2] != 10 {
		t.Errorf("the rows are %+v", rows)
	}
}
