package rollup_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// life is a store with one entity, whose clock the test moves.
type life struct {
	*testkit.Clock
	store *tsdb.Store
	conn  *tsdbtest.Conn
	meter tsdb.Entity
}

func newLife(t *testing.T, schema tsdb.Dataset) *life {
	t.Helper()
	c := testkit.NewClock(start.Add(5 * time.Hour))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
	return &life{Clock: c, store: store, conn: conn, meter: tsdb.NewEntity("m-17")}
}

// put stores loads, a minute apart.
func (l *life) put(t *testing.T, schema *tsdb.Schema[metered], from time.Time, loads ...int64) {
	t.Helper()
	for i, n := range loads {
		if err := schema.For(l.store, acme).Put(t.Context(), l.meter, from.Add(time.Duration(i)*time.Minute), metered{Load: &n}); err != nil {
			t.Fatal(err)
		}
	}
}

// worker returns the worker of a program that declares a schema.
func (l *life) worker(t *testing.T, schema *tsdb.Schema[metered]) *rollup.Worker {
	t.Helper()
	w, err := rollup.NewWorker(l.store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// work moves the clock past all buckets and lets a worker store them.
func (l *life) work(t *testing.T, schema *tsdb.Schema[metered]) {
	t.Helper()
	for range 2 { // the second pass stores the coarser rollups
		l.Add(48 * time.Hour)
		if _, err := l.worker(t, schema).Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// cells returns the cells of the rollups' rows with a family's columns.
func (l *life) cells(t *testing.T, columns string) (out []string) {
	t.Helper()
	client, _ := tsdbtest.Clients(t, l.conn)
	err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup."), func(r bigtable.Row) bool {
		for _, items := range r {
			for _, item := range items {
				if strings.HasPrefix(item.Column, columns) {
					out = append(out, fmt.Sprintf("%s@%d %x", item.Column, int64(item.Timestamp)/1000, item.Value))
				}
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func sketched(added bool) (*rollup.Rollup[metered], *tsdb.Schema[metered]) {
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{
		{Name: "load", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Quantiles, Added: added},
	}, rollup.Options{})
	return hour, tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
}

// Other programs and later versions read these bytes. A changed sketch is replaced, and that of an empty bucket
// removed.
func TestCellsOfSketchesAreTheDocumentedOnes(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, schema := sketched(false)
		l := newLife(t, schema)
		l.put(t, schema, start, 100, -100, 100)
		l.put(t, schema, start.Add(time.Hour), 0)
		l.work(t, schema)
		first, second := start.UnixMilli(), start.Add(time.Hour).UnixMilli()
		want := []string{
			fmt.Sprintf("keep.c:q:load:%d@%d 01fffe0700fffe0701", first, first), // -1 once; 130,943 keys in between; 1 twice
			fmt.Sprintf("keep.c:q:load:%d@%d 010000", second, second),
		}
		if got := l.cells(t, "keep.c:q"); !slices.Equal(got, want) {
			t.Errorf("the sketches are\n%q, want\n%q", got, want)
		}
		if _, err := schema.For(l.store, acme).DeleteRange(t.Context(), l.meter, tsdb.Since(start.Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		l.work(t, schema)
		want = []string{fmt.Sprintf("keep.c:q:load:%d@%d 0180ff0700", first, first)}
		if got := l.cells(t, "keep.c:q"); !slices.Equal(got, want) {
			t.Errorf("after a deletion the sketches are\n%q, want\n%q", got, want)
		}
	})
}

// A damaged sketch is an error that names the row and the column; Rebuild replaces it. A bucket without a sketch says
// that it has none.
func TestDamagedAndMissingSketches(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour, schema := sketched(false)
		l := newLife(t, schema)
		l.put(t, schema, start, 100, 200, 300)
		l.work(t, schema)
		client, _ := tsdbtest.Clients(t, l.conn)
		var key string
		err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup."), func(r bigtable.Row) bool {
			key = r.Key()
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		reader := rollup.For(hour, schema.For(l.store, acme))
		column, at := fmt.Sprintf("q:load:%d", start.UnixMilli()), bigtable.Time(start)
		good := l.cells(t, "keep.c:q")
		for name, data := range map[string]string{
			"nothing":              "",
			"another format":       "DDSketch",
			"cut off":              "\x01\x00",
			"fewer than the count": "\x01\x00\x00",
			"more than the count":  "\x01\x00\x7f",
			"many":                 "\x01" + strings.Repeat("\x00", 5<<20),
		} {
			m := bigtable.NewMutation()
			m.Set("keep.c", column, at, []byte(data))
			if err := client.Open(tsdbtest.Table).Apply(t.Context(), key, m); err != nil {
				t.Fatal(err)
			}
			for _, err := range reader.Buckets(t.Context(), l.meter, tsdb.AllTime()) {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("row %q", key)) || !strings.Contains(err.Error(), "keep.c:"+column) {
					t.Errorf("%s: %v, want an error that names the row and the column", name, err)
				}
			}
			if _, err := reader.Total(t.Context(), l.meter, tsdb.AllTime()); err == nil {
				t.Errorf("%s: Total has no error", name)
			}
			if n, err := reader.Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); n != 1 || err != nil {
				t.Fatalf("%s: Rebuild replaced %d buckets, %v; want 1", name, n, err)
			}
			if got := l.cells(t, "keep.c:q"); !slices.Equal(got, good) {
				t.Fatalf("%s: rebuilt as %q, want %q", name, got, good)
			}
		}
		m := bigtable.NewMutation()
		m.DeleteCellsInColumn("keep.c", column)
		m.Set("keep.c", "q:load:7", at, []byte("\x01\x00\x02")) // of another bucket
		m.Set("keep.c", "q:other:7", at, []byte("foreign"))
		if err := client.Open(tsdbtest.Table).Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
		total, err := reader.Total(t.Context(), l.meter, tsdb.AllTime())
		if s := total.Values[0]; err != nil || s.Missing != window.Quantiles || !math.IsNaN(s.Quantile(0.5)) || s.Count != 3 || s.Max != 3 || s.Aggregates&window.Quantiles != 0 {
			t.Errorf("without its sketch the bucket is %+v, %v; want the other aggregates, and Quantiles as missing", s, err)
		}
	})
}

// Quantiles of a month by days, from hours, are within the error of those of its numbers.
func TestMonthOfQuantiles(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		measures := []rollup.Measure[metered]{{Name: "load", Int: metered.load, Decimals: 2, Max: 1e9, Aggregates: window.Quantiles}}
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{})
		day := rollup.MustDefine("day", window.Days(1), measures, rollup.Options{From: "hour"})
		schema := tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day}})
		l := newLife(t, schema)
		var points []tsdb.Point[metered]
		var numbers []int64
		for i := range 30 * 24 * 6 {
			n := int64(i*i%100_003 - 20_000)
			numbers = append(numbers, n)
			points = append(points, tsdb.Point[metered]{Entity: l.meter, Time: start.Add(time.Duration(i) * 10 * time.Minute), Value: metered{Load: &n}})
		}
		l.Add(31 * 24 * time.Hour)
		if _, err := schema.For(l.store, acme).PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		l.work(t, schema)
		slices.Sort(numbers)
		for _, r := range []*rollup.Rollup[metered]{hour, day} {
			total, err := rollup.For(r, schema.For(l.store, acme)).Total(t.Context(), l.meter, tsdb.AllTime())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []float64{0, 0.01, 0.25, 0.5, 0.9, 0.99, 1} {
				rank := max(1, (int(math.Round(q*100))*len(numbers)+99)/100)
				want := float64(numbers[rank-1]) / 100
				if got := total.Values[0].Quantile(q); got < want-math.Abs(want)*sketch.Error-1e-9 || got > want+math.Abs(want)*sketch.Error+1e-9 {
					t.Errorf("quantile %v of the month by %s is %v, want %v", q, r.Name(), got, want)
				}
			}
		}
	})
}

