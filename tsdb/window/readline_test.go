package window_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sent is a stored value; not each has a number.
type sent struct {
	V    float64
	None bool
}

func numberOf(v sent) (float64, bool) { return v.V, !v.None }

var (
	value = window.Measure[sent]{Name: "v", Of: numberOf}
	kept  = []rollup.Measure[sent]{
		{Name: "basic", Of: numberOf, Max: 1e6},
		{Name: "v", Of: numberOf, Max: 1e6, Aggregates: window.Basic | window.Ends},
		{Name: "counter", Kind: window.Counter, Of: numberOf, Max: 1e6, Aggregates: window.Min | window.Max | window.Increase},
		{Name: "state", Kind: window.State, Of: numberOf, Max: 1e6},
	}
	tens     = rollup.MustDefine("tens", window.Every(10*time.Second), kept, rollup.Options{})
	minutely = rollup.MustDefine("minutes", window.Every(time.Minute), kept, rollup.Options{From: "tens"})
)

func define(t *testing.T, opts tsdb.SchemaOptions) (*tsdb.Repository[sent], *testkit.Clock, func()) {
	t.Helper()
	schema := tsdb.MustDefine("sent", tsdb.Key("device"), codec.JSON[sent](), opts)
	clock := testkit.NewClock(noon)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, schema)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) { yield(acme, nil) }
	}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	return schema.For(store, acme), clock, func() {
		t.Helper()
		if _, err := worker.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, repo *tsdb.Repository[sent], points []tsdb.Point[sent]) {
	t.Helper()
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
}

// TestLinesFromRollups compares lines from rollups with those from the points: after passes of a worker, late points
// and deletions, of random intervals and columns.
func TestLinesFromRollups(t *testing.T) {
	repo, clock, pass := define(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{tens, minutely}})
	exact, moved, fromPoints := 0, 0, 0
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		e := tsdb.NewEntity(fmt.Sprint(seed))
		clock.Set(noon.Add(50 * time.Minute))
		put(t, repo, values(rnd, e, 900, 0))
		clock.Add(2 * time.Minute)
		pass()
		put(t, repo, values(rnd, e, 40, 0)) // late
		gone := noon.Add(time.Duration(rnd.IntN(3000)) * time.Second)
		if _, err := repo.DeleteRange(t.Context(), e, tsdb.Between(gone, gone.Add(100*time.Second))); err != nil {
			t.Fatal(err)
		}
		clock.Set(noon.Add(time.Hour))
		put(t, repo, values(rnd, e, 200, 50*time.Minute))
		for range 25 {
			column := []time.Duration{3, 10, 20, 60, 120, 17, 71}[rnd.IntN(7)] * time.Second
			unit := []time.Duration{1, 10, 60}[rnd.IntN(3)] * time.Second
			columns := 1 + rnd.IntN(30)
			from := noon.Add(time.Duration(rnd.IntN(3000)) * time.Second).Truncate(unit)
			in := tsdb.Between(from, from.Add(time.Duration(columns)*column))
			opts := window.LineOptions{Columns: columns, MaxGap: []time.Duration{0, 5, 10, 30, 60, 300}[rnd.IntN(6)] * time.Second}
			line, err := window.ReadLine(t.Context(), repo, e, in, value, opts)
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("seed %d, %v and %d columns of %v, gap %v, %+v", seed, from, columns, column, opts.MaxGap, line)
			want, width := "", time.Duration(0)
			switch fits := func(w time.Duration) bool { // whole buckets must be in the interval, too
				to := from.Add(time.Duration(columns) * column).Truncate(w)
				return column >= w && (opts.MaxGap == 0 || opts.MaxGap >= w) && from.Add(w-1).Truncate(w).Before(to)
			}; {
			case fits(time.Minute):
				want, width = "minutes", time.Minute
			case fits(10 * time.Second):
				want, width = "tens", 10*time.Second
			}
			if line.Rollup != want {
				t.Fatalf("%s: want rollup %q", what, want)
			}
			all := stored(t, repo, e, in, opts.MaxGap)
			samples := samplesIn(t, line.Samples)
			breaks := samplesIn(t, window.M4(repo.Range(t.Context(), e, in, tsdb.OldestFirst), in, numberOf, opts))
			if got, want := breaksOf(samples), breaksOf(breaks); !slices.Equal(got, want) {
				t.Fatalf("%s: breaks before %v, want %v", what, got, want)
			}
			aligned := true
			for i := range columns {
				edge := from.Add(time.Duration(i) * column)
				aligned = aligned && !(edge.After(line.From) && edge.Before(line.To) && !edge.Truncate(width).Equal(edge))
			}
			if aligned != line.Exact {
				t.Fatalf("%s: want Exact %v", what, aligned)
			}
			if line.Exact {
				length := time.Duration(columns) * column
				if got, want := drawn(shift(samples, from), columns, length), drawn(shift(all, from), columns, length); !slices.Equal(got, want) {
					t.Fatalf("%s: %v\nwant %v", what, got, want)
				}
			}
			nearPoints(t, what, samples, all, from, column, width)
			switch {
			case want == "":
				fromPoints++
			case line.Exact:
				exact++
			default:
				moved++
			}
		}
	}
	if exact < 5 || moved < 5 || fromPoints < 5 {
		t.Errorf("%d lines are exact, %d are not, and %d come from points: want some of each", exact, moved, fromPoints)
	}
}

