package dynamic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestWhatIsShownIsTrue: whatever changed since a worker stored the buckets, in both orders and at the edges of
// intervals, an aggregate of a rollup of the catalogue is that of the program with the functions, or it is missing and
// the bucket says that it is incomplete.
func TestWhatIsShownIsTrue(t *testing.T) {
	testkit.Plain(t)
	number := func(v float64) (float64, bool) { return v, v < 900 }
	measures := []rollup.Measure[float64]{
		{Name: "load", Of: number, Decimals: 1, Max: 1e6, Aggregates: window.Basic | window.Ends | window.Delta | window.Integral | window.Quantiles},
		{Name: "kwh", Of: number, Kind: window.Counter, Decimals: 1, Max: 1e6},
	}
	hours := rollup.MustDefine("hours", window.Every(time.Hour), measures, rollup.Options{})
	days := rollup.MustDefine("days", window.Days(1), measures, rollup.Options{From: "hours"})
	schema := tsdb.MustDefine("meters", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours, days}})
	shown, missing := 0, 0
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		now := start.Add(100 * time.Hour)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, schema)
		repo := schema.For(store, acme)
		put := func(n int) {
			for range n {
				at := start.Add(time.Duration(random.IntN(60*60)) * time.Minute)
				if err := repo.Put(t.Context(), roof, at, float64(random.IntN(1000))); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(80)
		worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			now = now.Add(time.Minute)
			if _, err := worker.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		put(random.IntN(4))
		rollups, stored, err := dynamic.Rollups(reading(t, store), dynamic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			from := random.IntN(60)
			in := tsdb.Between(start.Add(time.Duration(from)*time.Hour), start.Add(time.Duration(from+1+random.IntN(60-from))*time.Hour))
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				for _, gaps := range []window.Gaps{window.LeaveOut, window.Null} {
					for name, of := range map[string]*rollup.Rollup[float64]{"hours": hours, "days": days} {
						want := map[time.Time]window.Bucket{}
						for b, err := range rollup.For(of, repo).WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, in, order) {
							if err != nil {
								t.Fatal(err)
							}
							want[b.Start] = b
						}
						for b, err := range rollup.For(rollups[name], stored.For(store, acme)).WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, in, order) {
							if err != nil {
								t.Fatal(err)
							}
							w := want[b.Start]
							delete(want, b.Start)
							for i := range b.Values {
								if b.Values[i].Missing != 0 {
									missing++
								}
								if b.Values[i].Missing != 0 && b.Incomplete == nil || b.Incomplete == nil && b.Points != w.Points {
									t.Errorf("seed %d, %s %v: %d points and missing %v without a remark, want %d points", seed, name, b.Start, b.Points, b.Values[i].Missing, w.Points)
								}
								for a := window.Count; a <= window.Quantiles; a <<= 1 {
									if b.Values[i].Aggregates&a == 0 {
										continue
									}
									shown++
									if got, want := aggregateOf(&b.Values[i], a), aggregateOf(&w.Values[i], a); got != want {
										t.Errorf("seed %d, order %v, gaps %v, %s %v, %s: %v is %s, want %s", seed, order, gaps, name, b.Start, b.Values[i].Name, a, got, want)
									}
								}
							}
						}
						if len(want) > 0 {
							t.Errorf("seed %d, %s: %d buckets are left out", seed, name, len(want))
						}
					}
				}
			}
		}
	}
	if shown < 10_000 || missing < 100 {
		t.Errorf("%d aggregates were compared, and %d summaries lacked some; want more of both", shown, missing)
	}
}

// aggregateOf returns one aggregate of a summary, as text.
func aggregateOf(s *window.Summary, a window.Aggregates) string {
	switch a {
	case window.Count:
		return fmt.Sprint(s.Count)
	case window.Sum:
		return fmt.Sprint(s.Sum, s.Mean)
	case window.Min:
		return fmt.Sprint(s.Min)
	case window.Max:
		return fmt.Sprint(s.Max)
	case window.Ends:
		return fmt.Sprint(s.First, s.FirstTime, s.Last, s.LastTime)
	case window.StdDev:
		return fmt.Sprint(s.StdDev)
	case window.Delta:
		return fmt.Sprint(s.Delta, s.Since)
	case window.Increase:
		return fmt.Sprint(s.Increase, s.Rate, s.Resets, s.Since)
	case window.Integral:
		return fmt.Sprint(s.Integral, s.Covered)
	case window.Quantiles:
		return fmt.Sprint(s.Quantile(0.1), s.Quantile(0.9))
	}
	return ""
}
