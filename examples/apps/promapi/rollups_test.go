package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestRollups: each rollup of the catalogue is a metric. Its buckets are at the time of their end, and equal what the
// program that defines it reads, whether they are stored, not stored yet, or changed since. A bucket that is open is
// not shown.
func TestRollups(t *testing.T) {
	now := time.UnixMilli(start0).Add(90 * time.Minute)
	prom, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, prom)
	if _, err := fill(t.Context(), store, now); err != nil { // from half past the hour before
		t.Fatal(err)
	}
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) { yield(tenant.MustParse(demoTenant), nil) }
	}}, demoTrucks)
	if err != nil {
		t.Fatal(err)
	}
	s := over(t, store, prom, tsdb.WriterOptions{}, someLimits, shown(t, store, nil))
	const truck = `{fleet="West",truck="truck_03"}`
	ended := time.UnixMilli(start0).Add(time.Hour) // of the newest whole bucket
	ask := func(query string, at time.Time) string {
		_, text := s.asDemo(http.MethodGet, "query", "query", query, "time", fmt.Sprint(at.Unix()))
		return text
	}
	if text := ask("trucks:speed_kmh:count_1h"+truck, ended); !strings.Contains(text, `"360"`) {
		t.Errorf("before a worker has stored it, a bucket is %s; want it computed from its field", text)
	}
	now = now.Add(5 * time.Minute)
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, names := s.asDemo(http.MethodGet, "label/__name__/values")
	for _, name := range []string{"trucks:speed_kmh:avg_1h", "trucks:speed_kmh:count_1h", "trucks:fuel_l:max_1h"} {
		if !strings.Contains(names, `"`+name+`"`) {
			t.Errorf("the names %s lack %s", names, name)
		}
	}
	ctx := tenant.NewContext(t.Context(), tenant.MustParse(demoTenant))
	want, err := rollup.For(demoHours, demoTrucks.For(store, tenant.MustParse(demoTenant))).Total(ctx, tsdb.NewEntity("West", "truck_03"), tsdb.Between(ended.Add(-time.Hour), ended))
	if err != nil || want.Points == 0 {
		t.Fatal(want, err)
	}
	for query, want := range map[string]float64{
		"trucks:speed_kmh:count_1h": float64(want.Values[0].Count), "trucks:speed_kmh:avg_1h": want.Values[0].Mean, "trucks:fuel_l:max_1h": want.Values[1].Max,
	} {
		var got float64
		text := ask(query+truck, ended)
		if _, number, ok := strings.Cut(text, `"value":[`+fmt.Sprint(ended.Unix())+`,"`); ok {
			_, _ = fmt.Sscanf(number, `%g"`, &got)
		}
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s is %v in %s, want %v", query, got, text, want)
		}
	}
	if text := ask("count_over_time(trucks:speed_kmh:avg_1h"+truck+"[3h])", now); !strings.Contains(text, `"2"`) {
		t.Errorf("the ended buckets are %s, want two", text)
	}
	if text := ask("trucks:speed_kmh:avg_1h"+truck, ended.Add(-time.Second)); strings.Contains(text, fmt.Sprint(want.Values[0].Mean)) {
		t.Errorf("before its end a bucket is shown: %s", text)
	}

	late := tsdb.Point[truckState]{Entity: tsdb.NewEntity("West", "truck_03"), Time: ended.Add(-30*time.Minute + time.Second), Value: truckState{SpeedKmh: 900}}
	if _, err := demoTrucks.For(store, tenant.MustParse(demoTenant)).PutMany(ctx, []tsdb.Point[truckState]{late}); err != nil {
		t.Fatal(err)
	}
	if text := ask("trucks:speed_kmh:max_1h"+truck, ended); !strings.Contains(text, `"900"`) {
		t.Errorf("a bucket that has changed is %s; want the late point in it", text)
	}
	now = now.Add(5 * time.Minute)
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := ask("trucks:speed_kmh:max_1h"+truck, ended); !strings.Contains(text, `"900"`) {
		t.Errorf("stored again, the bucket is %s; want the late point in it", text)
	}
}

