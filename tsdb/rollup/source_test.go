package rollup_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestSourceOfWindows checks which buckets windows are read from. A number above the Max of the rollups is only in the
// points, so the sum shows what was read.
func TestSourceOfWindows(t *testing.T) {
	temp := func(r reading) (float64, bool) { return r.TempC, true }
	whole := func(r reading) (int64, bool) { return int64(r.TempC), true }
	kept := []rollup.Measure[reading]{
		{Name: "temp", Of: temp, Max: 50},
		{Name: "mode", Kind: window.State, Int: whole, Max: 50},
		{Name: "late", Of: temp, Max: 50, Added: true},
	}
	hour := rollup.MustDefine("hour", window.Every(time.Hour), kept, rollup.Options{})
	day := rollup.MustDefine("day", window.Days(1), kept, rollup.Options{From: "hour"})
	events := rollup.MustDefine("events", window.Days(2), []rollup.Measure[reading]{
		{Name: "temp", Of: temp, Max: 50}, {Name: "other", Of: temp, Max: 50},
	}, rollup.Options{Mode: rollup.Once})
	schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day, events}})
	midnight := window.Days(2).Start(start)
	clock := testkit.NewClock(midnight.AddDate(0, 0, 3))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, schema)
	repo := schema.For(store, acme)
	for i, x := range []float64{1, 2, 100} {
		if err := repo.Put(t.Context(), roof, midnight.Add(time.Duration(i)*time.Minute), reading{TempC: x}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(hours int) time.Time { return midnight.Add(time.Duration(hours) * time.Hour) }
	all := tsdb.Between(at(0), at(48))
	gauge := window.Measure[reading]{Name: "temp", Of: temp, Aggregates: window.Basic}
	code := window.Measure[reading]{Name: "mode", Kind: window.State, Int: whole}
	text := window.Measure[reading]{Name: "mode", Kind: window.State, Aggregates: window.Count | window.Ends, Text: func(r reading) (string, bool) {
		return strconv.FormatFloat(r.TempC, 'f', -1, 64), true
	}}
	value := window.Measure[reading]{Name: "mode", Kind: window.State, Aggregates: window.Count | window.Ends, Value: func(r reading) codec.Value {
		return codec.Float(r.TempC)
	}}
	named := func(name string) window.Measure[reading] {
		return window.Measure[reading]{Name: name, Of: temp, Aggregates: window.Basic}
	}
	days := window.Days(2)
	for _, tt := range []struct {
		name string
		m    window.Measure[reading]
		grid window.Grid
		opts window.Options
		in   tsdb.Interval
		want string
	}{
		{"the widest buckets that fit", gauge, days, window.Options{}, all, "day"},
		{"hours", gauge, window.Every(time.Hour), window.Options{}, all, "hour"},
		{"an interval of hours", gauge, days, window.Options{}, tsdb.Between(at(0), at(5)), "hour"},
		{"half an hour", gauge, days, window.Options{}, tsdb.Between(at(0), at(5).Add(30*time.Minute)), ""},
		{"minutes", gauge, window.Every(time.Minute), window.Options{}, all, ""},
		{"an open interval", gauge, days, window.Options{}, tsdb.Since(at(0)), ""},
		{"from points", gauge, days, window.Options{FromPoints: true}, all, ""},
		{"a state that is a number", code, days, window.Options{}, all, "day"},
		{"a state that is a text", text, days, window.Options{}, all, ""},
		{"a state that is a value", value, days, window.Options{}, all, ""},
		{"a measure that was added later", named("late"), days, window.Options{}, all, ""},
		{"a measure of events", named("other"), days, window.Options{}, all, ""},
		{"an unknown measure", named("none"), days, window.Options{}, all, ""},
	} {
		by, err := window.New(tt.grid, []window.Measure[reading]{tt.m}, tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		if from, err := by.Source(t.Context(), repo, tt.in); from != tt.want || err != nil {
			t.Errorf("%s: from %q, %v; want %q", tt.name, from, err, tt.want)
		}
		count, want := int64(0), int64(3)
		if tt.want != "" {
			want = 2
		}
		for b, err := range by.Read(t.Context(), repo, roof, tt.in) {
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			count += b.Values[0].Count
		}
		if count != want {
			t.Errorf("%s: %d numbers, want %d", tt.name, count, want)
		}
		if _, hasEnd := tt.in.End(); !hasEnd {
			continue
		}
		for b, err := range by.ReadGroup(t.Context(), repo, []tsdb.Entity{roof}, tsdb.Between(at(0), at(1))) {
			if err != nil || tt.grid == days && b.Values[0].Count != 3 {
				t.Errorf("%s: a group has %d numbers, %v; want all 3 of the points", tt.name, b.Values[0].Count, err)
			}
		}
	}
}

// TestSourceByTheTenantsClass: windows of a time for which the tenant's class no longer keeps buckets are read from the
// points, also if a tenant in another class still has the buckets.
func TestSourceByTheTenantsClass(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := newAged(t)
		midnight := a.fill(t, 3)
		by, err := window.New(window.Days(1), []window.Measure[reading]{
			{Name: "temp", Of: func(r reading) (float64, bool) { return r.TempC, true }, Aggregates: window.Basic},
		}, window.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a.Set(midnight.Add(60 * oneDay))
		for step, want := range []string{"day", ""} {
			for id, want := range map[string]string{"acme": want, "acme2": "day"} {
				repo := a.schema.For(a.store, tenant.MustParse(id))
				if from, err := by.Source(t.Context(), repo, tsdb.Between(midnight, midnight.Add(2*oneDay))); from != want || err != nil {
					t.Errorf("step %d: windows of %s come from %q, %v; want %q", step, id, from, err, want)
				}
			}
			a.Add(time.Millisecond)
		}
	})
}

// TestWindowsAreOpenAsLongAsTheirBuckets: a window that is read from a rollup is open until the rollup's Lateness has
// passed after its end.
func TestWindowsAreOpenAsLongAsTheirBuckets(t *testing.T) {
	temp := func(r reading) (float64, bool) { return r.TempC, true }
	kept := []rollup.Measure[reading]{{Name: "temp", Of: temp, Max: 50}}
	hour := rollup.MustDefine("hour", window.Every(time.Hour), kept, rollup.Options{Lateness: 30 * time.Minute})
	schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	from := window.Every(2 * time.Hour).Start(start)
	end := from.Add(2 * time.Hour)
	clock := testkit.NewClock(from.Add(time.Hour))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, schema)
	repo := schema.For(store, acme)
	if err := repo.Put(t.Context(), roof, from, reading{TempC: 1}); err != nil {
		t.Fatal(err)
	}
	by, err := window.New(window.Every(2*time.Hour), []window.Measure[reading]{{Name: "temp", Of: temp, Aggregates: window.Basic}}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := tsdb.Between(from, end)
	if source, err := by.Source(t.Context(), repo, in); source != "hour" || err != nil {
		t.Fatalf("windows are read from %q, %v", source, err)
	}
	for _, tt := range []struct {
		at   time.Time
		open bool
	}{{from.Add(time.Hour), true}, {end.Add(29 * time.Minute), true}, {end.Add(31 * time.Minute), false}} {
		clock.Set(tt.at)
		n := 0
		for b, err := range by.Read(t.Context(), repo, roof, in) {
			if n++; err != nil || b.Open != tt.open {
				t.Errorf("at %v: open %v, %v; want %v", tt.at, b.Open, err, tt.open)
			}
		}
		if n != 1 {
			t.Errorf("%d windows", n)
		}
	}
}
