package tsdb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestChildrenEqualAModel: on random entities, some of whose points have all expired, and with the points of a
// neighbour, the children are the distinct parts of the entities that have visible points.
func TestChildrenEqualAModel(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 3}, "identity": {Identity: true, Salts: 2}, "classes": {FormerClasses: []gc.Class{{Name: "d300", Policy: gc.MaxAge(300 * 24 * time.Hour)}}},
		"heads": {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds}, "heads only": {Head: tsdb.Head{Points: 2, Only: true}, Precision: tsdb.Milliseconds, Salts: 2},
	} {
		if testkit.Raced && name != "plain" && name != "salted" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Retention = d90
			s := tsdb.MustDefine("events", tsdb.Key("region", "site", "device"), codec.Int64(), opts)
			c := testkit.NewClock(start)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
			m := prefixModel{s.For(store, acme), map[storedPlace]int64{}}
			rnd := rand.New(rand.NewPCG(7, uint64(len(name))))
			names := []string{"a", "a#", "a!", "ab", "b", "ü", "~", "$"}
			var points []point
			for _, region := range names[:5] {
				for _, site := range names {
					devices := []int{1, 1, 2, 5, 40}[rnd.IntN(5)]
					expired := rnd.IntN(4) == 0 // all points of the site will have
					for device := range devices {
						for k := range []int{1, 3, 60}[rnd.IntN(3)] {
							at := start.Add(-time.Duration(k) * time.Minute)
							if expired || rnd.IntN(5) == 0 {
								at = at.AddDate(0, 0, -50)
							}
							p := point{Entity: tsdb.NewEntity(region, site, fmt.Sprint("d", device)), Time: at, Value: 1}
							if opts.Identity {
								p.ID = "x"
							}
							points = append(points, p)
						}
					}
				}
			}
			m.put(t, points)
			other := s.For(store, tenant.MustParse("acme2"))
			for _, p := range points[:50] {
				p.Entity = tsdb.NewEntity("neighbour", "a", "b")
				if _, err := other.PutMany(t.Context(), []point{p}); err != nil {
					t.Fatal(err)
				}
			}
			c.Set(start.AddDate(0, 0, 60))
			oldest := c.Now().Add(-90 * 24 * time.Hour)
			prefixes := []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("none")}
			for _, region := range names[:5] {
				prefixes = append(prefixes, tsdb.NewPrefix(region), tsdb.NewPrefix(region, "a"), tsdb.NewPrefix(region, "a#"))
			}
			for _, p := range prefixes {
				var want []string
				for _, v := range m.points(p, tsdb.AllTime(), oldest) {
					want = append(want, v.Entity.Parts()[len(p.Parts())])
				}
				want = slices.Compact(want)
				for _, width := range []tsdb.Concurrency{1, 100} {
					if got := allOf(t, m.repo.Under(p).Children(t.Context(), width)); !slices.Equal(got, want) {
						t.Errorf("children of %s are %q, want %q", p, got, want)
					}
				}
				for _, in := range []tsdb.Interval{
					tsdb.AllTime(), tsdb.Since(start.Add(-2 * time.Minute)), tsdb.Until(start.AddDate(0, 0, -1)), tsdb.Until(start.Add(-30 * time.Minute)),
					tsdb.Between(start.Add(-2*time.Minute), start.Add(-time.Minute)), tsdb.Between(start, start), tsdb.Since(start.AddDate(1, 0, 0)), tsdb.Until(time.Unix(0, 0)),
				} {
					var want []tsdb.Entity
					if !opts.Head.Only && len(p.Parts()) == 0 { // older points are not kept; the other prefixes differ in nothing
						for _, v := range m.points(p, in, oldest) {
							want = append(want, v.Entity)
						}
						want = slices.Compact(want)
						if got := allOf(t, m.repo.Under(p).Entities(t.Context(), in)); !slices.Equal(got, want) {
							t.Errorf("entities of %s in %v are %v, want %v", p, in, got, want)
						}
					}
				}
				for got, err := range m.repo.Under(p).Children(t.Context()) {
					if err != nil || got != want[0] {
						t.Errorf("the first child of %s is %q, %v; want %q", p, got, err, want[0])
					}
					break
				}
			}
		})
	}
}

// TestChildrenCost: listing 40 sites takes as many requests and rows whether a site has two devices with two points
// each, or twenty with ten.
func TestChildrenCost(t *testing.T) {
	const sites = 40
	for name, opts := range map[string]tsdb.SchemaOptions{"plain": {}, "heads only": {Head: tsdb.Head{Points: 5, Only: true}, Precision: tsdb.Milliseconds}} {
		for _, size := range [][2]int{{2, 2}, {20, 10}} {
			if name != "plain" {
				size[1] = 1
			}
			s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), opts)
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			for site := range sites {
				var points []point
				for device := range size[0] {
					for k := range size[1] {
						points = append(points, point{Entity: tsdb.NewEntity(fmt.Sprintf("s%03d", site), fmt.Sprint(device)), Time: start.Add(time.Duration(k) * time.Second), Value: 1})
					}
				}
				if _, err := repo.PutMany(t.Context(), points); err != nil {
					t.Fatal(err)
				}
			}
			conn.Reset()
			if got := allOf(t, repo.Under(tsdb.AllEntities()).Children(t.Context())); len(got) != sites {
				t.Fatalf("%d children, want %d", len(got), sites)
			}
			c := conn.Counts()
			if requests := c.Calls[tsdbtest.ReadRows]; requests > sites+12 || c.RowsSeen > 16*sites+32 {
				t.Errorf("%s, %d devices a site with %d points: %d requests and %d rows for %d children, want at most one and 16 for each", name, size[0], size[1], requests, c.RowsSeen, sites)
			}
		}
	}
}
