package dynamic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// metered is a dataset with hours of a gauge and a counter, days that are computed from them, and hours that only
// count.
type metered struct {
	schema *tsdb.Schema[float64]
	byName map[string]*rollup.Rollup[float64]
}

func newMetered(t *testing.T) (m metered) {
	t.Helper()
	number := func(v float64) (float64, bool) { return v, true }
	measures := []rollup.Measure[float64]{
		{Name: "level", Of: number, Decimals: 1, Max: 1e6}, {Name: "kwh", Of: number, Kind: window.Counter, Decimals: 1, Max: 1e6},
	}
	m.byName = map[string]*rollup.Rollup[float64]{
		"hours":  rollup.MustDefine("hours", window.Every(time.Hour), measures, rollup.Options{}),
		"days":   rollup.MustDefine("days", window.Days(1), measures, rollup.Options{From: "hours"}),
		"counts": rollup.MustDefine("counts", window.Every(time.Hour), []rollup.Measure[float64](nil), rollup.Options{}),
	}
	m.schema = tsdb.MustDefine("meters", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Rollups: []tsdb.Rollup{m.byName["hours"], m.byName["days"], m.byName["counts"]},
	})
	return m
}

// TestRollupsAreReadAsStored: stored buckets are those that the program with the functions reads. A bucket that changed
// since is unknown, and so is the step into the next one, until a worker has stored it again.
func TestRollupsAreReadAsStored(t *testing.T) {
	m := newMetered(t)
	now := start.Add(time.Hour)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, m.schema)
	repo := m.schema.For(store, acme)
	put := func(at time.Duration, v float64) {
		t.Helper()
		if err := repo.Put(t.Context(), roof, start.Add(at), v); err != nil {
			t.Fatal(err)
		}
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, m.schema)
	if err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		for range 2 { // the second one computes the days
			now = now.Add(time.Hour)
			if _, err := worker.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	rollups, schema, err := dynamic.Rollups(reading(t, store), dynamic.Options{})
	if err != nil || len(rollups) != 3 {
		t.Fatal(rollups, err)
	}
	read := func(name string) (stored, whole []window.Bucket) {
		t.Helper()
		for b, err := range rollup.For(rollups[name], schema.For(store, acme)).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, b)
		}
		for b, err := range rollup.For(m.byName[name], repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			whole = append(whole, b)
		}
		return stored, whole
	}
	same := func(when, name string) {
		t.Helper()
		if stored, whole := read(name); len(whole) == 0 || shown(stored) != shown(whole) {
			t.Errorf("%s, %s:\n got %+v\nwant %+v", when, name, shown(stored), shown(whole))
		}
	}
	unknown := func(when, name string, n int, want ...int) {
		t.Helper()
		stored, _ := read(name)
		var got []int
		for i, b := range stored {
			if v := b.Values[0]; v.Missing == v.Aggregates|v.Missing && v.Missing != 0 {
				got = append(got, i)
				if b.Points != 0 || v.Count != 0 || !math.IsNaN(v.Mean) || b.Values[1].Missing&window.Increase == 0 {
					t.Errorf("%s: an unknown bucket is %+v", when, b)
				}
			}
		}
		if len(stored) != n || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %s: %d buckets, unknown are %v; want %d, %v", when, name, len(stored), got, n, want)
		}
	}

	for i := range 4 * 6 { // four hours, until 16:00
		put(time.Duration(i)*10*time.Minute, float64(10*i))
	}
	unknown("before a worker", "hours", 4, 0, 1, 2, 3)
	if stored, _ := read("counts"); len(stored) != 4 || stored[0].Points != 0 || stored[0].Incomplete == nil || stored[0].Incomplete.Points != 0 {
		t.Errorf("before a worker: counts %+v, want four that are incomplete, without points", stored)
	}
	now = start.Add(40 * time.Hour)
	pass()
	for _, name := range []string{"hours", "days", "counts"} {
		same("stored", name)
	}

	put(65*time.Minute, 65) // a late point, in the second hour
	unknown("after a late point", "hours", 4, 1)
	unknown("after a late point", "days", 1, 0)
	counts, _ := read("counts")
	if late := counts[1]; len(counts) != 4 || late.Points != 0 || late.Incomplete == nil || late.Incomplete.Points != 6 || counts[2].Incomplete != nil {
		t.Errorf("after a late point: counts %+v, want one that is incomplete, with 6 stored points", counts)
	}
	stored, whole := read("hours")
	late := stored[1].Incomplete
	if late == nil || late.Points != 6 || late.Values[0].Max != 110 || late.Values[1].Increase != 50 || late.Changed.Before(now) || late.Changed.After(now.Add(time.Minute)) {
		t.Errorf("the hour of the late point has %+v; want what is stored, and when it changed, %v", late, now)
	}
	if after := stored[2]; after.Values[1].Missing != window.Increase || !math.IsNaN(after.Values[1].Increase) || after.Values[0].Missing != 0 ||
		after.Incomplete == nil || after.Incomplete.Values[1].Increase != 50 || after.Points != whole[2].Points || stored[0].Incomplete != nil || stored[3].Incomplete != nil {
		t.Errorf("the hour after it is %+v; want an unknown increase, since the number before it is not known", after)
	}
	total, err := rollup.For(rollups["hours"], schema.For(store, acme)).Total(t.Context(), roof, tsdb.AllTime())
	if err != nil || total.Values[0].Missing == 0 || total.Incomplete == nil || total.Incomplete.Points != 24 {
		t.Errorf("the total is %+v, %v; want it unknown", total, err)
	}
	pass()
	for _, name := range []string{"hours", "days", "counts"} {
		same("stored again", name)
	}
}

