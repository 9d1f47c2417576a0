package cost

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb/adopt"
)

// foreign returns a table of another program with n points of one device, on the store's connection, so that its requests are counted.
func foreign(w *world, n int) *adopt.Source {
	client, admin, err := local.Clients(w.ctx, w.meter.connection()) // both end with the store, whose connection it is
	w.ok(err)
	w.ok(admin.CreateTableFromConf(w.ctx, &bigtable.TableConf{TableID: "foreign", Families: map[string]bigtable.GCPolicy{"m": bigtable.NoGcPolicy()}}))
	table := client.OpenTable("foreign")
	var keys []string
	var writes []*bigtable.Mutation
	for i := range n {
		m := bigtable.NewMutation()
		m.Set("m", "x", bigtable.Time(noon.Add(-time.Hour)), []byte(`{"temp_c":21.5,"humidity":40}`))
		keys, writes = append(keys, fmt.Sprintf("berlin#d00042#%d", noon.Add(-time.Duration(i+1)*time.Minute).UnixMilli())), append(writes, m)
	}
	_, err = table.ApplyBulk(context.WithoutCancel(w.ctx), keys, writes)
	w.ok(err)
	m, err := adopt.Parse([]byte(`
table: foreign
tenant: acme
dataset: {name: readings}
key: {separator: "#", parts: [site, device, time]}
time: {unit: ms, width: 13}
cells: written
value: {column: "m:x", as: json}
`))
	w.ok(err)
	s, err := adopt.Open(table, m)
	w.ok(err)
	return s
}

var adoption = group{title: "Taking over a table of another program", calls: []call{
	{
		covers: []string{"adopt.Source.Check"}, of: "points", sizes: []int{100, 1_000, 2_500}, requests: map[string]shape{"read": fullGroups(1000, 2), "sample": always(1)}, seen: each(1, 2),
		run: func(w *world, n int) func() {
			s := foreign(w, n)
			return func() {
				r, err := s.Check(w.ctx, w.store, adopt.CheckOptions{})
				w.ok(err)
				w.wantN(int(r.Points), n)
			}
		},
	},
	{
		covers: []string{"adopt.Source.Copy"}, name: "`adopt.Source.Copy`, the first pass", of: "points", sizes: []int{100, 1_000, 2_500},
		requests: map[string]shape{"read": fullGroups(1000, 2), "sample": always(1), "bulk": groups(1000, 0)}, seen: each(1, 2), written: each(1, 0),
		run: func(w *world, n int) func() {
			s := foreign(w, n)
			return func() {
				state, err := s.Copy(w.ctx, w.store, adopt.CopyOptions{Rate: 1_000_000})
				w.ok(err)
				w.wantN(int(state.Points), n)
			}
		},
	},
	{
		covers: []string{"adopt.Source.Verify"}, of: "points", sizes: []int{100, 1_000, 2_500}, requests: map[string]shape{"read": fullGroups(1000, 3).and(fullGroups(1000, 0))}, seen: each(2, 2),
		run: func(w *world, n int) func() {
			s := foreign(w, n)
			_, err := s.Copy(w.ctx, w.store, adopt.CopyOptions{Rate: 1_000_000})
			w.ok(err)
			return func() {
				v, err := s.Verify(w.ctx, w.store, adopt.VerifyOptions{})
				w.ok(err)
				if !v.Same() {
					w.Error(v)
				}
			}
		},
	},
}}
