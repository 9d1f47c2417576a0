package heatmap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
