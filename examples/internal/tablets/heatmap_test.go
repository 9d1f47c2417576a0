package tablets_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var hour = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func found(r *heat.Recording) (out []string) {
	for _, f := range heatview.Findings(r) {
		out = append(out, string(f.Rule)+" "+f.Key)
	}
	return out
}

// modelled draws a load of the model: fronts with the keys that key returns.
func modelled(t *testing.T, load tablets.Load, key func(front int, at time.Time) string) *heat.Recording {
	t.Helper()
	r, err := tablets.Simulate(t.Context(), load, tablets.Cluster{Nodes: 10}, tablets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var counts []heatview.Count
	for i, col := range r.Columns {
		for kind, metric := range map[tablets.Kind]heat.Kind{tablets.Writes: heat.Writes, tablets.Reads: heat.Reads, tablets.Refused: heat.Failures} {
			c := heatview.Count{At: hour.Add(col.At), Kind: metric, Rows: uint64(r.Heat.Total(i, kind))}
			for front, at := range r.Heat.Samples(i, kind, 200, 1) {
				c.Keys = append(c.Keys, []byte(key(front, hour.Add(at))))
			}
			counts = append(counts, c)
		}
	}
	return heatview.FromCounts(hour, hour.Add(time.Hour), time.Minute, counts)
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
			if err := heatview.WriteHTML(&b, rec); err != nil || b.Len() == 0 {
				t.Errorf("no picture: %v", err)
			}
			if merged, err := heatview.Merge(rec, rec); err != nil || merged.Totals().Writes != 2*rec.Totals().Writes {
				t.Errorf("merged with itself it has other totals: %v", err)
			}
			b.Reset()
			if err := rec.Write(&b); err != nil {
				t.Fatal(err)
			}
			if back, err := heat.Read(&b); err != nil || back.Totals() != rec.Totals() {
				t.Errorf("read from its own file: %v", err)
			}
		})
	}
}
