package rollup_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestNumbersAtTheBorder: which values count as numbers, how they are rounded, and from which count a sum may overflow.
func TestNumbersAtTheBorder(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0.125, -0.125, 7, -7, 7.01, math.Nextafter(7, 8)}
		const big = 1 << 53
		r := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[int]{
			{Name: "odd", Of: func(i int) (float64, bool) {
				if i < len(odd) {
					return odd[i], true
				}
				return 0, false
			}, Decimals: 2, Max: 7},
			{Name: "big", Of: func(int) (float64, bool) { return big, true }, Max: big},
		}, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[int](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
		c := testkit.NewClock(start.Add(48 * time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		put := func(from, to int) {
			t.Helper()
			var points []tsdb.Point[int]
			for i := from; i < to; i++ {
				points = append(points, tsdb.Point[int]{Entity: roof, Time: start.Add(time.Duration(i) * time.Millisecond), Value: i})
			}
			if _, err := repo.PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
		}
		worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, points int64, overflow bool) {
			t.Helper()
			b, err := rollup.For(r, repo).Total(t.Context(), roof, tsdb.AllTime())
			if err != nil {
				t.Fatal(err)
			}
			v := b.Values[0]
			if b.Points != points || v.Count != 5 || v.Sum != 0 || v.Min != -7 || v.Max != 7 || v.Overflow {
				t.Errorf("%s: bucket %+v", what, b)
			}
			if v = b.Values[1]; v.Count != points || v.Overflow != overflow || !overflow && v.Sum != big*float64(points) {
				t.Errorf("%s: values %+v", what, v)
			}
		}
		put(0, 1023)
		check("computed", 1023, false)
		for range 2 {
			if _, err := worker.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.Add(time.Hour)
		}
		check("stored", 1023, false)
		put(1023, 1024)
		check("one more", 1024, true)
		if b, err := rollup.For(r, repo).Latest(t.Context(), roof, 1); err != nil || math.Signbit(b[0].Values[0].Sum) {
			t.Errorf("bucket %+v, error %v", b, err)
		}
	})
}

// TestIntsUpToMax: a measure of whole multiples counts its Max, for each Max with two decimals, and nothing above it.
func TestIntsUpToMax(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		var measures []rollup.Measure[int64]
		for _, most := range []float64{0.28, 0.29, 0.3, 4.35, 10.23, 1e13 + 0.01} {
			measures = append(measures, rollup.Measure[int64]{
				Name: fmt.Sprintf("m%d", len(measures)), Int: func(more int64) (int64, bool) { return int64(math.Round(most*100)) + more, true }, Decimals: 2, Max: most,
			})
		}
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[int64](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		repo := schema.For(store, acme)
		for more := range int64(2) {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(more)), more); err != nil {
				t.Fatal(err)
			}
		}
		b, err := rollup.For(hour, repo).Total(t.Context(), roof, tsdb.AllTime())
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range measures {
			if s := b.Values[i]; s.Count != 1 || s.Max != m.Max {
				t.Errorf("%d numbers up to %v, the largest of them %v; want one, %v", s.Count, m.Max, s.Max, m.Max)
			}
		}
	})
}

// TestNegativeNumbersOfCounters: a negative number of a counter counts as none, also one that the decimals round to 0,
// which would be a reset.
func TestNegativeNumbersOfCounters(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		of := func(x float64) (float64, bool) { return x, true }
		measures := []rollup.Measure[float64]{{Name: "of", Of: of}, {Name: "field", Field: rollup.Payload}}
		for i := range measures {
			measures[i].Kind, measures[i].Decimals, measures[i].Max = window.Counter, 1, 100
		}
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		repo := schema.For(store, acme)
		for i, x := range []float64{5, -0.01, -5, 6, math.Copysign(0, -1)} {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)), x); err != nil {
				t.Fatal(err)
			}
		}
		b, err := rollup.For(hour, repo).Total(t.Context(), roof, tsdb.AllTime())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range b.Values {
			if s.Count != 3 || s.Increase != 1 || s.Resets != 1 {
				t.Errorf("%s: %d numbers, increase %v, %d resets; want 3, 1, 1", s.Name, s.Count, s.Increase, s.Resets)
			}
		}
	})
}