// values returns n random points from an offset on, with silences.
func values(rnd *rand.Rand, e tsdb.Entity, n int, offset time.Duration) (points []tsdb.Point[sent]) {
	for i, at := 0, noon.Add(offset); i < n && at.Before(noon.Add(time.Hour)); i++ {
		at = at.Add(time.Duration(1+rnd.IntN(6500)) * time.Millisecond)
		if rnd.IntN(40) == 0 {
			at = at.Add(time.Duration(rnd.IntN(400)) * time.Second)
		}
		points = append(points, tsdb.Point[sent]{Entity: e, Time: at, Value: sent{V: float64(rnd.IntN(2000) - 1000), None: rnd.IntN(20) == 0}})
	}
	return points
}

// stored returns the line through all points of an interval.
func stored(t *testing.T, repo *tsdb.Repository[sent], e tsdb.Entity, in tsdb.Interval, gap time.Duration) (all []window.LineSample) {
	t.Helper()
	for p, err := range repo.Range(t.Context(), e, in, tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		if !p.Value.None {
			all = append(all, window.LineSample{Time: p.Time, Value: p.Value.V, Break: gap > 0 && len(all) > 0 && p.Time.Sub(all[len(all)-1].Time) > gap})
		}
	}
	return all
}

func breaksOf(line []window.LineSample) (at []time.Time) {
	for _, s := range line {
		if s.Break {
			at = append(at, s.Time)
		}
	}
	return at
}

// shift moves a line that starts at a time to noon.
func shift(line []window.LineSample, from time.Time) []window.LineSample {
	out := slices.Clone(line)
	for i := range out {
		out[i].Time = noon.Add(out[i].Time.Sub(from))
	}
	return out
}

// near checks that each sample is a point, or has the value of a point of its bucket, and that no point is outside of
// what the samples of its column and of the ones next to it cover.
func nearPoints(t *testing.T, what string, samples, all []window.LineSample, from time.Time, column, width time.Duration) {
	t.Helper()
	for _, s := range samples {
		if !slices.ContainsFunc(all, func(p window.LineSample) bool {
			at := p.Time.Equal(s.Time)
			if s.Approx {
				at = p.Time.Truncate(width).Equal(s.Time.Truncate(width))
			}
			return at && p.Value == s.Value
		}) {
			t.Fatalf("%s: %+v is not a point", what, s)
		}
	}
	covered := map[time.Duration]extent{}
	for _, s := range samples {
		for _, i := range []time.Duration{-1, 0, 1} {
			at := s.Time.Sub(from)/column + i
			c, ok := covered[at]
			if !ok {
				c = extent{s.Value, s.Value}
			}
			covered[at] = extent{min(c.low, s.Value), max(c.high, s.Value)}
		}
	}
	for _, p := range all {
		if c, ok := covered[p.Time.Sub(from)/column]; !ok || p.Value < c.low || p.Value > c.high {
			t.Fatalf("%s: the point %+v is outside of %+v", what, p, c)
		}
	}
}

