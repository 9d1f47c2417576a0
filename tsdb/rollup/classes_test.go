package rollup_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestRollupsOfATenantThatMoves: a bucket with points of two classes is not recomputed once the points of the shorter
// class have expired, although the others are still readable: expired points must not look like points that never
// existed. The rollup keeps its own class.
func TestRollupsOfATenantThatMoves(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		day := 24 * time.Hour
		o := &one{clock: testkit.NewClock(start)}
		o.hour = rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{Retention: gc.Class{Name: "keep", Policy: gc.MaxAge(90 * day)}})
		o.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
			Retention: gc.Class{Name: "d7", Policy: gc.MaxAge(7 * day)},
			Classes:   []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * day)}},
			Rollups:   []tsdb.Rollup{o.hour},
		})
		o.store, o.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: o.Now}}, o.schema)
		o.repo = o.schema.For(o.store, acme)
		var err error
		if o.worker, err = rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema); err != nil {
			t.Fatal(err)
		}
		o.put(t, start, 1)
		if _, err := tenants.Onboard(t.Context(), o.store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
			t.Fatal(err)
		}
		o.put(t, start.Add(30*time.Minute), 2)
		o.Set(start.Add(2 * time.Hour))
		o.pass(t)
		o.want(t, "stored", o.stored(t), 3)
		o.Set(start.Add(8 * day))
		if p, err := o.repo.LatestN(t.Context(), roof, 5); err != nil || len(p) != 1 || p[0].Value.TempC != 2 {
			t.Fatalf("remaining points: %v, %v", p, err)
		}
		o.put(t, start.Add(40*time.Minute), 4) // the tenant's current class keeps it
		o.want(t, "read", o.sums(t), 3)
		o.Add(time.Minute)
		o.pass(t)
		o.want(t, "stored after a late point", o.stored(t), 3)
		o.put(t, o.Now().Add(-6*day), 5)
		o.Add(2 * time.Hour)
		o.pass(t)
		o.want(t, "stored after one that is not too late", o.stored(t), 5, 3) // in the order of their rows
		o.Set(start.Add(60 * day))
		o.want(t, "read when all points have expired", o.sums(t), 3, 5)
	})
}