// TestTheEndsOfTime: the bucket in which 1970 begins, also if it starts the day before, and the last whole one.
func TestTheEndsOfTime(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		for _, zone := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
			day := rollup.MustDefine("day", window.Days(1).In(mustZone(zone)), measures(), rollup.Options{})
			schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{day}})
			c := testkit.NewClock(start)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
			repo := schema.For(store, acme)
			epoch, late := time.Unix(0, 0), time.Date(2262, 4, 9, 12, 0, 0, 0, time.UTC)
			for _, at := range []time.Time{epoch, epoch.Add(48 * time.Hour), late} {
				if err := repo.Put(t.Context(), roof, at, reading{TempC: 1}); err != nil {
					t.Fatalf("%v: %v", at, err)
				}
			}
			worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
			if err != nil {
				t.Fatal(err)
			}
			for pass := range 3 {
				n := 0
				for b, err := range rollup.For(day, repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
					if err != nil || b.Points != 1 {
						t.Fatalf("%s, pass %d: bucket %+v, error %v", zone, pass, b, err)
					}
					if n == 0 && !b.Start.Equal(day.Grid().Start(epoch)) || n == 2 && !b.Start.Equal(day.Grid().Start(late)) {
						t.Errorf("%s, pass %d: bucket %d starts at %v", zone, pass, n, b.Start)
					}
					n++
				}
				if n != 3 {
					t.Errorf("%s, pass %d: %d buckets", zone, pass, n)
				}
				c.Add(time.Hour)
				if _, err := worker.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestTotalsOfCenturies: a total whose first and last number are further apart than the 292 years of a time.Duration is
// refused, or has no times.
func TestTotalsOfCenturies(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		for kept, ok := range map[window.Aggregates]bool{window.Basic: true, window.Basic | window.Integral: false} {
			hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{{Name: "load", Int: metered.load, Max: 1e6, Aggregates: kept}}, rollup.Options{})
			schema := tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Rollups: []tsdb.Rollup{hour}})
			at := []time.Time{time.Unix(0, 0), time.Unix(0, math.MaxInt64).Add(-time.Hour), time.Unix(0, math.MaxInt64).Add(time.Hour)}
			c := testkit.NewClock(start)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
			repo, e := schema.For(store, acme), tsdb.NewEntity("m-17")
			for i, at := range at {
				n := int64(i)
				if err := repo.Put(t.Context(), e, at, metered{Load: &n}); err != nil {
					t.Fatal(err)
				}
			}
			for in, ok := range map[tsdb.Interval]bool{tsdb.AllTime(): ok, tsdb.Until(at[2].Add(-time.Hour)): true, tsdb.Since(at[1].Add(-time.Hour)): true} {
				b, err := rollup.For(hour, repo).Total(t.Context(), e, in)
				if ok && (err != nil || b.Points < 2 || b.Values[0].Integral < 0) || !ok && !errors.Is(err, tsdb.ErrInvalid) {
					t.Errorf("%v of %v: %+v, %v", kept, in, b, err)
				}
			}
		}
	})
}

// TestLongestSpan: what Define accepts, a schema accepts too, and what a row of marks cannot hold is refused as a Span.
func TestLongestSpan(t *testing.T) {
	const longest = 12_500 * time.Hour
	berlin := window.Days(1).In(mustZone("Europe/Berlin"))
	for _, tt := range []struct {
		grid    window.Grid
		options rollup.Options
		refused bool
	}{
		{berlin, rollup.Options{Span: longest}, false},
		{berlin, rollup.Options{Span: longest + 15*time.Minute}, true},
		{berlin, rollup.Options{Span: 2000 * oneDay, Mode: rollup.Once}, false},
		{window.Days(1), rollup.Options{Span: 2000 * oneDay}, false},
		{window.Days(520), rollup.Options{}, false},
		{window.Days(521), rollup.Options{}, true},
		{window.Months(24), rollup.Options{}, true},
		{window.Months(24), rollup.Options{Mode: rollup.ByMessage}, false},
	} {
		r, err := rollup.Define("r", tt.grid, []rollup.Measure[reading]{}, tt.options)
		if bad, ok := errors.AsType[*tsdb.InvalidError](err); ok != tt.refused || ok && bad.Field != "Span" {
			t.Errorf("%v with %+v: %v; refused as a Span: %v", tt.grid, tt.options, err, tt.refused)
		}
		if err != nil {
			continue
		}
		if _, err := tsdb.Define("r", tsdb.Key("site"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}}); err != nil {
			t.Errorf("a schema with a rollup of %v with %+v: %v", tt.grid, tt.options, err)
		}
	}
}

// TestTheLastDay: buckets of the last day on which a point may be are read, and stored.
func TestTheLastDay(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		for name, grid := range map[string]window.Grid{"hours": window.Every(time.Hour), "months": window.Months(1)} {
			r := rollup.MustDefine("r", grid, measures(), rollup.Options{})
			schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Rollups: []tsdb.Rollup{r}})
			store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
			repo := schema.For(store, acme)
			if err := repo.Put(t.Context(), roof, time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC), reading{TempC: 1}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				b, err := rollup.For(r, repo).Total(t.Context(), roof, tsdb.AllTime())
				if err != nil || b.Points != 1 || b.End.Year() != 10_000 {
					t.Errorf("%s: %d points until %v, %v", name, b.Points, b.End, err)
				}
				if _, err := rollup.For(r, repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestRollupOfAnotherType: a worker does not take a schema with a rollup that it cannot compute, and says which.
func TestRollupOfAnotherType(t *testing.T) {
	own := rollup.MustDefine("own", window.Every(time.Hour), []rollup.Measure[reading]{}, rollup.Options{})
	other := rollup.MustDefine("other", window.Every(time.Hour), []rollup.Measure[string]{}, rollup.Options{})
	for _, rollups := range [][]tsdb.Rollup{{other}, {own, other}, {other, own}} {
		schema := tsdb.MustDefine("r", tsdb.Key("site"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: rollups})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		_, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
		if bad, ok := errors.AsType[*tsdb.InvalidError](err); !ok || bad.Value != `"r" with the rollup other of another type` {
			t.Errorf("a worker for a schema with a rollup of another type: %v", err)
		}
	}
}
