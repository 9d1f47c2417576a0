package rollup_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	kwhByFunction = rollup.Measure[metered]{Name: "kwh", Kind: window.Counter, Int: metered.energy, Max: 1e9}
	kwhByField    = rollup.Measure[metered]{Name: "kwh", Kind: window.Counter, Field: "wh", Max: 1e9}
	loadByField   = rollup.Measure[metered]{Name: "load", Field: "load", Decimals: 2, Max: 1e6, Aggregates: window.Mean}
)

// TestAFunctionBecomesAField: Ensure accepts a field in place of a function, and no other change of where a number
// comes from. A program that still declares the function is refused then, as is one that does not know fields: it sees
// an unknown kind.
func TestAFunctionBecomesAField(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, functions := grown(kwhByFunction, loadBefore)
		_, fields := grown(kwhByField, loadByField)
		l := newLife(t, functions)
		loadIsInt := loadBefore
		loadIsInt.Int, loadIsInt.Of = nil, func(metered) (float64, bool) { return 0, false }
		_, same := grown(kwhByFunction, loadIsInt)
		if err := l.store.Ensure(t.Context(), same); err != nil {
			t.Errorf("another function, which nothing can compare: %v", err)
		}
		other, decimals := kwhByField, kwhByField
		other.Field, decimals.Decimals = "watt_hours", 3
		_, another := grown(decimals, loadByField)
		if err := l.store.Ensure(t.Context(), another); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("a field with other decimals: %v, want a conflict", err)
		}
		if err := l.store.Verify(t.Context(), fields); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "a counter of wh) of rollup hour declared, but not stored (Ensure adds it)") {
			t.Errorf("Verify before Ensure: %v", err)
		}
		for range 2 {
			if err := l.store.Ensure(t.Context(), fields); err != nil {
				t.Fatal(err)
			}
			if err := l.store.Verify(t.Context(), fields); err != nil {
				t.Fatal(err)
			}
		}
		client, _ := tsdbtest.Clients(t, l.conn)
		row, err := client.Open(tsdbtest.Table).ReadRow(t.Context(), "!dataset#r")
		if err != nil {
			t.Fatal(err)
		}
		stored := `"measures":[{"name":"kwh","decimals":0,"max":"1000000000","aggregates":["count","ends","increase"],"kind":"counter of wh"},` +
			`{"name":"load","decimals":2,"max":"1000000","aggregates":["count","sum"],"kind":"gauge of load"}]`
		if !slices.ContainsFunc(row["_sys"], func(c bigtable.ReadItem) bool { return strings.Count(string(c.Value), stored) == 2 }) {
			t.Errorf("the catalogue has %v, want twice %s", row["_sys"], stored)
		}
		var kind window.Kind
		if err := kind.UnmarshalText([]byte("counter of wh")); err == nil {
			t.Error("a program that does not know fields takes the measure for one of a kind that it knows")
		}
		_, elsewhere := grown(other, loadByField)
		for name, schema := range map[string]*tsdb.Schema[metered]{"the function again": functions, "another field": elsewhere} {
			for _, call := range []func() error{func() error { return l.store.Ensure(t.Context(), schema) }, func() error { return l.store.Verify(t.Context(), schema) }} {
				if err := call(); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "counter of wh") {
					t.Errorf("%s: %v, want a conflict", name, err)
				}
			}
		}
		more := kwhByField
		more.Aggregates, more.Added = window.Count|window.Ends|window.Increase|window.Max, true
		_, again := grown(more, loadByField)
		if err := l.store.Ensure(t.Context(), again); err != nil {
			t.Errorf("a field that gains an aggregate: %v", err)
		}
	})
}

// TestAFieldAndMoreAggregates: a measure can gain a field and aggregates at once.
func TestAFieldAndMoreAggregates(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, before := grown(loadBefore)
		after := loadAfter
		after.Int, after.Field = nil, "load"
		_, fields := grown(after)
		l := newLife(t, before)
		if err := l.store.Ensure(t.Context(), fields); err != nil {
			t.Error(err)
		}
	})
}

// TestFieldsCountAsFunctionsDo: a field has the numbers that a function of the same field returns, with the limits of
// the measure.
func TestFieldsCountAsFunctionsDo(t *testing.T) {
	number := func(v float64) (float64, bool) { return v, true }
	measure := func(name string) rollup.Measure[float64] {
		return rollup.Measure[float64]{Name: name, Decimals: 2, Max: 1000.5, Aggregates: window.Basic | window.Ends | window.StdDev}
	}
	counter := rollup.Measure[float64]{Name: "counter", Field: rollup.Payload, Kind: window.Counter, Max: 1e15}
	field, function := measure("field"), measure("function")
	field.Field, function.Of = rollup.Payload, number
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[float64]{field, function, counter}, rollup.Options{})
	schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	numbers := []float64{0, 1, -1.005, 1.005, 12.345, 1000.5, 1000.51, -1000.5, -1000.51, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e15, 1e15 + 1, 0.004, -0.006}
	for i, x := range numbers {
		if err := schema.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Minute), x); err != nil {
			t.Fatal(err)
		}
	}
	total, err := rollup.For(hour, schema.For(store, acme)).Total(t.Context(), roof, tsdb.AllTime())
	if err != nil {
		t.Fatal(err)
	}
	got, want := total.Values[0], total.Values[1]
	if got.Name = want.Name; total.Points != int64(len(numbers)) || got.Count != 9 || got.Sum != want.Sum || got.Count != want.Count || got.Min != want.Min || got.Max != want.Max ||
		got.First != want.First || got.Last != want.Last || got.StdDev != want.StdDev || got.Max != 1000.5 {
		t.Errorf("of %d points, the field has %+v, and the function %+v", total.Points, got, want)
	}
	if c := total.Values[2]; c.Count != 8 || c.Resets != 1 { // without -0.006
		t.Errorf("the counter has %+v", c)
	}
}

// TestFieldsAreRefused: a measure has one source, and only a derived rollup has payloads.
func TestFieldsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rollup.Measure[metered])
		mode   rollup.Mode
		say    string
	}{
		"a field and a function": {func(m *rollup.Measure[metered]) { m.Int = metered.load }, rollup.Derived, "Field, Of and Int"},
		"neither":                {func(m *rollup.Measure[metered]) { m.Field = "" }, rollup.Derived, "0 of them"},
		"a long name":            {func(m *rollup.Measure[metered]) { m.Field = strings.Repeat("x", 201) }, rollup.Derived, "200 bytes"},
		"no text":                {func(m *rollup.Measure[metered]) { m.Field = "\xff" }, rollup.Derived, "UTF-8"},
		"events":                 {func(*rollup.Measure[metered]) {}, rollup.ByMessage, "not stored"},
	} {
		m := loadByField
		c.change(&m)
		_, err := rollup.Define("hour", window.Every(time.Hour), []rollup.Measure[metered]{m}, rollup.Options{Mode: c.mode})
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v; want an error with %q", name, err, c.say)
		}
	}
}
