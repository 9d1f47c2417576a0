package below_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/under"
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
		for _, err := range under.Merged(t.Context(), repo, tsdb.NewPrefix("a"), tsdb.AllTime(), order) {
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
			for _, err := range under.Merged(t.Context(), repo, tsdb.NewPrefix("a"), tsdb.AllTime(), order, tsdb.Limit(10)) {
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

// TestSilentEntities: entities without points in the interval are skipped at about the same cost, however few points are wanted.
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
			for p, err := range under.Range(t.Context(), repo, tsdb.NewPrefix("a"), in, limit) {
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
	for _, err := range under.Merged(t.Context(), repo, tsdb.NewPrefix("a"), tsdb.AllTime(), tsdb.Limit(1)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 20 {
		t.Errorf("the newest point of all: %d requests, want at most 20", n)
	}
}
