package rollup_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCountsThatAreThePoints: a count that equals the number of points is not stored, another one is, however a bucket
// changes. Reads return all counts.
func TestCountsThatAreThePoints(t *testing.T) {
	o := newOne(t, rollup.Options{}, gc.Class{})
	client, _ := tsdbtest.Clients(t, o.conn)
	wet := int64(7)
	put := func(minute int, v reading) {
		t.Helper()
		if err := o.repo.Put(t.Context(), roof, start.Add(time.Duration(minute)*time.Minute), v); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, counts ...string) {
		t.Helper()
		o.Add(48 * time.Hour)
		o.pass(t)
		got := map[string]int64{}
		row, err := client.Open(tsdbtest.Table).ReadRow(t.Context(), o.onlyRow(t, client))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range row["keep.s"] {
			if name := item.Column[len("keep.s:"):]; name == "n" || name[:2] == "c." {
				got[name] = int64(binary.BigEndian.Uint64(item.Value))
			}
		}
		var have []string
		for _, name := range slices.Sorted(maps.Keys(got)) {
			have = append(have, fmt.Sprint(name, "=", got[name]))
		}
		if !slices.Equal(have, counts) {
			t.Errorf("%s: stored counts are %v, want %v", what, have, counts)
		}
	}
	read := func(what string, points, temps, wets int64) {
		t.Helper()
		for b, err := range rollup.For(o.hour, o.repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			if got := [3]int64{b.Points, b.Values[0].Count, b.Values[1].Count}; got != [3]int64{points, temps, wets} {
				t.Errorf("%s: read counts of points and numbers are %v", what, got)
			}
		}
	}
	put(0, reading{TempC: 1, Wet: &wet})
	put(1, reading{TempC: 2, Wet: &wet})
	want("each has both", "n=2")
	read("each has both", 2, 2, 2)
	put(2, reading{TempC: 3})
	want("one has one", "c.wet=2", "n=3")
	read("one has one", 3, 3, 2)
	put(2, reading{TempC: 3, Wet: &wet})
	want("it has both now", "n=3")
	read("it has both now", 3, 3, 3)
	for minute := range 3 {
		put(minute, reading{TempC: 5000})
	}
	want("none has any", "n=3")
	read("none has any", 3, 0, 0)
}

// onlyRow returns the key of the rollup's only row.
func (o *one) onlyRow(t *testing.T, client *bigtable.Client) string {
	t.Helper()
	var keys []string
	err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup.hour#"), func(row bigtable.Row) bool {
		keys = append(keys, row.Key())
		return true
	})
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	return keys[0]
}
