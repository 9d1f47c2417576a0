package prefix_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/prefix"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// open returns a repository of a new store.
func open(t *testing.T, opts tsdb.SchemaOptions) (*tsdb.Repository[int64], *tsdbtest.Conn) {
	t.Helper()
	s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), opts)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	return s.For(store, tenant.MustParse("acme")), conn
}

// TestLastTime: a point at the last time that can be stored is yielded once.
func TestLastTime(t *testing.T) {
	repo, _ := open(t, tsdb.SchemaOptions{})
	for _, at := range []time.Time{noon, time.Unix(0, math.MaxInt64)} {
		if err := repo.Put(t.Context(), tsdb.NewEntity("a", "b"), at, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
		n := 0
		for _, err := range repo.Under(tsdb.NewPrefix("a")).Merged(t.Context(), tsdb.AllTime(), order) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > 2 {
				break
			}
		}
		if n != 2 {
			t.Errorf("%v: %d points, want 2", order, n)
		}
	}
}

// TestFewOfMany: the first points of long histories cost about the same in both orders.
func TestFewOfMany(t *testing.T) {
	for _, devices := range []int{1, 8} {
		repo, conn := open(t, tsdb.SchemaOptions{})
		var points []tsdb.Point[int64]
		for i := range 10_000 {
			points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("a", fmt.Sprint(i%devices)), Time: noon.Add(time.Duration(i/devices) * time.Second), Value: 1})
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
			conn.Reset()
			n := 0
			for _, err := range repo.Under(tsdb.NewPrefix("a")).Merged(t.Context(), tsdb.AllTime(), order, tsdb.Limit(10)) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			c := conn.Counts()
			if n != 10 || c.RowsSeen > 2000 || c.Calls[tsdbtest.ReadRows] > 4+devices {
				t.Errorf("%d devices, %v: %d points of %d rows in %d requests", devices, order, n, c.RowsSeen, c.Calls[tsdbtest.ReadRows])
			}
		}
	}
}

// TestSilentEntities: entities without points in the interval are skipped at about the same cost, however few points
// are wanted.
func TestSilentEntities(t *testing.T) {
	repo, conn := open(t, tsdb.SchemaOptions{})
	var points []tsdb.Point[int64]
	for d := range 1100 {
		points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("a", fmt.Sprintf("d%04d", d)), Time: noon, Value: 1})
	}
	last := tsdb.NewEntity("a", "e")
	points = append(points, tsdb.Point[int64]{Entity: last, Time: noon.Add(-time.Hour), Value: 1}, tsdb.Point[int64]{Entity: last, Time: noon.Add(time.Hour), Value: 1})
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []tsdb.Limit{1, 10, 2000} {
		for name, in := range map[string]tsdb.Interval{"before": tsdb.Since(noon.Add(1)), "behind": tsdb.Until(noon)} {
			conn.Reset()
			n := 0
			for p, err := range repo.Under(tsdb.NewPrefix("a")).Range(t.Context(), in, limit) {
				if n++; err != nil || p.Entity != last {
					t.Error(p, err)
				}
			}
			if calls := conn.Counts().Calls[tsdbtest.ReadRows]; n != 1 || calls > 20 {
				t.Errorf("limit of %d, points %s the interval: %d points in %d requests, want 1 in at most 20", limit, name, n, calls)
			}
		}
	}
	conn.Reset()
	for _, err := range repo.Under(tsdb.NewPrefix("a")).Merged(t.Context(), tsdb.AllTime(), tsdb.Limit(1)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 20 {
		t.Errorf("the newest point of all: %d requests, want at most 20", n)
	}
}

// TestEdgesOfIntervals: reads of several entities in one request return the points at the edges of an interval if it
// includes them, and none beside it. An entity whose newest point is the first of the interval is not left out.
func TestEdgesOfIntervals(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"nanoseconds":  {},
		"milliseconds": {Precision: tsdb.Milliseconds},
		"identity":     {Identity: true},
		"heads only":   {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 5, Only: true}},
	} {
		repo, _ := open(t, opts)
		unit := time.Nanosecond
		if opts.Precision == tsdb.Milliseconds {
			unit = time.Millisecond
		}
		at := func(units int) time.Time { return noon.Add(time.Duration(units) * unit) }
		var points []tsdb.Point[int64]
		for i, units := range [][]int{{0, 1, 2, 3, 4}, {1}, {3}, {0, 1, 2, 3, 4}, {2}} {
			for _, u := range units {
				p := tsdb.Point[int64]{Entity: tsdb.NewEntity("a", fmt.Sprint(i)), Time: at(u), Value: 1}
				if opts.Identity {
					p.ID = "x"
				}
				points = append(points, p)
			}
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		between := tsdb.Between(at(1), at(3))
		for _, in := range []tsdb.Interval{
			between, between.OpenStart(), between.ClosedEnd(), between.OpenStart().ClosedEnd(), tsdb.Between(at(2), at(2)).ClosedEnd(),
			tsdb.Since(at(3)), tsdb.Since(at(3)).OpenStart(), tsdb.Until(at(1)), tsdb.Until(at(1)).ClosedEnd(),
		} {
			want := 0
			for _, p := range points {
				if in.Contains(p.Time) {
					want++
				}
			}
			type scan = func(context.Context, tsdb.Interval, ...tsdb.ReadOption) iter.Seq2[tsdb.Point[int64], error]
			under := repo.Under(tsdb.NewPrefix("a"))
			for call, scan := range map[string]scan{"Range": under.Range, "Merged": under.Merged} {
				for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
					got := 0
					for p, err := range scan(t.Context(), in, order) {
						if got++; err != nil || !in.Contains(p.Time) {
							t.Errorf("%s, %s %v of %v: a point at %v, error %v", name, call, order, in, p.Time, err)
						}
					}
					if got != want {
						t.Errorf("%s, %s %v of %v: %d points, want %d", name, call, order, in, got, want)
					}
				}
			}
		}
	}
}

// TestRowsOfAHedgeCountOnce: if both requests of a hedge have read the same rows, these count once. So a slice that
// fits into memory is not read again in parts.
func TestRowsOfAHedgeCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo, conn := open(t, tsdb.SchemaOptions{})
		var points []tsdb.Point[int64]
		for i := range 1200 {
			points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("a", fmt.Sprint(i%2)), Time: noon.Add(time.Duration(i) * time.Second), Value: 1})
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		requests := func(opts ...tsdb.ReadOption) int {
			t.Helper()
			if n := len(read(t, repo, opts, 2000, (*prefix.Read).ByTime)); n != len(points) {
				t.Errorf("%v: %d points, want %d", opts, n, len(points))
			}
			return conn.Counts().Calls[tsdbtest.ReadRows]
		}
		requests() // later reads know the entities
		conn.Reset()
		plain := requests()
		// The last request breaks after 1,000 rows, and the client's request for the others hangs.
		conn.Reset()
		conn.Inject(tsdbtest.CutStream(1000, codes.Unavailable).On(tsdbtest.ReadRows).Skip(plain - 1).Times(1))
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows).Skip(plain).Times(1))
		if n := requests(tsdb.Hedge{After: time.Minute, MaxRatio: 1}); n != plain+2 {
			t.Errorf("%d requests, want %d: one more for the other rows, and one of the hedge", n, plain+2)
		}
	})
}