// TestRollupsOfFunctions: a bucket of a measure that is a function is not shown until the program with the function has
// stored it, nor once it has changed since.
func TestRollupsOfFunctions(t *testing.T) {
	kelvin := func(c float64) (float64, bool) { return c + 273, true }
	hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "k", Of: kelvin, Max: 1000}}, rollup.Options{})
	counts := rollup.MustDefine("counts", window.Every(time.Hour), []rollup.Measure[float64](nil), rollup.Options{})
	temps := tsdb.MustDefine("temps", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours, counts}})
	now := time.UnixMilli(start0)
	prom, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, prom, temps)
	put := func(v float64) {
		t.Helper()
		if err := temps.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), time.UnixMilli(start0).Add(time.Duration(v)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	put(20)
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, temps)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	s := over(t, store, prom, tsdb.WriterOptions{}, someLimits, shown(t, store, nil))
	want := func(when, most, count string) {
		t.Helper()
		for query, value := range map[string]string{"temps:k:max_1h": most, "temps:count_1h": count} {
			if _, text := s.get("query", "query", query, "time", fmt.Sprint(start0/1000+3600)); !strings.Contains(text, value) {
				t.Errorf("%s, %s is %s; want %s", when, query, text, value)
			}
		}
	}
	pass := func() {
		t.Helper()
		now = now.Add(5 * time.Minute)
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const none = `"result":[]`
	want("not stored", none, none)
	pass()
	want("stored", `"293"`, `"1"`)
	put(30)
	want("changed", none, none)
	pass()
	want("stored again", `"303"`, `"2"`)
}

// TestEventsWithoutPoints: the series of a rollup of events are those of entities that have events, also where nothing
// is stored as a point.
func TestEventsWithoutPoints(t *testing.T) {
	number := func(v float64) (float64, bool) { return v, true }
	views := rollup.MustDefine("views", window.Every(30*time.Minute), []rollup.Measure[float64]{{Name: "s", Of: number, Max: 1e6}}, rollup.Options{Mode: rollup.Once})
	counts := rollup.MustDefine("counts", window.Every(time.Hour), []rollup.Measure[float64](nil), rollup.Options{})
	pages := tsdb.MustDefine("pages", tsdb.Key("app", "page"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counts, views}})
	now := time.UnixMilli(start0)
	prom, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, prom, pages)
	add := func(id tenant.ID, e tsdb.Entity) {
		t.Helper()
		if err := rollup.NewAdder(views, pages.For(store, id), nil).Add(t.Context(), e, now, 7); err != nil {
			t.Fatal(err)
		}
	}
	add(acme, tsdb.NewEntity("shop", "start"))
	add(acme, tsdb.NewEntity("blog", "news"))
	add(tenant.MustParse("globex"), tsdb.NewEntity("shop", "secret"))
	now = now.Add(time.Hour)
	s := over(t, store, prom, tsdb.WriterOptions{}, someLimits, shown(t, store, nil))
	at := fmt.Sprint(start0/1000 + 1800)
	for _, c := range []struct {
		path, want string
		pairs      []string
	}{
		{"series", `[{"__name__":"pages:s:max_30m","app":"blog","page":"news"},{"__name__":"pages:s:max_30m","app":"shop","page":"start"}]`, []string{"match[]", "pages:s:max_30m"}},
		{"series", `[{"__name__":"pages:s:max_30m","app":"shop","page":"start"}]`, []string{"match[]", `pages:s:max_30m{app="shop"}`}},
		{"label/page/values", `["news","start"]`, nil},
		{"query", `"value":[` + at + `,"7"]`, []string{"query", `pages:s:max_30m{page="news"}`, "time", at}},
		{"query", `"value":[` + at + `,"2"]`, []string{"query", `count(pages:s:max_30m)`, "time", at}},
	} {
		if status, got := s.get(c.path, c.pairs...); status != http.StatusOK || !strings.Contains(got, c.want) {
			t.Errorf("%s %q: %d %s, want %s", c.path, c.pairs, status, got, c.want)
		}
	}
	if _, names := s.get("label/__name__/values"); !strings.Contains(names, `"pages:s:max_30m"`) || strings.Contains(names, "pages:count_1h") {
		t.Errorf("the names are %s; want those of the events, and not those of the points, of which there are none", names)
	}
}

