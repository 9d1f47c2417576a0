package rollup_test

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// metered is what a meter sends; either number may be missing.
type metered struct {
	WattHours *int64 `json:"wh,omitempty"`
	Load      *int64 `json:"load,omitempty"`
}

func (m metered) energy() (int64, bool) { return numberOf(m.WattHours) }
func (m metered) load() (int64, bool)   { return numberOf(m.Load) }

func numberOf(n *int64) (int64, bool) {
	if n == nil {
		return 0, false
	}
	return *n, true
}

// steps is a measure whose numbers hold in any gap.
var steps = rollup.Measure[metered]{Name: "steps", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Integral}

// meterMeasures returns the same measures for rollups and for windows.
func meterMeasures(more ...rollup.Measure[metered]) (r []rollup.Measure[metered], w []window.Measure[metered]) {
	r = []rollup.Measure[metered]{
		{Name: "kwh", Int: metered.energy, Decimals: 3, Max: 1e9, Kind: window.Counter},
		{Name: "held", Int: metered.load, Decimals: 2, Max: 1e6, MaxGap: 40 * time.Minute, Aggregates: window.Basic | window.StdDev | window.Delta | window.Integral},
		{Name: "linear", Int: metered.load, Decimals: 2, Max: 1e6, Linear: true, Aggregates: window.Integral},
		{Name: "ends", Int: metered.energy, Decimals: 3, Max: 1e9, Kind: window.State},
		{Name: "spread", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Quantiles | window.Ends},
	}
	r = append(r, more...)
	for _, m := range r {
		w = append(w, window.Measure[metered]{
			Name: m.Name, Int: m.Int, Decimals: m.Decimals, Kind: m.Kind, Aggregates: m.Aggregates, Linear: m.Linear, MaxGap: m.MaxGap,
		})
	}
	return r, w
}

// meterRollups are rollups by a quarter of an hour, by the hour and by the day of Berlin, each from the one before.
func meterRollups(more ...rollup.Measure[metered]) (all []*rollup.Rollup[metered], schema *tsdb.Schema[metered]) {
	m, _ := meterMeasures(more...)
	all = []*rollup.Rollup[metered]{
		rollup.MustDefine("quarter", window.Every(15*time.Minute), m, rollup.Options{Span: 4 * time.Hour}),
		rollup.MustDefine("hour", window.Every(time.Hour).In(berlin), m, rollup.Options{From: "quarter"}),
		rollup.MustDefine("day", window.Days(1).In(berlin), m, rollup.Options{From: "hour"}),
	}
	return all, tsdb.MustDefine("meters", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)},
		Rollups:   []tsdb.Rollup{all[0], all[1], all[2]},
	})
}

// Increase, resets, ends, delta, standard deviation and integrals of three levels of rollups equal those of windows
// over the points: after late points, overwrites and deletions, through passes of a worker at any time, across a change
// of the clock, in both orders, for any interval, in totals, and with each way to fill gaps. Package window compares
// its windows with an independent pass.
func TestKindsInRollupsAreThoseOfPoints(t *testing.T) {
	for seed := uint64(0); seed < uint64(*seeds)*2; seed += uint64(testkit.Stride(2)) {
		addBubble(t, func(t *testing.T) { kindsOfRollups(t, rand.New(rand.NewPCG(seed, 19))) })
	}
}