// TestReadLineChooses checks which rollup is read, and that nothing is lost that a rollup no longer keeps.
func TestReadLineChooses(t *testing.T) {
	short := gc.Class{Name: "m30", Policy: gc.MaxAge(30 * time.Minute)}
	fine := rollup.MustDefine("fine", window.Every(10*time.Second), kept, rollup.Options{Retention: short})
	coarse := rollup.MustDefine("coarse", window.Every(time.Minute), kept, rollup.Options{})
	coarsest := rollup.MustDefine("coarsest", window.Every(2*time.Minute), kept, rollup.Options{Retention: short})
	repo, clock, pass := define(t, tsdb.SchemaOptions{
		Retention: gc.Class{Name: "m90", Policy: gc.MaxAge(90 * time.Minute)}, Rollups: []tsdb.Rollup{fine, coarse, coarsest},
	})
	e := tsdb.NewEntity("e")
	var points []tsdb.Point[sent]
	for i := range 720 {
		points = append(points, tsdb.Point[sent]{Entity: e, Time: noon.Add(time.Duration(i) * 5 * time.Second), Value: sent{V: float64(i % 7)}})
	}
	clock.Set(noon.Add(time.Hour))
	put(t, repo, points)
	clock.Add(2 * time.Minute)
	pass()
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	hour := tsdb.Between(noon, minute(60))
	is := func(name string, kind window.Kind) window.Measure[sent] {
		return window.Measure[sent]{Name: name, Kind: kind, Of: numberOf}
	}
	for _, tt := range []struct {
		name    string
		in      tsdb.Interval
		m       window.Measure[sent]
		opts    window.LineOptions
		rollup  string
		from    time.Time
		samples int // of M4
	}{
		{"columns of a minute", hour, value, window.LineOptions{Columns: 60}, "coarse", noon, 0},
		{"columns of two minutes: the coarsest one is kept for too short a time", hour, value, window.LineOptions{Columns: 30}, "coarse", noon, 0},
		{"which does not matter later", tsdb.Between(minute(40), minute(60)), value, window.LineOptions{Columns: 10}, "coarsest", minute(40), 0},
		{"columns of 20 seconds, of which only the last half hour is kept", hour, value, window.LineOptions{Columns: 180}, "fine", minute(32), 0},
		{"columns of 5 seconds", hour, value, window.LineOptions{Columns: 720}, "", time.Time{}, 720},
		{"a gap shorter than a bucket", hour, value, window.LineOptions{Columns: 60, MaxGap: 59 * time.Second}, "fine", minute(32), 0},
		{"a measure without its ends", hour, is("basic", window.Gauge), window.LineOptions{Columns: 60}, "", time.Time{}, 0},
		{"an unknown measure", hour, is("w", window.Gauge), window.LineOptions{Columns: 60}, "", time.Time{}, 0},
		{"a counter", hour, is("counter", window.Counter), window.LineOptions{Columns: 60}, "coarse", noon, 0},
		{"a counter under the name of a gauge", hour, is("v", window.Counter), window.LineOptions{Columns: 60}, "", time.Time{}, 0},
		{"a state", hour, is("state", window.State), window.LineOptions{Columns: 60}, "", time.Time{}, 0},
		{"less than a bucket", tsdb.Between(minute(50).Add(time.Second), minute(50).Add(9*time.Second)), value, window.LineOptions{Columns: 1}, "", time.Time{}, 0},
	} {
		line, err := window.ReadLine(t.Context(), repo, e, tt.in, tt.m, tt.opts)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if line.Rollup != tt.rollup || !line.From.Equal(tt.from) {
			t.Errorf("%s: from %+v, want rollup %q from %v", tt.name, line, tt.rollup, tt.from)
		}
		samples := samplesIn(t, line.Samples)
		if tt.samples > 0 && len(samples) != tt.samples {
			t.Errorf("%s: %d samples, want %d", tt.name, len(samples), tt.samples)
		}
		if last := samplesIn(t, window.M4(repo.Range(t.Context(), e, tt.in, tsdb.OldestFirst), tt.in, numberOf, tt.opts)); len(samples) == 0 ||
			samples[0] != last[0] || samples[len(samples)-1] != last[len(last)-1] {
			t.Errorf("%s: the line is not that of the points: %v", tt.name, samples)
		}
		tt.opts.LTTB = true
		lttb, err := window.ReadLine(t.Context(), repo, e, tt.in, tt.m, tt.opts)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if s := samplesIn(t, lttb.Samples); len(s) == 0 || len(s) > tt.opts.Columns+1 || lttb.Rollup != tt.rollup || lttb.Exact == (tt.rollup != "") {
			t.Errorf("%s: %d samples by LTTB from %+v", tt.name, len(s), lttb)
		}
	}

	clock.Set(minute(170)) // the points have expired, and one of the rollups is kept
	line, err := window.ReadLine(t.Context(), repo, e, hour, value, window.LineOptions{Columns: 30})
	if err != nil {
		t.Fatal(err)
	}
	if s := samplesIn(t, line.Samples); line.Rollup != "coarse" || len(s) < 60 {
		t.Errorf("after the points have expired: %d samples from %+v, want two a column or more", len(s), line)
	}
}

