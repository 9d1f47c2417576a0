package tsdb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// ages describes the points of one device: how many are visible, and how many have expired.
type ages struct{ live, dead int }

// TestUnderCostsEntitiesNotHistory counts the requests and the rows that the engine reads, for histories of all
// lengths, including expired ones that are not collected.
func TestUnderCostsEntitiesNotHistory(t *testing.T) {
	type load struct {
		entities int
		history  func(i int) ages
		few      bool // want far fewer requests than entities
	}
	for name, l := range map[string]load{
		"none":                     {0, nil, false},
		"one point":                {300, func(int) ages { return ages{1, 0} }, true},
		"ten points":               {200, func(int) ages { return ages{10, 0} }, true},
		"one, and some expired":    {200, func(int) ages { return ages{1, 8} }, true},
		"all expired, short":       {200, func(int) ages { return ages{0, 8} }, true},
		"one device, long":         {1, func(int) ages { return ages{1000, 0} }, false},
		"long":                     {40, func(int) ages { return ages{150, 0} }, false},
		"long, expired":            {40, func(int) ages { return ages{1, 150} }, false},
		"all expired, long":        {40, func(int) ages { return ages{0, 150} }, false},
		"twenty points":            {150, func(int) ages { return ages{20, 0} }, false},
		"every tenth long":         {100, func(i int) ages { return ages{1 + i%10/9*200, 0} }, false},
		"short, then long":         {250, func(i int) ages { return ages{1 + i/220*150, 0} }, false},
		"long, then short":         {250, func(i int) ages { return ages{1 + (1-min(i/40, 1))*150, 0} }, false},
		"long live, long dead":     {40, func(i int) ages { return ages{i % 2 * 150, 150} }, false},
		"few live among long dead": {40, func(i int) ages { return ages{1 - min(i%10, 1), 150} }, false},
	} {
		for _, salts := range []int{0, 4} {
			if testkit.Raced && salts == 0 {
				continue // the plain run has both
			}
			s := readings(t, tsdb.SchemaOptions{Retention: d90, Salts: salts})
			c := testkit.NewClock(start)
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
			repo := s.For(store, acme)
			now := start.Add(80 * 24 * time.Hour)
			var points []tsdb.Point[reading]
			var want []tsdb.Point[reading]
			for i := range l.entities {
				e := tsdb.NewEntity("berlin", fmt.Sprintf("d-%05d", i))
				a := l.history(i)
				for k := range a.live {
					points = append(points, tsdb.Point[reading]{Entity: e, Time: now.Add(-time.Duration(k) * time.Minute), Value: reading{float64(i)}})
				}
				if a.live > 0 {
					want = append(want, points[len(points)-a.live])
				}
				for k := range a.dead {
					points = append(points, tsdb.Point[reading]{Entity: e, Time: start.Add(-time.Duration(k) * time.Minute)})
				}
			}
			// Points next to the prefix, in both directions.
			for _, site := range []string{"berlim", "berlin-2", "berlio"} {
				points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity(site, "d-00000"), Time: now})
			}
			for batch := range slices.Chunk(points, 20_000) {
				putAll(t, repo, batch)
			}
			c.Set(start.Add(91 * 24 * time.Hour))

			conn.Reset()
			var got []tsdb.Point[reading]
			for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d salts: %d points, want %d", name, salts, len(got), len(want))
			}
			n := conn.Counts()
			requests, ranges := n.Calls[tsdbtest.ReadRows], max(1, salts)
			if most := l.entities + 10 + salts; requests > most || requests < 1 {
				t.Errorf("%s, %d salts: %d requests for %d entities, want at most %d", name, salts, requests, l.entities, most)
			}
			if l.few && requests > 10*ranges+l.entities/50 {
				t.Errorf("%s, %d salts: %d requests for %d entities with short histories, want far fewer", name, salts, requests, l.entities)
			}
			if most := int64(16*l.entities + 32*ranges + 10); n.RowsSeen > most {
				t.Errorf("%s, %d salts: %d rows seen for %d entities, want at most %d", name, salts, n.RowsSeen, l.entities, most)
			}
			if testing.Verbose() {
				t.Logf("%s, %d salts: %d entities, %d requests, %d rows seen", name, salts, l.entities, requests, n.RowsSeen)
			}
			conn.Reset()
			var entities []tsdb.Entity
			for e, err := range repo.Under(tsdb.NewPrefix("berlin")).Entities(t.Context(), tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				entities = append(entities, e)
			}
			if !slices.EqualFunc(entities, want, func(e tsdb.Entity, p tsdb.Point[reading]) bool { return e == p.Entity }) {
				t.Errorf("%s, %d salts: %d entities, want %d", name, salts, len(entities), len(want))
			}
			if m := conn.Counts(); m.RowsSeen > n.RowsSeen+100 || m.Calls[tsdbtest.ReadRows] > requests+10 {
				t.Errorf("%s, %d salts: Entities takes %v, Under.Latest %v", name, salts, m, n)
			}
		}
	}
}
