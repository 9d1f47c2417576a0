package window_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func minutes(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

func hourly(t testing.TB, opts window.Options) *window.Aggregator[sample] {
	t.Helper()
	a, err := window.New(window.Every(time.Hour), measures, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A sequence in the wrong order is an error, and no wrong bucket comes before it.
func TestOutOfOrder(t *testing.T) {
	ascending := []item{at(minutes(0), 1), at(minutes(5), 2), at(minutes(70), 3)}
	for gaps := window.LeaveOut; gaps <= window.Linear; gaps++ {
		a := hourly(t, window.Options{Gaps: gaps})
		got, _, err := collect(t, a.Over(sequence(ascending), tsdb.AllTime(), tsdb.NewestFirst))
		if !errors.Is(err, invalid.ErrOrder) || len(got) != 0 {
			t.Errorf("%v: points oldest first instead of newest first: %v and %v, want ErrOrder", gaps, got, err)
		}
		mixed := []item{at(minutes(0), 1), at(minutes(70), 3), at(minutes(69), 3)}
		got, _, err = collect(t, a.Over(sequence(mixed), tsdb.AllTime(), tsdb.OldestFirst))
		if !errors.Is(err, invalid.ErrOrder) || len(got) != 1 {
			t.Errorf("%v: a step back: %v and %v, want ErrOrder", gaps, got, err)
		}
		late := []item{at(minutes(70), 3), badAt(minutes(0)), at(minutes(71), 3)}
		if got, _, err = collect(t, a.Over(sequence(late), tsdb.AllTime(), tsdb.OldestFirst)); !errors.Is(err, invalid.ErrOrder) || len(got) != 0 {
			t.Errorf("%v: a bad point out of order: %v and %v, want ErrOrder", gaps, got, err)
		}
	}
}

// A point outside the interval is an error: it would be in a bucket that claims to hold only the interval's points.
func TestOutsideOfTheInterval(t *testing.T) {
	in := tsdb.Between(minutes(30), minutes(90))
	for _, when := range []int{-60, 29, 90, 300} {
		_, _, err := collect(t, hourly(t, window.Options{}).Over(sequence([]item{at(minutes(when), 1)}), in, tsdb.OldestFirst))
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("a point at minute %d: %v, want ErrInvalid", when, err)
		}
	}
	far := []item{at(time.Date(312026, 1, 1, 0, 0, 0, 0, time.UTC), 1)}
	if _, _, err := collect(t, hourly(t, window.Options{}).Over(sequence(far), tsdb.AllTime(), tsdb.OldestFirst)); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a point in the year 312026: %v, want ErrInvalid", err)
	}
}

// A corrupt point does not affect other points, and its bucket counts it as bad.
func TestBadPoints(t *testing.T) {
	items := []item{at(minutes(1), 20), badAt(minutes(2)), at(minutes(3), 22), badAt(minutes(130)), at(minutes(200), 5)}
	var seen []string
	for b, err := range hourly(t, window.Options{}).Over(sequence(items), tsdb.AllTime(), tsdb.OldestFirst) {
		if bad, ok := errors.AsType[*tsdb.PointError](err); ok {
			seen = append(seen, "bad "+bad.Time.Format("15:04"))
		} else if err != nil {
			t.Fatal(err)
		} else {
			seen = append(seen, b.Start.Format("15:04"))
			if want := map[int]int64{12: 1, 14: 1, 15: 0}[b.Start.Hour()]; b.Bad != want {
				t.Errorf("the bucket at %v has %d bad points, want %d", b.Start, b.Bad, want)
			}
			if b.Start.Hour() == 14 && (b.Points != 0 || b.Values[0].Count != 0 || !math.IsNaN(b.Values[0].Mean)) {
				t.Errorf("a bucket with a bad point only: %+v", b)
			}
		}
	}
	if want := []string{"bad 12:02", "12:00", "bad 14:10", "14:00", "15:00"}; !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
}

// Any other error is the last pair, and buckets that are incomplete because of it are not yielded.
func TestErrorIsLast(t *testing.T) {
	broken := errors.New("broken")
	items := []item{at(minutes(1), 20), at(minutes(61), 20), {err: broken}}
	for gaps, want := range map[window.Gaps]int{window.LeaveOut: 1, window.Linear: 1} {
		got, _, err := collect(t, hourly(t, window.Options{Gaps: gaps}).Over(sequence(items), tsdb.Between(noon, minutes(600)), tsdb.OldestFirst))
		if !errors.Is(err, broken) || len(got) != want {
			t.Errorf("%v: %d buckets and %v", gaps, len(got), err)
		}
	}
}

// A narrow grid over years of silence ends with an error at the limit, at once.
func TestRunawayGrid(t *testing.T) {
	century := tsdb.Between(noon, noon.AddDate(100, 0, 0))
	for gaps := window.Null; gaps <= window.Linear; gaps++ {
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			a, err := window.New(window.Every(1), measures, window.Options{Gaps: gaps, MaxFilled: 100})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := collect(t, a.Over(sequence(nil), century, order))
			if !errors.Is(err, window.ErrTooManyFilled) || len(got) > 100 {
				t.Errorf("%v, no point: %d buckets and %v", gaps, len(got), err)
			}
			ends := []item{at(noon, 1, 1), at(noon.AddDate(99, 0, 0), 2, 2)}
			if order == tsdb.NewestFirst {
				slices.Reverse(ends)
			}
			got, _, err = collect(t, a.Over(sequence(ends), tsdb.AllTime(), order))
			if !errors.Is(err, window.ErrTooManyFilled) || len(got) > 101 {
				t.Errorf("%v, two points: %d buckets and %v", gaps, len(got), err)
			}
		}
	}
	exactly := tsdb.Between(noon, minutes(600))
	for limit, want := range map[int]error{9: window.ErrTooManyFilled, 10: nil} {
		got, _, err := collect(t, hourly(t, window.Options{Gaps: window.Null, MaxFilled: limit}).Over(sequence(nil), exactly, tsdb.OldestFirst))
		if !errors.Is(err, want) || len(got) != limit {
			t.Errorf("10 empty hours with a limit of %d: %d buckets and %v", limit, len(got), err)
		}
	}
}

