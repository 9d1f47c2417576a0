package web

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// TestBandsOfFieldsInTurn: a point without the field ends no state, but a gap and a null do.
func TestBandsOfFieldsInTurn(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	b := bands{gap: 20 * time.Second, column: 1}
	b.add(at(0), "open", true)
	for second := 10; second <= 50; second += 10 {
		b.pass(at(second))
	}
	b.add(at(60), "shut", true)
	b.pass(at(100)) // after a gap
	b.add(at(110), "open", true)
	b.add(at(120), "", false)
	b.close(at(130))
	want := []band{{From: 0, To: 60_000, State: "open"}, {From: 60_000, To: 60_000, State: "shut"}, {From: 110_000, To: 120_000, State: "open"}}
	if !slices.Equal(b.all, want) {
		t.Errorf("the bands are %+v, want %+v", b.all, want)
	}
}

// TestBandsPassDamagedPoints: the state before the interval goes on in it, also if points between do not decode.
func TestBandsPassDamagedPoints(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	for minute, state := range []any{"open", json.Number("1e400"), "shut"} {
		p.put(acme, roof, noon.Add(time.Duration(minute)*time.Minute), map[string]any{"s": state})
	}
	end := noon.Add(2 * time.Minute)
	for _, second := range []int{0, 30, 90} {
		from := noon.Add(time.Duration(second) * time.Second)
		var got struct{ Bands []band }
		p.read(address("states", "entity", "berlin/roof-7", "field", "s", "from", stampOf(from), "to", stampOf(end), "gap", "0s"), &got)
		if want := []band{{From: millis(from), To: millis(end), State: "open"}}; !slices.Equal(got.Bands, want) {
			t.Errorf("from second %d the bands are %+v, want %+v", second, got.Bands, want)
		}
	}
}
