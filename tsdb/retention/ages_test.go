package retention_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// rollupAge keeps rollups of tenants in d7 for n days.
func rollupAge(n int) func(*tsdb.SchemaOptions) {
	return func(o *tsdb.SchemaOptions) { o.RollupAges = map[string]time.Duration{"d7": time.Duration(n) * day} }
}

// daily keeps an hourly rollup, and a daily one that is computed from it.
func daily(c gc.Class) func(*tsdb.SchemaOptions) {
	return func(o *tsdb.SchemaOptions) {
		hourly(c)(o)
		measures := []rollup.Measure[float64]{{Name: "v", Of: func(v float64) (float64, bool) { return v, true }, Decimals: 2, Max: 100}}
		o.Rollups = append(o.Rollups, rollup.MustDefine("day", window.Every(day), measures, rollup.Options{From: "hour", Retention: c}))
	}
}

// TestRollupAges: only a plan changes a stored age. An age that deletes data must be allowed; a longer one records what
// is lost. Each plan states how long points and rollups are kept.
func TestRollupAges(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	never := class("keep", gc.Never())
	with := func(ages ...func(*tsdb.SchemaOptions)) tsdb.Dataset {
		return define(t, "readings", days("d30", 30), append([]func(*tsdb.SchemaOptions){choice(days("d7", 7)), daily(never)}, ages...)...)
	}
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, with())
	var got strings.Builder
	for _, step := range []struct {
		what        string
		want        tsdb.Dataset
		destructive bool
	}{
		{"an age", with(rollupAge(60)), true},
		{"a longer one", with(rollupAge(90)), false},
		{"a shorter one", with(rollupAge(30)), true},
		{"none", with(), false},
	} {
		now = now.Add(day)
		err := store.Ensure(t.Context(), step.want)
		if _, ok := errors.AsType[*tsdb.ConflictError](err); !ok || !strings.Contains(err.Error(), "age of rollups of tenants in retention class d7") {
			t.Errorf("%s: Ensure: %v, want a conflict", step.what, err)
		}
		p := plan(t, store, step.want)
		if got := len(p.Destructive()) > 0; got != step.destructive {
			t.Errorf("%s: destructive %v, want %v:\n%v", step.what, got, step.destructive, p)
		}
		if step.destructive {
			if _, err := p.Apply(t.Context(), store, retention.ApplyOptions{}); !errors.Is(err, retention.ErrNotAllowed) {
				t.Errorf("%s: Apply without Allow: %v, want ErrNotAllowed", step.what, err)
			}
		}
		for range 2 { // the second time there is nothing left to do
			apply(t, store, p, p.Destructive()...)
		}
		if err := store.Ensure(t.Context(), step.want); err != nil {
			t.Errorf("%s: Ensure after Apply: %v", step.what, err)
		}
		if left := plan(t, store, step.want); !left.Empty() {
			t.Errorf("%s: the plan after Apply is not empty:\n%v", step.what, left)
		}
		own := catalogue(t, table)
		fmt.Fprintf(&got, "# %s\n%v", step.what, p)
		for _, cell := range slices.Sorted(maps.Keys(own)) {
			if strings.HasPrefix(cell, "!dataset#") {
				fmt.Fprintf(&got, "  %q %q\n", cell, own[cell])
			}
		}
	}
	golden(t, "rollup_ages.golden", []byte(got.String()))
	apply(t, store, plan(t, store, with(rollupAge(60))), "readings")
}

// TestEntriesKeepColdAfter: whatever rewrites an entry keeps the member cold_after, which earlier versions wrote.
func TestEntriesKeepColdAfter(t *testing.T) {
	with := func(ages ...func(*tsdb.SchemaOptions)) tsdb.Dataset {
		return define(t, "readings", days("d30", 30), append([]func(*tsdb.SchemaOptions){choice(days("d7", 7)), daily(class("keep", gc.Never()))}, ages...)...)
	}
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, with(rollupAge(60)))
	entry := func() string { return catalogue(t, table)["!dataset#readings _sys:json"] }
	m := bigtable.NewMutation()
	m.Set("_sys", "json", 0, []byte(`{"cold_after":{"d30":"60d"},`+entry()[1:]))
	if err := table.Apply(t.Context(), "!dataset#readings", m); err != nil {
		t.Fatal(err)
	}
	for what, rewrite := range []func() error{
		func() error {
			_, err := plan(t, store, with()).Apply(t.Context(), store, retention.ApplyOptions{})
			return err
		},
		func() error { return store.Ensure(t.Context(), with(older(days("d90", 90)))) },
		func() error {
			return tenants.Retire(t.Context(), store, tenants.Part{Dataset: "readings", Class: "d90"})
		},
	} {
		before := entry()
		if err := rewrite(); err != nil {
			t.Fatal(err)
		}
		if now := entry(); now == before || !strings.Contains(now, `"cold_after":{"d30":"60d"}`) || strings.Contains(now, "rollup_ages") {
			t.Errorf("%d: the entry is now %s", what, now)
		}
	}
}