// A measure without any further values does not delay buckets for ever.
func TestHeldBackIsBounded(t *testing.T) {
	const held = 50
	passed, most := 0, 0
	points := func(yield func(tsdb.Point[sample], error) bool) {
		if !yield(at(noon, 1, 1).point, nil) {
			return
		}
		for i := 1; i < 1000; i++ {
			passed = i
			if !yield(at(noon.Add(-time.Duration(i)*time.Hour), 2).point, nil) {
				return
			}
		}
	}
	a := hourly(t, window.Options{Gaps: window.Linear, MaxFilled: held})
	yielded := 0
	var last error
	for _, err := range a.Over(points, tsdb.AllTime(), tsdb.NewestFirst) {
		if last = err; err == nil {
			yielded++
		}
		most = max(most, passed-yielded)
	}
	if !errors.Is(last, window.ErrTooManyFilled) || most > held+2 {
		t.Errorf("%d buckets were held back, then error %v", most, last)
	}
}

// The loop decides how far the points are read, and the sequence can be used again.
func TestLeavingAndRerunning(t *testing.T) {
	var items []item
	for i := range 1000 {
		items = append(items, at(minutes(i), float64(i), 1))
	}
	for gaps := window.LeaveOut; gaps <= window.Linear; gaps++ {
		read := 0
		points := func(yield func(tsdb.Point[sample], error) bool) {
			for p, err := range sequence(items) {
				read++
				if !yield(p, err) {
					return
				}
			}
		}
		seq := hourly(t, window.Options{Gaps: gaps}).Over(points, tsdb.Between(noon.Add(-24*time.Hour), minutes(2000)), tsdb.OldestFirst)
		for range seq {
			break
		}
		if read > 61 {
			t.Errorf("%v: the first bucket read %d points", gaps, read)
		}
		first, _, err := collect(t, seq)
		again, _, err2 := collect(t, seq)
		if err != nil || err2 != nil || !slices.EqualFunc(first, again, same) {
			t.Errorf("%v: the second use yields %d buckets, the first %d (%v, %v)", gaps, len(again), len(first), err, err2)
		}
		for range hourly(t, window.Options{Gaps: gaps}).Over(sequence([]item{badAt(noon), at(minutes(1), 1)}), tsdb.AllTime(), tsdb.OldestFirst) {
			break // at the bad point
		}
		for stop := range len(first) {
			n := 0
			for range seq {
				if n++; n > stop {
					break
				}
			}
		}
	}
}

