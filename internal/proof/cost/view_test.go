package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// view returns a view of the world's dataset.
func view(w *world) *dynamic.View {
	v, err := dynamic.Open(w.ctx, w.store, acme, w.repo.Schema().Name())
	w.ok(err)
	return v
}

var inspections = group{title: "Inspecting by the catalogue", calls: []call{
	{
		covers: []string{"dynamic.Open"}, requests: map[string]shape{"read": always(1)}, seen: always(2),
		run: func(w *world, _ int) func() { return func() { view(w) } },
	},
	{
		covers: []string{"dynamic.View.Points"}, of: "points", sizes: []int{1, 100, 2_500}, requests: only("read", fullGroups(1000, 1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, n)
			v := view(w)
			return func() { w.wantN(drain(w, v.Points(w.ctx, device(0), tsdb.AllTime())), n) }
		},
	},
	{
		covers: []string{"dynamic.View.Put"}, requests: only("bulk", always(1)), written: always(1),
		run: func(w *world, _ int) func() {
			v := view(w)
			d := dynamic.Describe(v.Repository().Schema())
			return func() {
				w.ok(v.Put(w.ctx, dynamic.Point{Entity: device(0), Time: noon.Add(-time.Minute), Class: d.Classes[0].Name, Tag: d.Tags[0], Payload: []byte(`{}`)}))
			}
		},
	},
}}
