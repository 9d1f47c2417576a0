package heatview

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

func samplesOf(r *heat.Recording, k heat.Kind) (keys []string) {
	for _, col := range r.List() {
		c := &col.Cells[k]
		for i := range c.Samples {
			keys = append(keys, string(c.At(i).Key))
		}
	}
	return keys
}

// TestMerge: merged recordings count all rows exactly, and a process with many rows does not outweigh the samples of
// one with few.
func TestMerge(t *testing.T) {
	small, large := newTestRecorder(time.Second), newTestRecorder(4*time.Second)
	for i := range 1000 {
		small.note(writes, fmt.Sprintf("small#%06d", i), 1)
	}
	for i := range 100_000 {
		large.note(writes, fmt.Sprintf("large#%06d", i), 1)
	}
	a, b := small.recording(), large.recording()
	for _, order := range [][2]*heat.Recording{{a, b}, {b, a}} {
		merged, err := Merge(order[0], nil, order[1], &heat.Recording{})
		if err != nil {
			t.Fatal(err)
		}
		if total := merged.Totals(); total.Writes != 101_000 || merged.Columns.Width != 4*time.Second {
			t.Errorf("%+v in columns of %v", total, merged.Columns.Width)
		}
		for _, col := range merged.List() {
			c := &col.Cells[writes]
			n := 0
			for i := range c.Samples {
				if strings.HasPrefix(string(c.At(i).Key), "small") {
					n++
				}
			}
			// The share of a process in the samples is that in the rows. A column may hold the small one's alone.
			if got, want := float64(n)*c.Weight(), 1000.0; n > 0 && c.Rows > 50_000 && math.Abs(got-want) > 6*math.Sqrt(want*c.Weight()) {
				t.Errorf("samples say %.0f rows of the small process, want about %.0f", got, want)
			}
		}
		if again, err := Merge(order[0], order[1]); err != nil || !bytes.Equal(fileOf(t, again), fileOf(t, merged)) {
			t.Errorf("a merge of the same recordings differs: %v", err)
		}
	}
}

// TestMergeRefuses what has no common meaning.
func TestMergeRefuses(t *testing.T) {
	a, b := newTestRecorder(time.Second), newTestRecorder(3*time.Second)
	a.note(writes, "a", 1)
	b.note(writes, "b", 1)
	if _, err := Merge(a.recording(), b.recording()); err == nil {
		t.Errorf("columns of 1 and 3 seconds: %v", err)
	}
	ranked := a.recording()
	ranked.Ranked = true
	if _, err := Merge(a.recording(), ranked); err == nil {
		t.Errorf("names and ranks: %v", err)
	}
	long := a.recording()
	long.Columns.List[0].ID += 100_000
	merged, err := Merge(a.recording(), long)
	if err != nil || merged.Columns.Span() > heat.MostColumns || merged.Totals().Writes != 2 {
		t.Errorf("a day apart: %v, %d columns", err, merged.Columns.Span())
	}
}