// Values after a huge number are not lost from the sum, and finite values never sum to NaN.
func TestSum(t *testing.T) {
	for name, c := range map[string]struct {
		in        []float64
		sum, mean float64
	}{
		"cancels":       {[]float64{1e100, 1, -1e100}, 1, 1.0 / 3},
		"small ones":    {[]float64{1, 1e-16, 1e-16, 1e-16, 1e-16}, 1.0000000000000004, 0.2000000000000001},
		"beyond range":  {[]float64{math.MaxFloat64, math.MaxFloat64, 1}, math.Inf(1), math.Inf(1)},
		"not a number":  {[]float64{math.NaN(), 2, math.Inf(-1)}, 2, 2},
		"minus zero":    {[]float64{math.Copysign(0, -1)}, 0, 0},
		"mean within":   {[]float64{0.1, 0.1, 0.1}, 0.30000000000000004, 0.1},
		"largest alone": {[]float64{-math.MaxFloat64}, -math.MaxFloat64, -math.MaxFloat64},
	} {
		var items []item
		for i, x := range c.in {
			items = append(items, at(minutes(i), x))
		}
		got, _, err := collect(t, hourly(t, window.Options{}).Over(sequence(items), tsdb.AllTime(), tsdb.OldestFirst))
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		if s := got[0].Values[0]; s.Sum != c.sum || s.Mean != c.mean || got[0].Points != int64(len(c.in)) {
			t.Errorf("%s: sum %v and mean %v, want %v and %v", name, s.Sum, s.Mean, c.sum, c.mean)
		}
		if text, err := json.Marshal(got); err != nil || !json.Valid(text) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	of := measures[0].Of
	type list = []window.Measure[sample]
	for name, c := range map[string]struct {
		grid     window.Grid
		measures list
		opts     window.Options
	}{
		"no grid":        {window.Grid{}, measures, window.Options{}},
		"no measures":    {window.Days(1), nil, window.Options{}},
		"no function":    {window.Days(1), list{{Name: "a"}}, window.Options{}},
		"no name":        {window.Days(1), list{{Of: of}}, window.Options{}},
		"same name":      {window.Days(1), list{{Name: "a", Of: of}, {Name: "a", Of: of}}, window.Options{}},
		"unknown gaps":   {window.Days(1), measures, window.Options{Gaps: 4}},
		"negative limit": {window.Days(1), measures, window.Options{MaxFilled: -1}},
	} {
		if a, err := window.New(c.grid, c.measures, c.opts); !errors.Is(err, tsdb.ErrInvalid) || a != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	in, days := tsdb.AllTime(), window.Frame{Grid: window.Days(1), Measures: []string{"a"}}
	good := func(yield func(window.Bucket, error) bool) {}
	null := window.Options{Gaps: window.Null}
	spring := time.Date(310026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, seq := range map[string]iter.Seq2[window.Bucket, error]{
		"nil aggregator":  (*window.Aggregator[sample])(nil).Over(sequence(nil), in, tsdb.OldestFirst),
		"zero aggregator": new(window.Aggregator[sample]).Over(sequence(nil), in, tsdb.OldestFirst),
		"nil points":      hourly(t, window.Options{}).Over(nil, in, tsdb.OldestFirst),
		"unknown order":   hourly(t, window.Options{}).Over(sequence(nil), in, 2),
		"nil ranger":      hourly(t, window.Options{}).Read(t.Context(), nil, tsdb.NewEntity("a"), in, tsdb.OldestFirst),
		"zero frame":      window.Fill(good, window.Frame{}, window.Options{}),
		"fill limit":      window.Fill(good, days, window.Options{MaxFilled: -1}),
		"far interval":    window.Fill(good, window.Frame{Grid: days.Grid, Measures: days.Measures, Interval: tsdb.Between(noon, spring)}, null),
		"old interval":    window.Fill(good, window.Frame{Grid: days.Grid, Measures: days.Measures, Interval: tsdb.Since(noon.AddDate(-3000, 0, 0))}, null),
		"mixed-up ends":   hourly(t, window.Options{}).Over(sequence(nil), tsdb.Between(minutes(1), noon), tsdb.OldestFirst),
		"mixed-up frame":  window.Fill(good, window.Frame{Grid: days.Grid, Measures: days.Measures, Interval: tsdb.Between(minutes(1), noon)}, null),
	} {
		if got, _, err := collect(t, seq); !errors.Is(err, tsdb.ErrInvalid) || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestGapsAsText(t *testing.T) {
	for g := window.LeaveOut; g <= window.Linear; g++ {
		text, err := json.Marshal(g)
		var again window.Gaps
		if err != nil || json.Unmarshal(text, &again) != nil || again != g {
			t.Errorf("%v has the text %s, which is read as %v (%v)", g, text, again, err)
		}
	}
	var g window.Gaps
	if err := g.UnmarshalText([]byte("zero")); !errors.Is(err, tsdb.ErrInvalid) || g != window.LeaveOut {
		t.Errorf("the zero Gaps is read as %v, %v", g, err)
	}
	if _, err := window.Gaps(9).MarshalText(); !errors.Is(err, tsdb.ErrInvalid) || window.Gaps(9).String() != "unknown" {
		t.Error(err)
	}
}

// The buckets of a group are filled as they are: nothing joins their numbers.
func TestFillOfGroups(t *testing.T) {
	nan := math.NaN()
	buckets := []window.Bucket{
		{Start: noon, End: minutes(60), Points: 1, Values: []window.Summary{{Name: "a", Count: 1, Sum: 1, Mean: 1, Min: 1, Max: 1, First: nan, Last: nan}}},
		{Start: minutes(60), End: minutes(120), Points: 1, Values: []window.Summary{{Name: "a"}}},
		{Start: minutes(180), End: minutes(240), Points: 1, Values: []window.Summary{{Name: "a", Count: 1, Sum: 4, Mean: 4, Min: 4, Max: 4, First: nan, Last: nan}}},
	}
	seq := func(yield func(window.Bucket, error) bool) {
		for _, b := range buckets {
			if !yield(b, nil) {
				return
			}
		}
	}
	f := window.Frame{Grid: window.Every(time.Hour), Measures: []string{"a"}, Order: tsdb.OldestFirst}
	got, _, err := collect(t, window.Fill(seq, f, window.Options{Gaps: window.Linear}))
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	for i, b := range got {
		if b.Values[0].Mean != float64(i+1) || !math.IsNaN(b.Values[0].First) {
			t.Errorf("bucket %d has %+v", i, b.Values[0])
		}
	}
}

// Buckets of other sources that are out of order or repeated are an error, with and without gaps.
func TestFillOutOfOrder(t *testing.T) {
	hour := func(h int) window.Bucket {
		return window.Bucket{Start: minutes(60 * h), End: minutes(60*h + 60), Points: 1, Values: []window.Summary{{Name: "a", Count: 1}}}
	}
	for _, second := range []int{1, 2} {
		seq := func(yield func(window.Bucket, error) bool) { _ = yield(hour(2), nil) && yield(hour(second), nil) }
		for gaps := window.LeaveOut; gaps <= window.Linear; gaps++ {
			f := window.Frame{Grid: window.Every(time.Hour), Measures: []string{"a"}, Order: tsdb.OldestFirst}
			if got, _, err := collect(t, window.Fill(seq, f, window.Options{Gaps: gaps})); !errors.Is(err, invalid.ErrOrder) || len(got) != 1 {
				t.Errorf("%v, hour 2 and then %d: %d buckets and %v", gaps, second, len(got), err)
			}
		}
	}
}

// An interval since the zero time has no start: there are no gaps of two thousand years.
func TestSinceTheZeroTime(t *testing.T) {
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		a := hourly(t, window.Options{Gaps: window.Null})
		got, _, err := collect(t, a.Over(sequence([]item{at(noon, 1)}), tsdb.Since(time.Time{}), order))
		if err != nil || len(got) != 1 || got[0].Partial {
			t.Errorf("got %d buckets and error %v", len(got), err)
		}
	}
}

// A repository is read in one scan, with its errors, and ending the loop early ends the scan.
func TestRead(t *testing.T) {
	ctx := context.Background()
	temps := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, temps)
	repo, roof := temps.For(store, tenant.MustParse("acme")), tsdb.NewEntity("roof-7")
	var points []tsdb.Point[float64]
	for i := range 300 {
		points = append(points, tsdb.Point[float64]{Entity: roof, Time: minutes(i), Value: float64(i)})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		t.Fatal(err)
	}
	a, err := window.New(window.Every(time.Hour), []window.Measure[float64]{
		{Name: "temp", Of: func(v float64) (float64, bool) { return v, true }},
	}, window.Options{Gaps: window.Null})
	if err != nil {
		t.Fatal(err)
	}
	in := tsdb.Between(minutes(-60), minutes(330))
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		before := conn.Counts().Calls[tsdbtest.ReadRows]
		got, _, err := collect(t, a.Read(ctx, repo, roof, in, order))
		if err != nil || len(got) != 7 {
			t.Fatalf("%d buckets, %v", len(got), err)
		}
		if order == tsdb.NewestFirst {
			slices.Reverse(got)
		}
		if s := got[2].Values[0]; s.Count != 60 || s.Mean != 89.5 || s.First != 60 || s.Last != 119 || got[6].Partial != true || got[0].Points != 0 {
			t.Errorf("got buckets %+v", got)
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows] - before; n != 1 {
			t.Errorf("%d scans, want 1", n)
		}
		for range a.Read(ctx, repo, roof, in, order) {
			break
		}
	}
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows).Times(1))
	if _, _, err := collect(t, a.Read(ctx, repo, roof, in, tsdb.NewestFirst)); err == nil {
		t.Error("a refused scan yields no error")
	}
	stopped, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range a.Read(stopped, repo, roof, in, tsdb.NewestFirst) {
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n != 1 {
		t.Errorf("after the context ended: %d buckets and %v", n, last)
	}
	if _, _, err := collect(t, a.Read(tenant.NewContext(ctx, tenant.MustParse("globex")), repo, roof, in, tsdb.NewestFirst)); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant in the context: %v, want ErrTenantMismatch", err)
	}
}

