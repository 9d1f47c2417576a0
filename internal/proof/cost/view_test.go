package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
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
	{
		covers: []string{"dynamic.FieldsOf"}, requests: only("read", always(1)), seen: always(1),
		run: func(w *world, _ int) func() {
			s := records(w)
			return func() {
				_, err := dynamic.FieldsOf(w.ctx, w.store, acme, s)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"dynamic.RecordFields"}, of: "points", sizes: []int{100, 2_500}, requests: only("read", fullGroups(1000, 1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, n)
			return func() {
				_, err := dynamic.RecordFields(w.ctx, w.store, acme, w.repo.Schema(), dynamic.Options{}, 1_000_000)
				w.ok(err)
			}
		},
	},
}}

// records returns a dataset whose fields are listed, with a point and its list.
func records(w *world) *tsdb.Schema[codec.Record] {
	s := tsdb.MustDefine("records", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{})
	w.ok(w.store.Ensure(w.ctx, s))
	w.ok(s.For(w.store, acme).Put(w.ctx, tsdb.NewEntity("a"), noon, codec.NewRecord(codec.Field{Name: "temp", Value: codec.Float(1)})))
	in, err := inside.Of(w.store).Internals()
	w.ok(err)
	w.ok(in.Fields.Flush(w.ctx))
	return s
}
