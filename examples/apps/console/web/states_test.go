package web

import (
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
