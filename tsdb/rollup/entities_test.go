package rollup_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestEntities: entities that have events and no points are found, once each, however many rows they have; expired
// ones, those of other prefixes and of other tenants are not.
func TestEntities(t *testing.T) {
	for _, salts := range []int{0, 3} {
		hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "n", Of: func(v float64) (float64, bool) { return v, true }, Max: 1e6}},
			rollup.Options{Mode: rollup.Once, Span: 2 * time.Hour, Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * oneDay)}})
		s := tsdb.MustDefine("views", tsdb.Key("app", "user"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}, Salts: salts})
		now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, s)
		add := func(id string, e tsdb.Entity, at ...time.Time) {
			t.Helper()
			var events []tsdb.Point[float64]
			for _, at := range at {
				events = append(events, tsdb.Point[float64]{Entity: e, Time: at, Value: 1})
			}
			if _, err := rollup.NewAdder(hours, s.For(store, tenant.MustParse(id)), nil).AddMany(t.Context(), events); err != nil {
				t.Fatal(err)
			}
		}
		var want []tsdb.Entity
		for i := range 40 {
			e := tsdb.NewEntity([]string{"a", "b", "c"}[i%3], fmt.Sprintf("user-%02d", i))
			var at []time.Time
			for row := range []int{1, 7, 8, 9, 30}[i%5] {
				at = append(at, now.Add(-time.Duration(row)*2*time.Hour))
			}
			add("acme", e, at...)
			want = append(want, e)
		}
		var many []tsdb.Point[float64] // more than a request returns
		for i := range 1100 {
			e := tsdb.NewEntity("d", fmt.Sprintf("user-%04d", i))
			many, want = append(many, tsdb.Point[float64]{Entity: e, Time: now, Value: 1}), append(want, e)
		}
		if _, err := rollup.NewAdder(hours, s.For(store, tenant.MustParse("acme")), nil).AddMany(t.Context(), many); err != nil {
			t.Fatal(err)
		}
		add("acme", tsdb.NewEntity("b", "old"), now.Add(-29*oneDay))
		add("acmf", tsdb.NewEntity("b", "of another tenant"), now)
		now = now.Add(2 * oneDay) // the old one has expired
		slices.SortFunc(want, tsdb.Entity.Compare)

		reader := rollup.For(hours, s.For(store, tenant.MustParse("acme")))
		read := func(p tsdb.Prefix) (got []tsdb.Entity) {
			t.Helper()
			conn.Reset()
			for e, err := range reader.Entities(t.Context(), p) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if salts > 0 {
				slices.SortFunc(got, tsdb.Entity.Compare)
			}
			return got
		}
		if got := read(tsdb.AllEntities()); !slices.Equal(got, want) {
			t.Errorf("%d salts: found %d, want %d", salts, len(got), len(want))
		}
		// 24 of the entities have 8 rows or more.
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n < 24 || n > 24+2+salts {
			t.Errorf("%d salts: %d requests, want one for each entity with many rows", salts, n)
		}
		if got := read(tsdb.NewPrefix("b")); len(got) != 13 || got[0].Parts()[0] != "b" {
			t.Errorf("%d salts: below b there are %v", salts, got)
		}
		for range reader.Entities(t.Context(), tsdb.AllEntities()) {
			break
		}
		for what, seq := range map[string]tsdb.Prefix{"the zero prefix": {}, "a prefix of too many parts": tsdb.NewPrefix("a", "b", "c")} {
			for _, err := range reader.Entities(t.Context(), seq) {
				if !errors.Is(err, tsdb.ErrInvalid) {
					t.Errorf("%s: %v, want ErrInvalid", what, err)
				}
			}
		}
		conn.Inject(tsdbtest.CutStream(3, 14).On(tsdbtest.ReadRows).Times(5)) // UNAVAILABLE
		if got := read(tsdb.AllEntities()); !slices.Equal(got, want) {
			t.Errorf("%d salts, streams that break: found %d, want %d", salts, len(got), len(want))
		}
	}
}