// Sketches cannot make a row larger than Bigtable reads: the most that they can take is known from Max and Decimals,
// and a rollup whose rows could be too large is refused, with what would do.
func TestSketchesOfARowAreBounded(t *testing.T) {
	define := func(n int, limit float64, span time.Duration) error {
		var measures []rollup.Measure[metered]
		for i := range n {
			measures = append(measures, rollup.Measure[metered]{Name: fmt.Sprint("m", i), Int: metered.load, Max: limit, Aggregates: window.Quantiles})
		}
		_, err := rollup.Define("fine", window.Every(2*time.Second), measures, rollup.Options{Span: span})
		return err
	}
	for _, tt := range []struct {
		measures int
		limit    float64
		span     time.Duration
		refused  bool
	}{{1, 1e9, 0, false}, {2, 1e12, 0, false}, {16, 1e15, 0, true}, {16, 1e15, 4 * time.Minute, false}, {16, 1000, 0, false}} {
		err := define(tt.measures, tt.limit, tt.span)
		if bad, ok := errors.AsType[*tsdb.InvalidError](err); ok != tt.refused || ok && (bad.Field != "Span" || !strings.Contains(bad.Limit, "smaller Max")) {
			t.Errorf("%d measures up to %v: %v, refused %v", tt.measures, tt.limit, err, tt.refused)
		}
	}
	// The documentation's example: all multiples of 0.1 from -1000 to 1000.
	var s sketch.Sketch
	for n := -10_000; n <= 10_000; n++ {
		s.Add(float64(n) / 10)
	}
	if data, _ := s.AppendBinary(nil); len(data) > 5<<10 {
		t.Errorf("a sketch of all numbers up to 1000 takes %d bytes, want at most 5 KiB", len(data))
	}
	// The span that the error names is accepted.
	bad, _ := errors.AsType[*tsdb.InvalidError](define(16, 1e15, 0))
	text, _, _ := strings.Cut(strings.TrimPrefix(bad.Limit, "at most "), ":")
	if span, err := time.ParseDuration(text); err != nil || define(16, 1e15, span) != nil || define(16, 1e15, span+2*time.Second) == nil {
		t.Errorf("the error says %q, %v: want the largest span that is accepted", bad.Limit, err)
	}
}
