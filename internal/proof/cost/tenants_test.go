package cost

import (
	"bytes"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// erasing are the options of an erasure that waits for no other store: none is open.
var erasing = tenants.EraseOptions{By: "ops", Reason: "contract ended", Settle: 1, RowsPerSecond: -1}

// retiring is a schema with a class to retire.
var (
	d7       = gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}
	retiring = tsdb.SchemaOptions{FormerClasses: []gc.Class{d7}}
)

func (w *world) onboard(id tenant.ID, p tenants.Profile, opts tenants.OnboardOptions) {
	w.Helper()
	_, err := tenants.Onboard(w.ctx, w.store, id, p, opts)
	w.ok(err)
}

// erased erases the world's tenant.
func erased(w *world) {
	w.history(1, 1)
	_, err := tenants.Erase(w.ctx, w.store, acme, erasing)
	w.ok(err)
}

var life = group{title: "Tenants", calls: []call{
	{
		covers: []string{"tenants.Onboard"}, requests: map[string]shape{"read": always(2), "conditional": always(1)}, written: always(1),
		run: func(w *world, _ int) func() {
			return func() { w.onboard(acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{}) }
		},
	},
	{
		covers: []string{"tenants.Exists"}, name: "`tenants.Exists`, of a tenant without a profile", requests: map[string]shape{"read": always(3)}, seen: always(1),
		run: func(w *world, _ int) func() {
			w.history(1, 10)
			return func() {
				found, err := tenants.Exists(w.ctx, w.store, acme)
				w.ok(err)
				w.wantN(map[bool]int{true: 1}[found], 1)
			}
		},
	},
	{
		covers: []string{"tenants.Load"}, requests: map[string]shape{"read": always(1)}, seen: always(1),
		run: func(w *world, _ int) func() {
			w.onboard(acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{})
			return func() {
				_, err := tenants.Load(w.ctx, w.store, acme)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.KeptFor"}, requests: map[string]shape{"read": always(2)}, seen: always(2),
		run: func(w *world, _ int) func() {
			w.onboard(acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{})
			return func() {
				_, err := tenants.KeptFor(w.ctx, w.store, acme)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.List"}, of: "tenants with points", sizes: []int{1, 10, 100}, requests: map[string]shape{"read": each(2, 4).from(each(1, 4))}, seen: each(1, 2),
		run: func(w *world, n int) func() {
			for _, id := range several(n) {
				w.ok(w.schema.For(w.store, id).Put(w.ctx, device(0), noon, value))
			}
			return func() { w.wantN(drain(w, tenants.List(w.ctx, w.store, tenants.ListOptions{})), n) }
		},
	},
	{
		covers: []string{"tenants.Usage"}, of: "rows", sizes: []int{100, 1_000, 10_000}, requests: map[string]shape{"read": fullGroups(10_000, 5)}, seen: each(1, 3).and(groups(100, 0)),
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			return func() {
				_, err := tenants.Usage(w.ctx, w.store, acme, tenants.UsageOptions{})
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.Usage"}, name: "`tenants.Usage`, exact", detail: true, of: "rows", sizes: []int{100, 1_000}, requests: map[string]shape{"read": fullGroups(10_000, 4)}, seen: each(1, 3),
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			return func() {
				_, err := tenants.Usage(w.ctx, w.store, acme, tenants.UsageOptions{Exact: true})
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.Erase"}, of: "rows", sizes: []int{100, 5_010, 10_000}, seen: each(2, 0), written: each(1, 8).and(groups(5000, 0)).and(fullGroups(10_000, 0)),
		requests: map[string]shape{
			"read": fullGroups(5000, 7).and(fullGroups(10_000, 0)), "bulk": groups(5000, 0), "conditional": groups(5000, 8).and(fullGroups(10_000, 0)), "admin": always(1),
		},
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			return func() {
				_, err := tenants.Erase(w.ctx, w.store, acme, erasing)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.EraseEntity"}, of: "points of the entity", sizes: []int{100, 5_000, 10_000}, seen: each(2, 2), written: each(1, 8).and(groups(5000, 0)).and(fullGroups(10_000, 0)),
		requests: map[string]shape{
			"read": fullGroups(5000, 10).and(fullGroups(10_000, 0)), "bulk": groups(5000, 0), "conditional": groups(5000, 8).and(fullGroups(10_000, 0)),
		},
		run: func(w *world, n int) func() {
			w.history(1, n)
			return func() {
				_, err := tenants.EraseEntity(w.ctx, w.store, acme, "", map[string]string{"site": "berlin", "device": "d00000"}, erasing)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.Erasure"}, requests: map[string]shape{"read": always(1)}, seen: always(1),
		run: func(w *world, _ int) func() {
			erased(w)
			return func() {
				_, err := tenants.Erasure(w.ctx, w.store, acme)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.Readmit"}, requests: map[string]shape{"read": always(3), "conditional": always(2)}, seen: always(3), written: always(2),
		run: func(w *world, _ int) func() {
			erased(w)
			return func() { w.ok(tenants.Readmit(w.ctx, w.store, acme)) }
		},
	},
	{
		covers: []string{"tenants.ReadmitEntity"}, requests: map[string]shape{"read": always(4), "conditional": always(2)}, seen: always(4), written: always(2),
		run: func(w *world, _ int) func() {
			w.history(1, 1)
			fields := map[string]string{"site": "berlin", "device": "d00000"}
			_, err := tenants.EraseEntity(w.ctx, w.store, acme, "", fields, erasing)
			w.ok(err)
			return func() { w.ok(tenants.ReadmitEntity(w.ctx, w.store, acme, "", fields)) }
		},
	},
	{
		covers: []string{"tenants.Remove"}, of: "rows of the dataset", sizes: []int{100, 5_010, 10_000}, seen: each(3, 15), written: each(1, 10).and(groups(5000, 0)),
		requests: map[string]shape{
			"read": fullGroups(5000, 21).and(fullGroups(10_000, 0)).and(fullGroups(10_000, 0)), "bulk": groups(5000, 0), "conditional": groups(5000, 10),
		},
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			return func() {
				_, err := tenants.Remove(w.ctx, w.store, tenants.Part{Dataset: w.schema.Name()}, tenants.RemoveOptions{Settle: 1, RowsPerSecond: -1})
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"tenants.Retire"}, requests: map[string]shape{"read": always(3), "conditional": always(1)}, seen: always(4), written: always(1),
		schema: retiring,
		run: func(w *world, _ int) func() {
			return func() { w.ok(tenants.Retire(w.ctx, w.store, tenants.Part{Dataset: w.schema.Name(), Class: d7.Name})) }
		},
	},
	{
		covers: []string{"tenants.Release"}, requests: map[string]shape{"read": always(3), "conditional": always(1)}, seen: always(4), written: always(1),
		schema: retiring,
		run: func(w *world, _ int) func() {
			part := tenants.Part{Dataset: w.schema.Name(), Class: d7.Name}
			w.ok(tenants.Retire(w.ctx, w.store, part))
			return func() { w.ok(tenants.Release(w.ctx, w.store, part)) }
		},
	},
	{
		covers: []string{"transfer.Export"}, of: "points", sizes: []int{100, 1_000, 2_500}, requests: map[string]shape{"read": fullGroups(1000, 4)}, seen: each(1, 3),
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			return func() {
				got, err := transfer.Export(w.ctx, w.store, acme, io.Discard, transfer.ExportOptions{})
				w.ok(err)
				w.wantN(int(got.Points), n)
			}
		},
	},
	{
		covers: []string{"transfer.Import"}, of: "points", sizes: []int{100, 1_000, 2_500}, requests: map[string]shape{"read": always(1), "bulk": groups(1000, 0)}, seen: always(2), written: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(n/10, 10)
			var file bytes.Buffer
			_, err := transfer.Export(w.ctx, w.store, acme, &file, transfer.ExportOptions{})
			w.ok(err)
			_, err = w.repo.DeletePrefix(w.ctx, tsdb.AllEntities())
			w.ok(err)
			return func() {
				got, err := transfer.Import(w.ctx, w.store, acme, &file, transfer.ImportOptions{})
				w.ok(err)
				w.wantN(int(got.Points), n)
			}
		},
	},
}}