func kindsOfRollups(t *testing.T, rnd *rand.Rand) {
	ctx := t.Context()
	all, schema := meterRollups(steps)
	_, windows := meterMeasures(steps)
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
	repo := schema.For(store, acme)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
	if err != nil {
		t.Fatal(err)
	}
	meter := tsdb.NewEntity("m-17")
	when := func() time.Time {
		return c.Now().Add(-time.Duration(rnd.Int64N(int64(40 * time.Hour)))).Truncate(10 * time.Second)
	}
	value := func() (m metered) {
		if n := rnd.Int64N(1_000_000); rnd.IntN(4) > 0 {
			m.WattHours = &n
		}
		if n := rnd.Int64N(2_000_000) - 1_000_000; rnd.IntN(3) > 0 {
			m.Load = &n
		}
		if rnd.IntN(20) == 0 {
			n := int64(-5) // a counter cannot be negative
			m.WattHours = &n
		}
		return m
	}
	compared, merged := 0, 0
	for step := range 40 {
		switch rnd.IntN(6) {
		case 0:
			if err := repo.Put(ctx, meter, when(), value()); err != nil {
				t.Fatal(err)
			}
		case 1, 2:
			var batch []tsdb.Point[metered]
			at := when()
			for i := range rnd.IntN(60) {
				batch = append(batch, tsdb.Point[metered]{Entity: meter, Time: at.Add(time.Duration(i) * time.Duration(1+rnd.IntN(5)) * time.Minute), Value: value()})
			}
			if _, err := repo.PutMany(ctx, batch); err != nil {
				t.Fatal(err)
			}
		case 3:
			for p, err := range repo.Range(ctx, meter, tsdb.Until(when()), tsdb.Limit(1)) {
				if err != nil {
					t.Fatal(err)
				}
				if err := repo.Delete(ctx, meter, p.Time); err != nil {
					t.Fatal(err)
				}
			}
		case 4:
			at := when()
			if _, err := repo.DeleteRange(ctx, meter, tsdb.Between(at, at.Add(time.Duration(rnd.Int64N(int64(3*time.Hour)))))); err != nil {
				t.Fatal(err)
			}
		case 5:
			c.Add(time.Duration(rnd.Int64N(int64(3 * time.Hour))))
			if _, err := worker.Pass(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if step%4 != 0 {
			continue
		}
		for _, r := range all {
			from, to := r.Grid().Start(when()), r.Grid().Start(when().Add(10*time.Hour))
			if to.Before(from) {
				from, to = to, from
			}
			in := []tsdb.Interval{tsdb.AllTime(), tsdb.Between(from, to), tsdb.Since(from)}[rnd.IntN(3)]
			opts := window.Options{Gaps: window.Gaps(rnd.IntN(3)), MaxGap: time.Duration(rnd.IntN(2)) * 5 * time.Hour}
			compared += sameAsPoints(t, fmt.Sprintf("step %d, %s, %v", step, r.Name(), opts), r, windows, repo, meter, in, opts)
		}
		merged += windowsAsPoints(t, rnd, windows, repo, meter, when)
	}
	if compared < 200 || merged < 50 {
		t.Errorf("%d buckets, and %d that were merged, were compared: too few", compared, merged)
	}
}

// sameAsPoints compares the buckets and the total of a rollup with windows over the points.
func sameAsPoints(
	t *testing.T, name string, r *rollup.Rollup[metered], measures []window.Measure[metered], repo *tsdb.Repository[metered], e tsdb.Entity,
	in tsdb.Interval, opts window.Options,
) (buckets int) {
	t.Helper()
	points := opts
	points.FromPoints = true
	agg, err := window.New(r.Grid(), measures, points)
	if err != nil {
		t.Fatal(err)
	}
	reader := rollup.For(r, repo).WithGaps(opts)
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		want := all(t, agg.Read(t.Context(), repo, e, in, order))
		got := all(t, reader.Buckets(t.Context(), e, in, order))
		if len(got) != len(want) {
			t.Fatalf("%s, order %v: %d buckets, by the points %d", name, order, len(got), len(want))
		}
		for i := range got {
			if !got[i].Start.Equal(want[i].Start) || got[i].Points != want[i].Points {
				t.Fatalf("%s, order %v: bucket %d is %+v, by the points %+v", name, order, i, got[i], want[i])
			}
			sameValues(t, fmt.Sprintf("%s, order %v, bucket at %v", name, order, got[i].Start), got[i].Values, want[i].Values)
		}
		buckets += len(got)
	}
	total, err := reader.Total(t.Context(), e, in)
	if err != nil {
		t.Fatal(err)
	}
	if total.Points > 0 {
		// One bucket of 10,000 months holds all points from the start of the total to its end.
		in = tsdb.Between(total.Start, total.End)
		agg, err = window.New(window.Months(10_000), measures, window.Options{FromPoints: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := all(t, agg.Read(t.Context(), repo, e, in, tsdb.OldestFirst)); len(want) != 1 || want[0].Points != total.Points {
			t.Fatalf("%s: the total has %d points, by the points it is %+v", name, total.Points, want)
		} else {
			sameValues(t, name+", total", total.Values, want[0].Values)
		}
	}
	return buckets
}

// windowsAsPoints compares what windows read from rollups, in grids of any width and for any measures, with windows
// over the points.
func windowsAsPoints(
	t *testing.T, rnd *rand.Rand, measures []window.Measure[metered], repo *tsdb.Repository[metered], e tsdb.Entity, when func() time.Time,
) (fromRollups int) {
	t.Helper()
	for _, of := range []struct {
		grid    window.Grid
		rollups string // that may be read
	}{
		{window.Every(30 * time.Minute), "quarter"},
		{window.Every(45 * time.Minute), "quarter"},
		{window.Every(2 * time.Hour).In(berlin), "hour"},
		{window.Days(1), "hour"},
		{window.Weeks(1, time.Sunday).In(berlin), "hour day"},
		{window.Months(10_000), "hour day"},
		{window.Every(10 * time.Minute), ""},
		{window.Every(time.Hour), "hour"},
	} {
		some := slices.Clone(measures)
		rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:1+rnd.IntN(len(some))]
		rollups := of.rollups
		for i := range some {
			switch m := &some[i]; { // a bucket does not know what a number holds in a gap that is too long
			case m.Name == "steps":
				m.Hold = rnd.IntN(2) == 0
			case m.Name == "held" && rnd.IntN(4) == 0:
				m.Hold, rollups = true, ""
			case m.Name == "kwh" && rnd.IntN(4) == 0: // nor how far a counter fell
				m.MaxDip, rollups = 100, ""
			}
		}
		opts := window.Options{Gaps: window.Gaps(rnd.IntN(4)), MaxGap: time.Duration(rnd.IntN(2)) * 5 * time.Hour}
		if slices.ContainsFunc(some, func(m window.Measure[metered]) bool { return m.Kind == window.State }) && opts.Gaps == window.Linear {
			opts.Gaps = window.Previous
		}
		by, err := window.New(of.grid, some, opts)
		if err != nil {
			t.Fatal(err)
		}
		opts.FromPoints = true
		points, err := window.New(of.grid, some, opts)
		if err != nil {
			t.Fatal(err)
		}
		first := when().Truncate(time.Hour)
		in := tsdb.Between(first, first.Add(time.Duration(1+rnd.IntN(60))*time.Hour))
		if rnd.IntN(2) == 0 {
			in = tsdb.Between(window.Days(1).In(berlin).Start(first), window.Days(1).In(berlin).Next(first.Add(30*time.Hour)))
		}
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			from, err := by.Source(t.Context(), repo, in)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%v of %v from rollup %q, order %v, %+v", of.grid, in, from, order, opts)
			if from == "" {
				if rollups != "" && opts.Gaps < window.Previous {
					t.Fatalf("%s: read from the points", name)
				}
				continue
			}
			if !strings.Contains(rollups, from) {
				t.Fatalf("%s: want one of %q", name, rollups)
			}
			got, want := all(t, by.Read(t.Context(), repo, e, in, order)), all(t, points.Read(t.Context(), repo, e, in, order))
			if len(got) != len(want) {
				t.Fatalf("%s: %d buckets, by the points %d", name, len(got), len(want))
			}
			for i := range got {
				if !got[i].Start.Equal(want[i].Start) || !got[i].End.Equal(want[i].End) || got[i].Points != want[i].Points || got[i].Partial != want[i].Partial {
					t.Fatalf("%s: bucket %d is %+v, by the points %+v", name, i, got[i], want[i])
				}
				sameValues(t, fmt.Sprintf("%s, bucket at %v", name, got[i].Start), got[i].Values, want[i].Values)
			}
			fromRollups += len(got)
		}
	}
	return fromRollups
}

func all(t *testing.T, seq iter.Seq2[window.Bucket, error]) (out []window.Bucket) {
	t.Helper()
	for b, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func sameValues(t *testing.T, name string, got, want []window.Summary) {
	t.Helper()
	for i, g := range got {
		w := want[i]
		near := func(a, b float64) bool {
			return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*(1+math.Abs(b))
		}
		pairs := []float64{
			g.Sum, w.Sum, g.Mean, w.Mean, g.Min, w.Min, g.Max, w.Max, g.First, w.First, g.Last, w.Last, g.StdDev, w.StdDev, g.Delta, w.Delta,
			g.Increase, w.Increase, g.Rate, w.Rate, g.Integral, w.Integral, g.TimeMean, w.TimeMean,
		}
		same := g.Count == w.Count && g.Missing == 0 && g.Resets == w.Resets && g.Covered == w.Covered && g.Filled == w.Filled && g.Aggregates == w.Aggregates && g.Kind == w.Kind &&
			g.FirstTime.Equal(w.FirstTime) && g.LastTime.Equal(w.LastTime) && g.Since.Equal(w.Since)
		for p := range slices.Chunk(pairs, 2) {
			same = same && near(p[0], p[1])
		}
		if g.Count > 0 && g.Exact() != w.Exact() {
			t.Fatalf("%s: %s is exactly %+v, by the points %+v", name, g.Name, g.Exact(), w.Exact())
		}
		for rank := range min(g.Count, 300) { // of all numbers, unless they are many
			q := float64(rank+1) / float64(min(g.Count, 300))
			if a, b := g.Quantile(q), w.Quantile(q); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Fatalf("%s: quantile %v of %s is %v, by the points %v", name, q, g.Name, a, b)
			}
		}
		if !same {
			t.Fatalf("%s: %s is\n%+v, by the points\n%+v", name, g.Name, g, w)
		}
	}
}

// The mean of a bucket is within its smallest and its largest number, as of windows over the points: 0.3 divided by 3 is
// below 0.1.
func TestMeansAreWithinMinAndMax(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{{Name: "load", Int: metered.load, Decimals: 2, Max: 1e6}}, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo, e, tenth := schema.For(store, acme), tsdb.NewEntity("m-17"), int64(10)
		for i := range 3 {
			if err := repo.Put(t.Context(), e, start.Add(time.Duration(i)*time.Minute), metered{Load: &tenth}); err != nil {
				t.Fatal(err)
			}
		}
		for b, err := range rollup.For(hour, repo).Buckets(t.Context(), e, tsdb.AllTime()) {
			if v := b.Values[0]; err != nil || v.Count != 3 || v.Mean != 0.1 {
				t.Errorf("the mean of three times 0.1 is %v, %v; want 0.1", v.Mean, err)
			}
		}
	})
}