// TestNeighboursOfATenantWithLimits: the limit of a range's length is for the interval, not for the history around it.
func TestNeighboursOfATenantWithLimits(t *testing.T) {
	limits, err := limit.New(limit.Table{Defaults: limit.Limits{RangeLength: 2 * time.Hour}}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := tsdb.MustDefine("meters", tsdb.Key("meter"), codec.JSON[float64](), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: limits}}, s)
	repo, meter := s.For(store, tenant.MustParse("acme")), tsdb.NewEntity("m-1")
	for i := range 4 {
		if err := repo.Put(t.Context(), meter, noon.Add(time.Duration(i)*24*time.Hour), float64(10*i)); err != nil {
			t.Fatal(err)
		}
	}
	counted, err := window.New(window.Every(time.Hour), []window.Measure[float64]{
		{Name: "wh", Kind: window.Counter, Of: func(v float64) (float64, bool) { return v, true }},
		{Name: "w", Of: func(v float64) (float64, bool) { return v, true }, Aggregates: window.Integral},
	}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	day := noon.Add(48 * time.Hour)
	var increase float64
	for b, err := range counted.Read(t.Context(), repo, meter, tsdb.Between(day, day.Add(time.Hour))) {
		if err != nil {
			t.Fatal(err)
		}
		increase += b.Values[0].Increase
	}
	if increase != 10 {
		t.Errorf("increase %v, want 10, from the point of the day before", increase)
	}
	for _, err := range counted.Read(t.Context(), repo, meter, tsdb.Between(day, day.Add(3*time.Hour))) {
		if !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("an interval of three hours: error %v, want ErrExceeded", err)
		}
	}
}

