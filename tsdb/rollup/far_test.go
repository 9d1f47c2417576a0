package rollup_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestNumbersFarAway: a number counts as missing if it is more than 1,000 buckets away. Such a number fails no read.
func TestNumbersFarAway(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		second := rollup.MustDefine("second", window.Every(time.Second), []rollup.Measure[metered]{
			{Name: "kwh", Int: metered.energy, Max: 1e9, Kind: window.Counter},
			{Name: "load", Int: metered.load, Max: 1e6, Aggregates: window.Delta},
		}, rollup.Options{Span: 30 * time.Minute})
		schema := tsdb.MustDefine("m", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{second}})
		c := testkit.NewClock(start.Add(3 * time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		const buckets = 10_050
		for _, tc := range []struct {
			name   string
			older  int // the bucket with the older load
			joined bool
		}{{"none", -1, false}, {"near", buckets - 900, true}, {"far", buckets - 1500, false}} {
			e := tsdb.NewEntity(tc.name)
			var batch []tsdb.Point[metered]
			for i := range buckets {
				wh, load := int64(i), int64(i)
				m := metered{WattHours: &wh}
				if i == tc.older || i == buckets-1 {
					m.Load = &load
				}
				batch = append(batch, tsdb.Point[metered]{Entity: e, Time: start.Add(time.Duration(i) * time.Second), Value: m})
				if len(batch) == 1000 || i == buckets-1 {
					if _, err := repo.PutMany(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
					batch = nil
				}
			}
			newest := start.Add((buckets - 1) * time.Second)
			check := func(call string, b window.Bucket) {
				t.Helper()
				since, delta := newest, 0
				if tc.joined {
					since, delta = start.Add(time.Duration(tc.older)*time.Second), buckets-1-tc.older
				}
				kwh, load := b.Values[0], b.Values[1]
				if kwh.Increase != 1 || load.Delta != float64(delta) || !load.Since.Equal(since) {
					t.Errorf("%s, %s: increase %v, delta %v since %v; want 1, %d since %v", tc.name, call, kwh.Increase, load.Delta, load.Since, delta, since)
				}
			}
			all := rollup.For(second, repo)
			latest, err := all.Latest(t.Context(), e, 1)
			if err != nil || len(latest) != 1 {
				t.Fatalf("%s: Latest returns %d buckets, %v", tc.name, len(latest), err)
			}
			check("Latest", latest[0])
			for b, err := range all.Buckets(t.Context(), e, tsdb.Since(newest)) {
				if err != nil {
					t.Fatal(err)
				}
				check("Buckets", b)
			}
			if tc.older >= 0 {
				continue
			}
			read := 0
			for b, err := range all.Buckets(t.Context(), e, tsdb.AllTime()) {
				if err != nil {
					t.Fatalf("%s: after %d buckets: %v", tc.name, read, err)
				}
				if read++; b.Values[0].Increase != 1 && read < buckets {
					t.Fatalf("%s: bucket %v has an increase of %v", tc.name, b.Start, b.Values[0].Increase)
				}
			}
			if read != buckets {
				t.Errorf("%s: read %d buckets, want %d", tc.name, read, buckets)
			}
		}
	})
}
