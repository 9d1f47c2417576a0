package rollup_test

import (
	"context"
	"errors"
	"fmt"
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
	testkit.Plain(t)
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

// TestOnlyJoinedMeasuresAreSearched: a read looks for the number before its interval only for measures that need it. A
// measure that never needs one does not make the read go back through all of the history.
func TestOnlyJoinedMeasuresAreSearched(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{
			{Name: "kwh", Int: metered.energy, Max: 1e9, Kind: window.Counter},
			{Name: "load", Int: metered.load, Max: 1e6}, // no point has one
		}, rollup.Options{})
		schema := tsdb.MustDefine("m", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(4 * time.Hour))
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		requests := func(hours ...int) int {
			t.Helper()
			e := tsdb.NewEntity(fmt.Sprint(hours))
			for _, h := range hours {
				wh := int64(h)
				if err := repo.Put(t.Context(), e, start.Add(time.Duration(h)*time.Hour), metered{WattHours: &wh}); err != nil {
					t.Fatal(err)
				}
			}
			conn.Reset()
			for _, err := range rollup.For(hour, repo).Buckets(t.Context(), e, tsdb.Since(start.Add(2*time.Hour))) {
				if err != nil {
					t.Fatal(err)
				}
			}
			return conn.Counts().Calls[tsdbtest.ReadRows]
		}
		if near, far := requests(1, 2), requests(2); near >= far {
			t.Errorf("%d requests if the number before is near, %d if there is none: want fewer", near, far)
		}
	})
}

// TestOneTimeoutForAllOfARead: the timeout of scans bounds the buckets and the search for their neighbours together.
func TestOneTimeoutForAllOfARead(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{
			{Name: "kwh", Int: metered.energy, Max: 1e9, Kind: window.Counter},
		}, rollup.Options{})
		schema := tsdb.MustDefine("m", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		const scan = 20 * time.Second
		c := testkit.NewClock(start.Add(4 * time.Hour))
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Timeouts: tsdb.Timeouts{Scan: scan}}}, schema)
		repo, e := schema.For(store, acme), tsdb.NewEntity("m-17")
		wh := int64(1)
		if err := repo.Put(t.Context(), e, start.Add(2*time.Hour), metered{WattHours: &wh}); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Delay(4 * time.Second).On(tsdbtest.ReadRows)) // each part of the read takes less than the timeout
		reader := rollup.For(hour, repo)
		for name, read := range map[string]func() error{
			"Buckets": func() error {
				for _, err := range reader.Buckets(t.Context(), e, tsdb.Since(start.Add(2*time.Hour)), tsdb.OldestFirst) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"Total": func() error { _, err := reader.Total(t.Context(), e, tsdb.Since(start.Add(2*time.Hour))); return err },
		} {
			begin := time.Now()
			err := read()
			if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took > scan+8*time.Second { // with a read of the store's own rows
				t.Errorf("%s: %v after %v, want the timeout after %v", name, err, took, scan)
			}
		}
	})
}
