package catalog_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/catalog"
)

// TestSlots: each time has one slot, whose row and number lead back to it, also where a span is no multiple of a step.
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
					t.Fatalf("%+v: %d is in slot %d of row %d, which starts at %d", r, ms, slot, row, start)
				}
				if row != r.Row(start) || slot < 0 || start >= row+r.Span {
					t.Fatalf("%+v: slot %d of row %d starts at %d, outside of it", r, slot, row, start)
				}
				if had, ok := seen[[2]int64{row, slot}]; ok && had != start {
					t.Fatalf("%+v: slot %d of row %d is both %d and %d", r, slot, row, had, start)
				}
				seen[[2]int64{row, slot}] = start
			}
		}
	}
}
