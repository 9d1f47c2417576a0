package forecast_test

import (
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestForecastOfAllKindsOfRows: heads keep their number of points, rollups use their own class, marks exist until they
// are processed, points of a former class use its policy, and rows of other programs belong to no class.
func TestForecastOfAllKindsOfRows(t *testing.T) {
	now := noon.Add(-40 * aDay)
	d7, d30 := gc.Class{Name: "d7", Policy: gc.MaxAge(7 * aDay)}, gc.Class{Name: "d30", Policy: gc.MaxAge(30 * aDay)}
	temp := []rollup.Measure[float64]{{Name: "t", Of: func(v float64) (float64, bool) { return v, true }, Max: 100}}
	daily := rollup.MustDefine("daily", window.Every(aDay), temp, rollup.Options{Retention: gc.Class{Name: "y2", Policy: gc.MaxAge(730 * aDay)}})
	opts := tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Retention: d30, Head: tsdb.Head{Points: 2}, Rollups: []tsdb.Rollup{daily}, MaxFuture: 100 * aDay,
	}
	schema := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), opts)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, schema)
	acme := tenant.MustParse("acme")
	for i := range 40 {
		if err := schema.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), noon.Add(-time.Duration(i)*aDay-time.Hour), 1); err != nil {
			t.Fatal(err)
		}
	}
	opts.Retention, opts.FormerClasses = d7, []gc.Class{d30}
	newer := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), opts)
	if err := store.Ensure(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := newer.For(store, acme).Put(t.Context(), tsdb.NewEntity("b"), noon.Add(-time.Duration(i)*aDay-time.Hour), 1); err != nil {
			t.Fatal(err)
		}
	}
	now = noon
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := bigtable.NewMutation()
	m.Set("d30", "x", bigtable.Time(noon.Add(-50*aDay)), []byte("of another program"))
	for _, key := range []string{"acme#temps", "acme#other#x#1", "zeta"} {
		if err := table.Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
	head := bigtable.NewMutation() // of another codec: versions are counted by column
	for i := range 2 {
		head.Set("d7.h2", "p:zzz", bigtable.Time(noon.Add(-time.Duration(i)*time.Hour)), []byte("other"))
	}
	if err := table.Apply(t.Context(), "acme#temps!head#b#", head); err != nil {
		t.Fatal(err)
	}
	f, err := forecast.New(t.Context(), store, forecast.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `Forecast of table tidemark at 2026-06-01T12:00:00Z
Read: 59 rows, 3.68 KB, in 2 requests: 1 of 1 parts of the table, 1 of them to the end
All rows were counted: what is stored is exact.

CLASS  POLICY       HOLDS    EXPIRED  A DAY  WEEK 1   WEEK 4   WEEK 12  STEADY
_mark  -            92 B     0 B      0 B    92 B     92 B     92 B     92 B
d30    maxage=30d   2.42 KB  1.05 KB  45 B   1.38 KB  1.38 KB  1.38 KB  1.38 KB
d7     maxage=7d    618 B    251 B    45 B   365 B    365 B    365 B    365 B
y2     maxage=730d  550 B    0 B      70 B   1.04 KB  2.5 KB   6.39 KB  50.8 KB
all                 3.68 KB  1.3 KB   159 B  2.87 KB  4.33 KB  8.22 KB  52.6 KB

TENANT  DATASET  ROWS OF          CLASS  HOLDS   CELLS  EXPIRED  A DAY
-       -        another program  d30    85 B    3      85 B     0 B
acme    temps    points           d30    1.8 KB  40     450 B    45 B
acme    temps    points           d7     450 B   10     135 B    45 B
acme    temps    head             d30    538 B   40     511 B    0 B
acme    temps    head             d7     168 B   12     116 B    0 B
acme    temps    mark.daily       _mark  92 B    2      0 B      0 B
acme    temps    rollup.daily     y2     550 B   50     0 B      70 B

How long tenants' points and rollups are kept:
  temps, class d7: points maxage=7d, rollup daily maxage=730d
`
	if got := f.String(); got != want {
		t.Errorf("figures:\n%s", got)
	}
	drop, err := f.Drops("d30", gc.MaxAge(20*aDay))
	if err != nil || drop.Cells != 10 || len(drop.From) != 1 {
		t.Errorf("drop %v, error %v", drop, err)
	}
	const wantDrop = "Class d30 with maxage=20d would drop 450 B, 10 cells:\n  acme  temps  points  450 B  10 cells\n"
	if drop.String() != wantDrop {
		t.Errorf("drop:\n%s", drop)
	}
	if drop, err = f.Drops("d30", gc.MaxAge(31*aDay)); err != nil || drop.Cells != 0 {
		t.Errorf("drop of a longer age: %v, %v", drop, err)
	}
	if drop, err = f.Drops("y2", gc.MaxAge(5*aDay)); err != nil || len(drop.From) != 1 || drop.From[0].Kind != "rollup.daily" {
		t.Errorf("drop of rollups: %v, %v", drop, err)
	}
	if _, err = f.Drops("d3", gc.MaxAge(5*aDay)); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("drop of an unknown class: %v, want ErrInvalid", err)
	}
	if _, err = f.Drops("d30", gc.MaxVersions(1)); !errors.Is(err, invalid.ErrVersions) {
		t.Errorf("drop of a policy of versions: %v", err)
	}
	if _, err = f.Drops("d30", gc.MaxAge(-1)); !errors.Is(err, invalid.ErrPolicy) {
		t.Errorf("drop without a policy: %v", err)
	}
}

// TestForecastOfWhatLiesInTheFuture: for predictions that are written a week ahead, the rate comes from those whose
// time has passed.
func TestForecastOfWhatLiesInTheFuture(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 4, uniform(3700, -7*aDay, 30*aDay))
	f := w.forecast(t, forecast.Options{})
	within(t, "what a day adds", f.Whole.DayCells, 100, 0.2)
	if f.Basis != forecast.Counted || f.Whole.DayCells < 95 || f.Whole.DayCells > 105 {
		t.Errorf("%v: a day adds %v, want 100", f.Basis, f.Whole.DayCells)
	}
}
