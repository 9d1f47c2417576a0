package rollup_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestCellsOfKindsAreTheDocumentedOnes: other programs and later versions read these bytes. What follows from other
// cells is not stored.
func TestCellsOfKindsAreTheDocumentedOnes(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{
			{Name: "kwh", Kind: window.Counter, Int: metered.energy, Decimals: 3, Max: 1e9},
			{Name: "load", Int: metered.load, Decimals: 2, Max: 1e6, MaxGap: 40 * time.Minute, Aggregates: window.StdDev | window.Integral},
		}, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(5 * time.Hour))
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		put := func(minute int, numbers ...int64) {
			t.Helper()
			v := metered{WattHours: &numbers[0]}
			if len(numbers) > 1 {
				v.Load = &numbers[1]
			}
			if err := repo.Put(t.Context(), tsdb.NewEntity("m-17"), start.Add(time.Duration(minute)*time.Minute), v); err != nil {
				t.Fatal(err)
			}
		}
		put(10, 1000, 300)
		put(20, 1500, 500)
		put(30, 200) // reset
		put(65, 260, 700)
		c.Add(24 * time.Hour)
		worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		const minute = int64(time.Minute)
		want := []string{}
		cell := func(at time.Time, column string, n int64) {
			want = append(want, fmt.Sprintf("keep.s:%s@%d %016x", column, at.UnixMilli(), uint64(n)))
		}
		cell(start, "n", 3)
		cell(start, "f.kwh", 1000)
		cell(start, "F.kwh", 10*minute)
		cell(start, "l.kwh", 200)
		cell(start, "L.kwh", 30*minute)
		cell(start, "i.kwh", 700)
		cell(start, "r.kwh", 1)
		cell(start, "c.load", 2)
		cell(start, "s.load", 800)
		cell(start, "f.load", 300)
		cell(start, "F.load", 10*minute)
		cell(start, "l.load", 500)
		cell(start, "L.load", 20*minute)
		cell(start, "q.load", 300*300+500*500)
		cell(start, "a.load", int64(math.Float64bits(300*600)))
		cell(start, "v.load", 10*minute)
		next := start.Add(time.Hour)
		cell(next, "n", 1)
		cell(next, "f.kwh", 260)
		cell(next, "F.kwh", 5*minute)
		cell(next, "s.load", 700)
		cell(next, "f.load", 700)
		cell(next, "F.load", 5*minute)
		cell(next, "q.load", 700*700)
		var got []string
		client, _ := tsdbtest.Clients(t, conn)
		err = client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup."), func(r bigtable.Row) bool {
			for family, items := range r {
				for _, item := range items {
					if family != "keep.c" {
						got = append(got, fmt.Sprintf("%s@%d %x", item.Column, int64(item.Timestamp)/1000, item.Value))
					}
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("the rows hold\n%q, want\n%q", got, want)
		}
	})
}

// What a kind does not allow, and what only a derived rollup can keep, is refused when the rollup is defined.
func TestKindsAreCheckedAtDefinition(t *testing.T) {
	for name, tt := range map[string]struct {
		measure rollup.Measure[metered]
		mode    rollup.Mode
	}{
		"the increase of a gauge":     {rollup.Measure[metered]{Int: metered.load, Aggregates: window.Increase}, rollup.Derived},
		"the sum of a counter":        {rollup.Measure[metered]{Int: metered.load, Kind: window.Counter, Aggregates: window.Sum}, rollup.Derived},
		"the durations of a state":    {rollup.Measure[metered]{Int: metered.load, Kind: window.State, Aggregates: window.Durations}, rollup.Derived},
		"the minimum of a state":      {rollup.Measure[metered]{Int: metered.load, Kind: window.State, Aggregates: window.Min}, rollup.Derived},
		"an unknown kind":             {rollup.Measure[metered]{Int: metered.load, Kind: 9}, rollup.Derived},
		"an unknown aggregate":        {rollup.Measure[metered]{Int: metered.load, Aggregates: 1 << 12}, rollup.Derived},
		"a counter of added events":   {rollup.Measure[metered]{Int: metered.load, Kind: window.Counter}, rollup.Once},
		"a deviation of added events": {rollup.Measure[metered]{Int: metered.load, Aggregates: window.StdDev}, rollup.ByMessage},
		"quantiles of a counter":      {rollup.Measure[metered]{Int: metered.load, Kind: window.Counter, Aggregates: window.Quantiles}, rollup.Derived},
		"quantiles of a state":        {rollup.Measure[metered]{Int: metered.load, Kind: window.State, Aggregates: window.Quantiles}, rollup.Derived},
		"a sketch of added events":    {rollup.Measure[metered]{Int: metered.load, Aggregates: window.Quantiles}, rollup.ByStream},
		"growth of added events":      {rollup.Measure[metered]{Int: metered.load, Added: true}, rollup.Once},
		"a gap without an integral":   {rollup.Measure[metered]{Int: metered.load, MaxGap: time.Second}, rollup.Derived},
		"a part of a millisecond":     {rollup.Measure[metered]{Int: metered.load, MaxGap: 1, Aggregates: window.Integral}, rollup.Derived},
		"a line without an integral":  {rollup.Measure[metered]{Int: metered.load, Linear: true}, rollup.Derived},
		"two functions":               {rollup.Measure[metered]{Int: metered.load, Of: func(metered) (float64, bool) { return 0, true }}, rollup.Derived},
		"no function":                 {rollup.Measure[metered]{}, rollup.Derived},
	} {
		tt.measure.Name, tt.measure.Max = "x", 100
		if _, err := rollup.Define("hour", window.Every(time.Hour), []rollup.Measure[metered]{tt.measure}, rollup.Options{Mode: tt.mode}); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

// Nothing lies between two states, so gaps of a state cannot be filled with a line: in windows and in rollups.
func TestNoLineBetweenStates(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		rollups, schema := meterRollups()
		_, measures := meterMeasures()
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		opts := window.Options{Gaps: window.Linear}
		if _, err := window.New(window.Days(1), measures, opts); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("windows: %v", err)
		}
		var failed error
		for _, err := range rollup.For(rollups[0], schema.For(store, acme)).WithGaps(opts).Buckets(t.Context(), tsdb.NewEntity("m-17"), tsdb.AllTime()) {
			failed = err
		}
		if !errors.Is(failed, tsdb.ErrInvalid) {
			t.Errorf("a rollup: %v", failed)
		}
	})
}
