package prefix_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/prefix"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestSlicesOfTime: however few points fit into a slice, ByTime yields the points of ByEntity in the order of their
// times. The data are silent for long, dense for a moment, and have more points at one time than fit.
func TestSlicesOfTime(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{"plain": {Salts: 3}, "identity": {Identity: true}, "milliseconds": {Precision: tsdb.Milliseconds}} {
		t.Run(name, func(t *testing.T) {
			s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), opts)
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
			repo := s.For(store, tenant.MustParse("acme"))
			rnd := rand.New(rand.NewPCG(1, 2))
			var points []tsdb.Point[int64]
			for device := range 6 {
				e := tsdb.NewEntity("berlin", fmt.Sprint("d", device))
				for range 1 + rnd.IntN(150) {
					at := noon.Add(-time.Duration(rnd.ExpFloat64() * float64(time.Hour)))
					if rnd.IntN(3) == 0 {
						at = noon.Add(-time.Hour).Add(time.Duration(rnd.IntN(5)) * time.Millisecond)
					}
					points = append(points, tsdb.Point[int64]{Entity: e, Time: at, Value: int64(len(points))})
				}
			}
			for i := range points {
				if opts.Identity {
					points[i].ID = fmt.Sprint("id", rnd.IntN(1000))
				}
			}
			if _, err := repo.PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
			for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
				all := read(t, repo, []tsdb.ReadOption{order}, 0, (*prefix.Read).ByEntity)
				slices.SortStableFunc(all, func(a, b dataset.Hit) int {
					if order == tsdb.OldestFirst {
						return cmp.Compare(a.Units, b.Units)
					}
					return cmp.Compare(b.Units, a.Units)
				})
				for _, slice := range []int64{5, 200, 100_000} {
					conn.Reset()
					got := read(t, repo, []tsdb.ReadOption{order}, slice, (*prefix.Read).ByTime)
					if !slices.EqualFunc(got, all, func(a, b dataset.Hit) bool { return a.Path == b.Path && a.Units == b.Units && a.ID == b.ID }) {
						t.Errorf("%v in slices of %d: %d points, want %d, or in another order", order, slice, len(got), len(all))
					}
					// A slice that does not fit is cut by the density of what came, so few are read in vain.
					if seen, most := conn.Counts().RowsSeen, int64(4*len(all)+200); slice >= 200 && seen > most {
						t.Errorf("%v in slices of %d: %d rows for %d points, want at most %d", order, slice, seen, len(all), most)
					}
				}
			}
		})
	}
}

// read returns what a scan of all entities visits.
func read(t *testing.T, repo *tsdb.Repository[int64], opts []tsdb.ReadOption, slice int64, scan func(*prefix.Read, context.Context, func(dataset.Hit) bool) error) (hits []dataset.Hit) {
	t.Helper()
	_, in, err := inside.Of(repo.Under(tsdb.AllEntities())).Begin(t.Context(), telemetry.UnderRange, tsdb.AllTime(), opts)
	defer func() { in.End(err) }()
	if err != nil {
		t.Fatal(err)
	}
	in.Slice = slice
	if err := scan(in.Read, t.Context(), func(h dataset.Hit) bool {
		hits = append(hits, h)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return hits
}
