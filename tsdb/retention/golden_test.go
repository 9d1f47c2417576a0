package retention_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPlans compares the text and the JSON of plans with golden files, applies each with the names it requires, and
// then expects an empty plan.
func TestPlans(t *testing.T) {
	d7, d30, d90, keep := days("d7", 7), days("d30", 30), days("d90", 90), class("keep", gc.Never())
	for _, tt := range []struct {
		name   string
		stored []tsdb.Dataset
		then   func(t *testing.T, a *bigtable.AdminClient) // a change outside the program
		want   []tsdb.Dataset
		remain bool // cannot be applied, or leaves items that are not the program's
	}{
		{name: "nothing", stored: []tsdb.Dataset{define(t, "readings", d90)}, want: []tsdb.Dataset{define(t, "readings", d90)}},
		{name: "no_table", want: []tsdb.Dataset{define(t, "readings", d90, heads(5), hourly(keep))}},
		{
			name: "create", stored: []tsdb.Dataset{define(t, "readings", d90)},
			want: []tsdb.Dataset{define(t, "readings", d30, older(d90)), define(t, "events", d7, heads(3), hourly(keep))},
		},
		{
			name: "tighten", stored: []tsdb.Dataset{define(t, "readings", d90, heads(5), hourly(d90)), define(t, "events", d90)},
			want: []tsdb.Dataset{define(t, "readings", days("d90", 30), heads(5), hourly(days("d90", 30))), define(t, "events", days("d90", 30))},
		},
		{
			name: "loosen", stored: []tsdb.Dataset{define(t, "readings", d30, heads(5))},
			want: []tsdb.Dataset{define(t, "readings", class("d30", gc.Never()), heads(5))},
		},
		{
			name: "drift", stored: []tsdb.Dataset{define(t, "readings", d30, heads(5)), define(t, "events", d7)},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				set(t, a, "d30", bigtable.NoGcPolicy())
				set(t, a, "d7", bigtable.UnionPolicy(bigtable.MaxAgePolicy(time.Hour), bigtable.MaxVersionsPolicy(1)))
				set(t, a, "d30.h5", bigtable.MaxVersionsPolicy(9))
				set(t, a, "_sys", bigtable.MaxVersionsPolicy(3))
			},
			want: []tsdb.Dataset{define(t, "readings", d30, heads(5)), define(t, "events", d7)},
		},
		{
			name: "drift_and_change", stored: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) { set(t, a, "d30", bigtable.MaxAgePolicy(5*day)) },
			want: []tsdb.Dataset{define(t, "readings", days("d30", 7))},
		},
		{
			name: "drift_to_a_fraction", stored: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				set(t, a, "d30", bigtable.MaxAgePolicy(30*day+500*time.Millisecond))
			},
			want: []tsdb.Dataset{define(t, "readings", d30)},
		},
		{
			name: "removed", stored: []tsdb.Dataset{define(t, "readings", d30, heads(5))},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				if err := a.DeleteColumnFamily(t.Context(), tsdbtest.Table, "d30.h5"); err != nil {
					t.Fatal(err)
				}
			},
			want: []tsdb.Dataset{define(t, "readings", d30, heads(5))},
		},
		{
			name: "foreign", stored: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				create(t, a, "own", bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(7)})
				create(t, a, "d7", bigtable.Family{GCPolicy: bigtable.MaxAgePolicy(9 * day)})
			},
			want: []tsdb.Dataset{define(t, "readings", d30), define(t, "events", d7)},
		},
		{
			name: "unlisted", stored: []tsdb.Dataset{define(t, "readings", d30), define(t, "events", d7), define(t, "others", d30, older(d90))},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				set(t, a, "d7", bigtable.NoGcPolicy())
				set(t, a, "d30", bigtable.NoGcPolicy())
				if err := a.DeleteColumnFamily(t.Context(), tsdbtest.Table, "d90"); err != nil {
					t.Fatal(err)
				}
			},
			want: []tsdb.Dataset{define(t, "readings", d30)}, remain: true,
		},
		{
			name: "catalogue", stored: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) { set(t, a, "d30", bigtable.MaxAgePolicy(7*day)) },
			want: []tsdb.Dataset{define(t, "readings", days("d30", 7))},
		},
		{
			name: "others_table", want: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				if err := a.CreateTable(t.Context(), tsdbtest.Table); err != nil {
					t.Fatal(err)
				}
				create(t, a, "own", bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(7)})
			},
		},
		{
			name: "classes", stored: []tsdb.Dataset{define(t, "readings", d30, heads(2))},
			want: []tsdb.Dataset{define(t, "readings", d30, heads(2), choice(d7, keep))},
		},
		{
			name: "class_tightened", stored: []tsdb.Dataset{define(t, "readings", d30, choice(d7, d90))},
			want: []tsdb.Dataset{define(t, "readings", d30, choice(days("d7", 3), d90), hourly(keep))},
		},
		{
			name: "order", stored: []tsdb.Dataset{define(t, "readings", d30, older(d7, d90))},
			want: []tsdb.Dataset{define(t, "readings", d90, older(d30, d7))},
		},
		{
			name: "another_shape", stored: []tsdb.Dataset{define(t, "readings", d30, heads(5)), define(t, "events", d30)},
			want: []tsdb.Dataset{define(t, "readings", days("d30", 7), heads(3))}, remain: true,
		},
		{
			name: "type", stored: []tsdb.Dataset{define(t, "readings", d30)},
			then: func(t *testing.T, a *bigtable.AdminClient) {
				create(t, a, "keep.s", bigtable.Family{GCPolicy: bigtable.NoGcPolicy()})
				create(t, a, "keep.n", bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}})
				create(t, a, "d7", bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}})
			},
			want: []tsdb.Dataset{define(t, "readings", d7, older(d30), hourly(keep))}, remain: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, tt.stored...)
			a := admin(t, conn)
			if tt.then != nil {
				tt.then(t, a)
			}
			var before, own map[string]string
			if tt.stored != nil {
				before, own = policies(t, a), catalogue(t, table)
			}
			p := plan(t, store, tt.want...)
			golden(t, tt.name+".txt", []byte(p.String()))
			doc, err := json.MarshalIndent(p, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".json", append(doc, '\n'))
			if tt.stored != nil && (!maps.Equal(policies(t, a), before) || !maps.Equal(catalogue(t, table), own)) {
				t.Error("making a plan changed the table")
			}
			again, err := retention.ReadPlan(bytes.NewReader(doc))
			if err != nil || again.String() != p.String() {
				t.Fatalf("a plan read back differs: %v\n%v", err, again)
			}
			if tt.remain {
				return
			}
			rep := apply(t, store, again, p.Destructive()...)
			golden(t, tt.name+".applied.txt", []byte(rep.String()))
			if err := store.Ensure(t.Context(), tt.want...); err != nil {
				t.Errorf("Ensure after Apply: %v", err)
			}
			if left := plan(t, store, tt.want...); !left.Empty() || left.Drifted() {
				t.Errorf("the plan after Apply is not empty:\n%v", left)
			}
			after, own := policies(t, a), catalogue(t, table)
			if rep := apply(t, store, p, p.Destructive()...); len(rep.Applied) > 0 {
				t.Errorf("a second Apply reports %v, want nothing", rep)
			}
			if !maps.Equal(policies(t, a), after) || !maps.Equal(catalogue(t, table), own) {
				t.Error("a second Apply changed the table")
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testkit.Golden(t, "testdata/"+name, string(got), "plans in files would no longer be read as they were written")
}