// Buckets that wait only for a step or an integral fail nothing: the one that waits longest goes without, and says so.
func TestWaitingForAStepIsBounded(t *testing.T) {
	const held = 50
	both := slices.Clone(measures)
	both[0].Aggregates, both[1].Aggregates = window.Delta, window.Delta|window.Integral
	a, err := window.New(window.Every(time.Hour), both, window.Options{MaxFilled: held})
	if err != nil {
		t.Fatal(err)
	}
	items := []item{at(noon, 1, 7)}
	for i := 1; i < 200; i++ {
		items = append(items, at(noon.Add(-time.Duration(i)*time.Hour), 1-float64(i)))
	}
	items = append(items, at(noon.Add(-200*time.Hour), -199, 3))
	got, _, err := collect(t, a.Over(sequence(items), tsdb.AllTime(), tsdb.NewestFirst))
	if err != nil || len(got) != len(items) {
		t.Fatalf("%d buckets, error %v; want %d", len(got), err, len(items))
	}
	for i, b := range got[:200] {
		if temp := b.Values[0]; temp.Delta != 1 {
			t.Errorf("bucket %d: delta %v, want 1", i, temp.Delta)
		}
	}
	if load := got[0].Values[1]; load.Delta != 0 || !load.Since.Equal(noon) || load.Covered != (window.Span{}) {
		t.Errorf("the newest load has delta %v since %v, and covers %v; want none", load.Delta, load.Since, load.Covered)
	}
}