// TestReadOfAGrownRollup: buckets that were stored before the rollup kept what a line needs are read from the points.
func TestReadOfAGrownRollup(t *testing.T) {
	schema := func(m rollup.Measure[sent]) *tsdb.Schema[sent] {
		return tsdb.MustDefine("grown", tsdb.Key("device"), codec.JSON[sent](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{
			rollup.MustDefine("minutes", window.Every(time.Minute), []rollup.Measure[sent]{m}, rollup.Options{}),
		}})
	}
	before := schema(rollup.Measure[sent]{Name: "v", Of: numberOf, Max: 1e6})
	after := schema(rollup.Measure[sent]{Name: "v", Of: numberOf, Max: 1e6, Aggregates: window.Basic | window.Ends, Added: true})
	clock := testkit.NewClock(noon.Add(time.Hour))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, before)
	e := tsdb.NewEntity("e")
	put(t, before.For(store, acme), values(rand.New(rand.NewPCG(1, 1)), e, 500, 0))
	clock.Add(2 * time.Minute)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	repo := after.For(store, acme)
	put(t, repo, values(rand.New(rand.NewPCG(1, 2)), e, 10, 20*time.Minute)) // some buckets are computed again
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	line, err := window.ReadLine(t.Context(), repo, e, hour, value, window.LineOptions{Columns: 60})
	if err != nil || line.Rollup != "minutes" {
		t.Fatalf("from %+v, %v; want the rollup", line, err)
	}
	got, want := drawn(samplesIn(t, line.Samples), 60, time.Hour), drawn(stored(t, repo, e, hour, 0), 60, time.Hour)
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestLineOfADamagedBucket: a bucket whose first number would be in another bucket is read from the points.
func TestLineOfADamagedBucket(t *testing.T) {
	testkit.Plain(t)
	schema := tsdb.MustDefine("bad", tsdb.Key("device"), codec.JSON[sent](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{
		rollup.MustDefine("minutes", window.Every(time.Minute),
			[]rollup.Measure[sent]{{Name: "v", Of: numberOf, Max: 1e6, Aggregates: window.Basic | window.Ends}}, rollup.Options{}),
	}})
	clock := testkit.NewClock(noon.Add(time.Hour))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, schema)
	e, repo := tsdb.NewEntity("e"), schema.For(store, acme)
	put(t, repo, values(rand.New(rand.NewPCG(1, 1)), e, 500, 0))
	clock.Add(2 * time.Minute)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	read := func() []window.LineSample {
		t.Helper()
		line, err := window.ReadLine(t.Context(), repo, e, hour, value, window.LineOptions{Columns: 60})
		if err != nil || line.Rollup != "minutes" {
			t.Fatalf("from %+v, %v; want the rollup", line, err)
		}
		return samplesIn(t, line.Samples)
	}
	want := drawn(read(), 60, time.Hour)
	client, _ := tsdbtest.Clients(t, conn)
	table, damaged := client.Open(tsdbtest.Table), 0
	err = table.ReadRows(t.Context(), bigtable.PrefixRange("acme#bad!rollup."), func(row bigtable.Row) bool {
		for family, items := range row {
			for _, item := range items {
				if column := strings.TrimPrefix(item.Column, family+":"); strings.HasPrefix(column, "F.") {
					mut := bigtable.NewMutation()
					mut.AddIntToCell(family, column, item.Timestamp, int64(-2*time.Hour))
					if err := table.Apply(t.Context(), item.Row, mut); err != nil {
						t.Fatal(err)
					}
					damaged++
				}
			}
		}
		return true
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d damaged cells, %v", damaged, err)
	}
	if got := drawn(read(), 60, time.Hour); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestReadLineRefuses(t *testing.T) {
	repo, _, _ := define(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{tens, minutely}})
	e, hour := tsdb.NewEntity("e"), tsdb.Between(noon, noon.Add(time.Hour))
	one := window.LineOptions{Columns: 1}
	for _, tt := range []struct {
		name string
		repo *tsdb.Repository[sent]
		in   tsdb.Interval
		m    window.Measure[sent]
		opts window.LineOptions
		want error
	}{
		{"no columns", repo, hour, value, window.LineOptions{}, tsdb.ErrInvalid},
		{"no end", repo, tsdb.Since(noon), value, one, tsdb.ErrInvalid},
		{"no measure", repo, hour, window.Measure[sent]{}, one, tsdb.ErrInvalid},
		{"no name", repo, hour, window.Measure[sent]{Of: numberOf}, one, tsdb.ErrInvalid},
		{"no repository", nil, hour, value, one, tsdb.ErrInvalid},
	} {
		for _, tt.opts.LTTB = range []bool{false, true} {
			if _, err := window.ReadLine(t.Context(), tt.repo, e, tt.in, tt.m, tt.opts); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
	}
	other := tenant.NewContext(t.Context(), tenant.MustParse("acme2"))
	if _, err := window.ReadLine(other, repo, e, hour, value, one); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("with another tenant in the context: %v", err)
	}
	line, err := window.ReadLine(t.Context(), repo, tsdb.NewEntity("a", "b"), hour, value, window.LineOptions{Columns: 60})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range line.Samples {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("an entity of two parts: %v", err)
		}
	}
	if _, err := window.ReadLine(t.Context(), repo, e, hour, window.Measure[sent]{Name: "v", Int: func(sent) (int64, bool) { return 7, true }, Decimals: 1}, one); err != nil {
		t.Errorf("whole numbers: %v", err)
	}
}

