package cost

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// datasets returns n schemas.
func datasets(n int) (out []tsdb.Dataset) {
	for i := range n {
		out = append(out, tsdb.MustDefine(fmt.Sprintf("reading%d", i), tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: d90}))
	}
	return out
}

var stores = group{title: "The store, and retention", calls: []call{
	{
		covers: []string{"Store.Ping"}, requests: only("read", always(1)), seen: always(1),
		run: func(w *world, _ int) func() { return func() { w.ok(w.store.Ping(w.ctx)) } },
	},
	{
		covers: []string{"Store.Ensure"}, name: "`Store.Ensure`, of a new table", of: "datasets", sizes: []int{1, 5}, empty: true,
		requests: map[string]shape{"admin": always(3), "read": always(2), "conditional": each(1, 1)}, seen: each(1, 1), written: each(1, 1),
		run: func(w *world, n int) func() {
			return func() { w.ok(w.store.Ensure(w.ctx, datasets(n)...)) }
		},
	},
	{
		covers: []string{"Store.Ensure"}, name: "`Store.Ensure`, if nothing is missing", of: "datasets", sizes: []int{1, 5}, empty: true,
		requests: map[string]shape{"admin": always(1), "read": always(2)}, seen: each(1, 2),
		run: func(w *world, n int) func() {
			w.ok(w.store.Ensure(w.ctx, datasets(n)...))
			return func() { w.ok(w.store.Ensure(w.ctx, datasets(n)...)) }
		},
	},
	{
		covers: []string{"Store.Verify"}, of: "datasets", sizes: []int{1, 5}, empty: true, requests: only("read", always(1)), seen: each(1, 1),
		run: func(w *world, n int) func() {
			w.ok(w.store.Ensure(w.ctx, datasets(n)...))
			return func() { w.ok(w.store.Verify(w.ctx, datasets(n)...)) }
		},
	},
	{
		covers: []string{"Store.Datasets"}, of: "datasets", sizes: []int{1, 5}, empty: true, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.ok(w.store.Ensure(w.ctx, datasets(n)...))
			return func() { w.wantN(drain(w, w.store.Datasets(w.ctx)), n) }
		},
	},
	{
		covers: []string{"Store.EnsureView"}, name: "`Store.EnsureView`, of a new tenant", opts: tsdbtest.Options{ViewsFor: []tenant.ID{acme}}, requests: map[string]shape{"admin": always(3)},
		run: func(w *world, _ int) func() {
			return func() { w.ok(w.store.EnsureView(w.ctx, tenant.MustParse("beta"), w.schema)) }
		},
	},
	{
		covers: []string{"Store.EnsureView"}, name: "`Store.EnsureView`, if nothing is missing", opts: tsdbtest.Options{ViewsFor: []tenant.ID{acme}}, requests: map[string]shape{"admin": always(1)},
		run: func(w *world, _ int) func() { return func() { w.ok(w.store.EnsureView(w.ctx, acme, w.schema)) } },
	},
	{
		covers: []string{"retention.NewPlan"}, requests: map[string]shape{"read": always(2), "admin": always(1)}, seen: always(2),
		run: func(w *world, _ int) func() {
			return func() {
				_, err := retention.NewPlan(w.ctx, w.store, w.schema)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"retention.NewPlanFor"}, requests: map[string]shape{"read": always(2), "admin": always(1)}, seen: always(2),
		run: func(w *world, _ int) func() {
			return func() {
				_, err := retention.NewPlanFor(w.ctx, w.store, nil)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"retention.Plan.Apply"}, name: "`retention.Plan.Apply`, which changes a policy", requests: map[string]shape{"read": always(4), "admin": always(4), "conditional": always(3)},
		seen: always(4), written: always(3),
		run: func(w *world, _ int) func() {
			longer := schema(tsdb.SchemaOptions{Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(91 * 24 * time.Hour)}})
			plan, err := retention.NewPlan(w.ctx, w.store, longer)
			w.ok(err)
			return func() {
				_, err := plan.Apply(w.ctx, w.store, retention.ApplyOptions{})
				w.ok(err)
			}
		},
	},
}}