// TestKindsOfRollups: changes are shown only if the number before the bucket is known; rollups of events and those that
// only count, too.
func TestKindsOfRollups(t *testing.T) {
	number := func(v float64) (float64, bool) { return v, true }
	hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "kwh", Of: number, Kind: window.Counter, Max: 1e6},
		{Name: "level", Of: number, Max: 1e6, Aggregates: window.Basic | window.Quantiles | window.Delta | window.StdDev},
	}, rollup.Options{})
	counts := rollup.MustDefine("counts", window.Every(2*time.Hour), []rollup.Measure[float64](nil), rollup.Options{})
	views := rollup.MustDefine("views", window.Every(30*time.Minute), []rollup.Measure[float64]{{Name: "s", Of: number, Max: 1e6}}, rollup.Options{Mode: rollup.Once})
	meters := tsdb.MustDefine("meters", tsdb.Key("id"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours, counts, views}})
	now := time.UnixMilli(start0)
	prom, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, prom, meters)
	repo, e := meters.For(store, acme), tsdb.NewEntity("m")
	for i := range 24 { // four hours
		if err := repo.Put(t.Context(), e, now.Add(time.Duration(i)*10*time.Minute), float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := rollup.NewAdder(views, repo, nil).Add(t.Context(), e, now, 7); err != nil {
		t.Fatal(err)
	}
	now = now.Add(5 * time.Hour)
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, meters)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := over(t, store, prom, tsdb.WriterOptions{}, someLimits, shown(t, store, nil))
	end := func(hours float64) string { return fmt.Sprint(start0/1000 + int64(3600*hours)) }
	for query, want := range map[string]string{
		"meters:kwh:increase_1h[1d]":   `[[` + end(2) + `,"6"],[` + end(3) + `,"6"],[` + end(4) + `,"6"]]`,
		"meters:level:delta_1h[1d]":    `[[` + end(2) + `,"6"],[` + end(3) + `,"6"],[` + end(4) + `,"6"]]`,
		"meters:kwh:last_1h[1d]":       `[[` + end(1) + `,"5"],[` + end(2) + `,"11"],[` + end(3) + `,"17"],[` + end(4) + `,"23"]]`,
		"meters:count_2h[1d]":          `[[` + end(2) + `,"12"],[` + end(4) + `,"12"]]`,
		"meters:s:max_30m[1d]":         `[[` + end(0.5) + `,"7"]]`,
		"meters:level:stddev_1h[3h]":   `"1.8708`,
		"meters:level:p50_1h[90m]":     `"2`,
		"meters:level:integral_1h":     `"result":[]`, // it is not kept
		"meters:level:avg_1h[365d]":    `[[` + end(1) + `,"2.5"]`,
		"meters:level:avg_1h":          `"value":[` + end(4.01) + `,"20.5"]`,
		"meters:level:avg_1h[100000y]": "error",
	} {
		if _, got := s.get("query", "query", query, "time", end(4.01)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if status, got := s.get("query", "query", `{__name__=~"meters.+"}`, "time", "9000000000"); status != http.StatusOK {
		t.Errorf("in the far future: %d %s", status, got)
	}
	repeated := rollup.MustDefine("again", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "kwh", Of: number, Max: 1e6}}, rollup.Options{})
	clashing := tsdb.MustDefine("other", tsdb.Key("id"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{
		repeated, rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "kwh", Of: number, Max: 1e6}}, rollup.Options{}),
	}})
	if err := store.Ensure(t.Context(), clashing); err != nil {
		t.Fatal(err)
	}
	if err := catalogueError(t, store); err == nil || !strings.Contains(err.Error(), "again and hours") {
		t.Errorf("two rollups of one name: %v, want an error with both", err)
	}
}
