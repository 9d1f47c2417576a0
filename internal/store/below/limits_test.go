package below_test

import (
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