// A year of readings by the minute, as a line of 365 pixels: it comes from a rollup by hours, and the newest hour from
// points.
func ExampleReadLine() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	type Reading struct{ TempC float64 }
	temp := func(r Reading) (float64, bool) { return r.TempC, true }
	hourly := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[Reading]{
		{Name: "temp_c", Of: temp, Decimals: 1, Max: 100, Aggregates: window.Min | window.Max | window.Ends},
	}, rollup.Options{})
	weather := tsdb.MustDefine("weather", tsdb.Key("device"), codec.JSON[Reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly}})
	if err := store.Ensure(ctx, weather); err != nil {
		panic(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("roof-7")
	to := noon.Add(90 * time.Minute)
	for i := range 4 {
		if err := repo.Put(ctx, roof, to.Add(-time.Duration(i+1)*40*time.Minute), Reading{float64(20 + i%2)}); err != nil {
			panic(err)
		}
	}

	year := tsdb.Between(to.AddDate(-1, 0, 0), to)
	line, err := window.ReadLine(ctx, repo, roof, year, window.Measure[Reading]{Name: "temp_c", Of: temp}, window.LineOptions{Columns: 365})
	if err != nil {
		panic(err)
	}
	fmt.Println("from", line.Rollup, "until", line.To.Format(time.TimeOnly))
	for s, err := range line.Samples {
		fmt.Println(s.Time.Format(time.TimeOnly), s.Value, err)
	}
	// Output:
	// from hour until 13:00:00
	// 10:50:00 21 <nil>
	// 11:30:00 20 <nil>
	// 12:50:00 20 <nil>
}