// TestUnknownBucketsAreNoGaps: a bucket that changed has no known count, also of a measure and in windows without
// Count, so nothing fills it.
func TestUnknownBucketsAreNoGaps(t *testing.T) {
	hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "most", Of: func(v float64) (float64, bool) { return v, true }, Max: 1e6, Aggregates: window.Max | window.Ends},
	}, rollup.Options{})
	schema := tsdb.MustDefine("meters", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})
	now := start.Add(40 * time.Hour)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, schema)
	put := func(hour int, v float64) {
		if err := schema.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(hour)*time.Hour), v); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 1)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := worker.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(1, 2)
	rollups, of, err := dynamic.Rollups(reading(t, store), dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := window.Options{Gaps: window.Previous}
	by, err := window.New(window.Every(time.Hour), []window.Measure[struct{}]{
		{Name: "most", Aggregates: window.Max, Of: func(struct{}) (float64, bool) { return 1, true }},
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	repo := of.For(store, acme)
	for from := range 3 {
		in := tsdb.Between(start.Add(time.Duration(from)*time.Hour), start.Add(3*time.Hour))
		for name, seq := range map[string]iter.Seq2[window.Bucket, error]{
			"windows": by.Read(t.Context(), repo, roof, in),
			"buckets": rollup.For(rollups["hours"], repo).WithGaps(opts).Buckets(t.Context(), roof, in),
		} {
			for b, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				unknown := b.Start.Equal(start.Add(time.Hour))
				if s := b.Values[0]; s.Filled || (s.Missing&window.Count != 0) != unknown {
					t.Errorf("%s from hour %d: the one at %v has a maximum of %v, filled %v, missing %v", name, from, b.Start, s.Max, s.Filled, s.Missing)
				}
			}
		}
	}
}

// shown returns all that buckets have as text.
func shown(buckets []window.Bucket) string {
	text, err := json.Marshal(buckets)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestRollupsOnlyRead: without the functions of the measures, nothing may be computed or written.
func TestRollupsOnlyRead(t *testing.T) {
	m := newMetered(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(100 * time.Hour) }}}, m.schema)
	if err := m.schema.For(store, acme).Put(t.Context(), roof, start, 1); err != nil {
		t.Fatal(err)
	}
	rollups, schema, err := dynamic.Rollups(reading(t, store), dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hours := rollup.For(rollups["hours"], schema.For(store, acme))
	if _, err := hours.Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a rebuild: %v, want ErrInvalid", err)
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Pass(t.Context()); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a worker: %v, want ErrInvalid", err)
	}
	adder := rollup.NewAdder(rollups["hours"], schema.For(store, acme), nil)
	if err := adder.Add(t.Context(), roof, start, struct{}{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("an adder: %v, want ErrInvalid", err)
	}
	windows, err := window.New(window.Every(time.Hour), []window.Measure[struct{}]{
		{Name: "level", Aggregates: window.Basic, Of: func(struct{}) (float64, bool) { return 1, true }},
	}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if from, err := windows.Source(t.Context(), schema.For(store, acme), tsdb.Between(start, start.Add(time.Hour))); err != nil || from != "hours" {
		t.Errorf("windows are read from the rollup %q (%v), want hours", from, err)
	}
	for _, d := range []tsdb.Dataset{nil, &tsdb.Schema[int]{}} {
		if _, _, err := dynamic.Rollups(d, dynamic.Options{}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", d, err)
		}
	}
}

// A gateway shows the stored aggregates of other programs.
func ExampleRollups() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	storedViews(ctx, store) // another program counts views

	for d := range store.Datasets(ctx) {
		rollups, schema, err := dynamic.Rollups(d, dynamic.Options{})
		if err != nil {
			log.Fatal(err)
		}
		for name, r := range rollups {
			total, err := rollup.For(r, schema.For(store, acme)).Total(ctx, tsdb.NewEntity("news", "a1"), tsdb.AllTime())
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(name, total.Start.Format("15:04"), total.Points, total.Values[0].Max)
		}
	}
	// Output:
	// minutes 12:00 2 7
}

// storedViews is what another program has done.
func storedViews(ctx context.Context, store *tsdb.Store) {
	minutes := rollup.MustDefine("minutes", window.Every(time.Minute), []rollup.Measure[float64]{
		{Name: "seconds", Of: func(v float64) (float64, bool) { return v, true }, Max: 1000},
	}, rollup.Options{Mode: rollup.Once})
	views := tsdb.MustDefine("views", tsdb.Key("section", "article"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{minutes}})
	if err := store.Ensure(ctx, views); err != nil {
		log.Fatal(err)
	}
	adder := rollup.NewAdder(minutes, views.For(store, acme), nil)
	for _, seconds := range []float64{3, 7} {
		if err := adder.Add(ctx, tsdb.NewEntity("news", "a1"), start, seconds); err != nil {
			log.Fatal(err)
		}
	}
}
