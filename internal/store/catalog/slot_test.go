package catalog_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// TestSlots checks that each time has one slot, and that the slot's row and number lead back to the time, even if a
// span is not a multiple of the step.
func TestSlots(t *testing.T) {
	base := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, r := range []catalog.Rollup{
		{Span: 86_400_000, Step: 60_000},
		{Span: 3_600_000, Step: 7_000},
		{Span: 60_000, Step: 60_000},
		{Span: 400 * 86_400_000, Step: 900_000},
		{Span: 60_000, Step: 7_001},
	} {
		seen := map[[2]int64]int64{}
		for _, from := range []int64{0, base} {
			for ms := from; ms < from+20_000_000; ms += 997 {
				row, slot := r.Slot(ms)
				start := r.SlotStart(row, slot)
				if start > ms || ms >= start+r.Step || start%r.Step != 0 {
					t.Fatalf("%+v: got time %d in slot %d of row %d, which starts at %d", r, ms, slot, row, start)
				}
				if row != r.Row(start) || slot < 0 || start >= row+r.Span {
					t.Fatalf("%+v: got slot %d of row %d with the start %d, outside the row", r, slot, row, start)
				}
				if had, ok := seen[[2]int64{row, slot}]; ok && had != start {
					t.Fatalf("%+v: got slot %d of row %d for both %d and %d", r, slot, row, had, start)
				}
				seen[[2]int64{row, slot}] = start
			}
		}
	}
}

// TestMarkStamps checks that no dirty mark looks older than it is, and that a slot that is marked repeatedly has few
// versions.
func TestMarkStamps(t *testing.T) {
	hour := catalog.Rollup{Span: 30 * 86_400_000, Step: 3_600_000}
	start := time.Date(2026, 3, 29, 10, 0, 0, 0, time.UTC).UnixMilli()
	row, slot := hour.Slot(start)
	versions, last := map[int64]bool{}, int64(0)
	for now := start - 5000; now < start+2*3_600_000; now += 977 {
		at := hour.MarkStamp(row, slot, now)
		if at <= now || at < last {
			t.Fatalf("mark at time %d: got stamp %d, after %d", now, at, last)
		}
		if open := now < start+hour.Step; open && at != start+hour.Step || !open && at > now+60_000 {
			t.Fatalf("mark of the slot at %d, at time %d: got stamp %d", start, now, at)
		}
		versions[at], last = true, at
	}
	if len(versions) != 1+60 {
		t.Errorf("got %d versions of one mark in the slot's hour and the next, want 61", len(versions))
	}
	for _, now := range []int64{-5, 0, start} {
		row, slot := hour.Slot(math.MaxInt64/1000 - 1)
		if at := hour.MarkStamp(row, slot, now); at <= now || at > max(0, now)+60_000 {
			t.Errorf("mark of the last slot, at time %d: got stamp %d", now, at)
		}
	}
}
