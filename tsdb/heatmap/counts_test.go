package heatmap_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/tablets"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

var hour = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// FromCounts draws what was not recorded here: a log of accesses, or the result of a computation.
func ExampleFromCounts() {
	from := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	recording, err := heatmap.FromCounts(from, from.Add(2*time.Minute), time.Minute, []heatmap.Count{
		{At: from, Metric: heatmap.Reads, Rows: 600, Bytes: 60_000, Keys: [][]byte{[]byte("acme#user-1"), []byte("acme#user-7")}},
		{At: from.Add(time.Minute), Metric: heatmap.Reads, Rows: 60, Bytes: 6_000, Keys: [][]byte{[]byte("acme#user-3")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(recording.Totals().Reads, "rows read")
	// Output: 660 rows read
}

// modelled draws a load of the model: fronts with the keys that key returns.
func modelled(t *testing.T, load tablets.Load, key func(front int, at time.Time) string) *heatmap.Recording {
	t.Helper()
	r, err := tablets.Simulate(t.Context(), load, tablets.Cluster{Nodes: 10}, tablets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var counts []heatmap.Count
	for i, col := range r.Columns {
		for kind, metric := range map[tablets.Kind]heatmap.Metric{tablets.Writes: heatmap.Writes, tablets.Reads: heatmap.Reads, tablets.Refused: heatmap.Failures} {
			c := heatmap.Count{At: hour.Add(col.At), Metric: metric, Rows: uint64(r.Heat.Total(i, kind))}
			for front, at := range r.Heat.Samples(i, kind, 200, 1) {
				c.Keys = append(c.Keys, []byte(key(front, hour.Add(at))))
			}
			counts = append(counts, c)
		}
	}
	rec, err := heatmap.FromCounts(hour, hour.Add(time.Hour), time.Minute, counts)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestModelledLoads: a load that was simulated is found as what it is, as a recorded one.
func TestModelledLoads(t *testing.T) {
	testkit.Plain(t)
	stay := func(front int, _ time.Time) string { return fmt.Sprintf("device-%05d", front) }
	fronts := slices.Repeat([]tablets.Front{{Writes: 10}}, 4000)
	hot := slices.Clone(fronts)
	hot[1234].Writes = 10_000
	for _, test := range []struct {
		name string
		load tablets.Load
		key  func(front int, at time.Time) string
		want []string
	}{
		{"time first", tablets.Load{Fronts: []tablets.Front{{Writes: 40_000, Moves: true}}}, func(_ int, at time.Time) string {
			return fmt.Sprintf("%d#device-%05d", at.UnixMilli(), at.UnixNano()%4000)
		}, []string{"sequential ", "failing "}},
		{"entity first", tablets.Load{Fronts: fronts}, stay, nil},
		{"a hot entity", tablets.Load{Fronts: hot}, stay, []string{"hot entity device-01234"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec := modelled(t, test.load, test.key)
			if got := found(rec); !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
			if n := rec.Totals().Writes; n < 140_000_000 || n > 190_000_000 {
				t.Errorf("%d writes are drawn, want those of 40,000 a second in an hour, or 50,000", n)
			}
			var b bytes.Buffer
			if err := rec.WriteText(&b, heatmap.PictureOptions{}); err != nil || b.Len() == 0 {
				t.Errorf("no picture: %v", err)
			}
			if merged, err := heatmap.Merge(rec, rec); err != nil || merged.Totals().Writes != 2*rec.Totals().Writes {
				t.Errorf("merged with itself it has other totals: %v", err)
			}
			b.Reset()
			if err := rec.Write(&b); err != nil {
				t.Fatal(err)
			}
			if back, err := heatmap.Read(&b); err != nil || back.Totals() != rec.Totals() {
				t.Errorf("read from its own file: %v", err)
			}
		})
	}
}

// TestFromCountsRefuses: the error names what is wrong.
func TestFromCountsRefuses(t *testing.T) {
	key := [][]byte{[]byte("k")}
	good := heatmap.Count{At: hour, Metric: heatmap.Writes, Rows: 1, Keys: key}
	change := func(f func(c *heatmap.Count)) []heatmap.Count {
		c := good
		f(&c)
		return []heatmap.Count{good, c}
	}
	for _, test := range []struct {
		from, to time.Time
		width    time.Duration
		counts   []heatmap.Count
		want     string
	}{
		{hour, hour.Add(time.Hour), 0, nil, "width is 0s"},
		{hour, hour.Add(time.Hour), time.Second, nil, "at most 256 columns; these are 3600"},
		{hour, hour, time.Minute, nil, "to is"},
		{time.Time{}, hour, 24 * time.Hour, nil, "between 1678 and 2262"},
		{hour, hour.Add(time.Hour), time.Minute, change(func(c *heatmap.Count) { c.Metric = heatmap.Latency }), "counts[1].Metric is latency"},
		{hour, hour.Add(time.Hour), time.Minute, change(func(c *heatmap.Count) { c.At = hour.Add(time.Hour) }), "counts[1].At is"},
		{hour, hour.Add(time.Hour), time.Minute, change(func(c *heatmap.Count) { c.Keys = nil }), "counts[1].Keys is empty"},
		{hour, hour.Add(time.Hour), time.Minute, change(func(c *heatmap.Count) { c.Rows = 0 }), "counts[1].Keys is 1 keys"},
	} {
		_, err := heatmap.FromCounts(test.from, test.to, test.width, test.counts)
		if !errors.Is(err, heatmap.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("the error is %v, want one with %q", err, test.want)
		}
	}
}
