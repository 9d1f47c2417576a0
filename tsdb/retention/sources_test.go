package retention_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestPlansKeepWhatRollupsComeFrom: a policy must not remove points, or buckets of a finer rollup, before a bucket
// computed from them closes. No program can declare such a policy, so no plan applies it: it would delete data, and
// programs would no longer start.
func TestPlansKeepWhatRollupsComeFrom(t *testing.T) {
	testkit.Plain(t)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	schemaOf := func(points, fine gc.Policy) (*tsdb.Schema[float64], error) {
		return tsdb.Define("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{
			Retention: class("raw", points),
			Rollups: []tsdb.Rollup{
				rollup.MustDefine[float64]("day", window.Days(1).In(zone), nil, rollup.Options{Retention: class("fine", fine)}),
				rollup.MustDefine[float64]("week", window.Weeks(1, time.Sunday).In(zone), nil, rollup.Options{From: "day"}),
			},
		})
	}
	days := func(n int) gc.Policy { return gc.MaxAge(time.Duration(n) * day) }
	for name, change := range map[string]struct{ points, fine gc.Policy }{
		"longer":                   {days(400), days(400)},
		"as it is":                 {days(30), days(30)},
		"points, just":             {gc.MaxAge(25*time.Hour + 2*time.Minute), days(30)},
		"points, a bucket":         {days(1), days(30)},
		"points, without lateness": {gc.MaxAge(25 * time.Hour), days(30)},
		"points, an hour":          {gc.MaxAge(time.Hour), days(30)},
		"days, a week":             {days(30), days(7)},
		"days, eight of them":      {days(30), days(8)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, err := schemaOf(days(30), days(30))
				if err != nil {
					t.Fatal(err)
				}
				store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
				next, declarable := schemaOf(change.points, change.fine)
				p, err := retention.NewPlanFor(t.Context(), store, map[string]gc.Policy{"raw": change.points, "fine": change.fine})
				if err != nil {
					t.Fatal(err)
				}
				_, err = p.Apply(t.Context(), store, retention.ApplyOptions{Allow: p.Destructive()})
				if declarable != nil {
					if !errors.Is(err, errtype.ErrPlan) || !strings.Contains(err.Error(), "longest bucket") {
						t.Fatalf("no schema can declare it (%v); Apply: %v, want ErrImpossible", declarable, err)
					}
					if err := store.Verify(t.Context(), s); err != nil {
						t.Errorf("an impossible plan changed the table: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatalf("Apply: %v", err)
				}
				if err := store.Verify(t.Context(), next); err != nil {
					t.Errorf("Ensure with the applied policies: %v", err)
				}
			})
		})
	}
}
