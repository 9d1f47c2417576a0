package retention_test

import (
	"errors"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPlanByTheCatalogue: a tool without schemas changes a class in every dataset and rollup that has it, and nothing
// else.
func TestPlanByTheCatalogue(t *testing.T) {
	stored := []tsdb.Dataset{define(t, "readings", days("d90", 90), heads(2)), define(t, "events", days("d7", 7), hourly(days("d90", 90)))}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, stored...)
	a := admin(t, conn)
	ctx := t.Context()
	if p, err := retention.NewPlanFor(ctx, store, nil); err != nil || !p.Empty() || p.Drifted() {
		t.Errorf("plan without changes: %v, %v", p, err)
	}
	for name, classes := range map[string]map[string]gc.Policy{
		"no class": {"d91": gc.Never()}, "a family": {"d90.h2": gc.Never()}, "versions": {"d90": gc.MaxVersions(2)}, "nonsense": {"d90": gc.MaxAge(0)},
	} {
		if p, err := retention.NewPlanFor(ctx, store, classes); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: plan %v, error %v", name, p, err)
		}
	}
	p, err := retention.NewPlanFor(ctx, store, map[string]gc.Policy{"d90": gc.MaxAge(30 * day)})
	if err != nil {
		t.Fatal(err)
	}
	rep := apply(t, store, p, "d90")
	if len(rep.Applied) != 8 { // points, heads, four of the rollup, two datasets
		t.Errorf("report %v, want 8 items", rep)
	}
	if err := store.Ensure(ctx, stored...); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Ensure of a program with the old policy: %v", err)
	}
	if err := store.Ensure(ctx, define(t, "readings", days("d90", 30), heads(2)), define(t, "events", days("d7", 7), hourly(days("d90", 30)))); err != nil {
		t.Errorf("Ensure of a program with the new policy: %v", err)
	}
	set(t, a, "d7", bigtable.NoGcPolicy())
	if p, err := retention.NewPlanFor(ctx, store, nil); err != nil || !p.Drifted() {
		t.Errorf("plan after a change elsewhere: %v, %v", p, err)
	}
	empty, _ := tsdbtest.Open(t, tsdbtest.Options{})
	if _, err := retention.NewPlanFor(ctx, empty, nil); !errors.Is(err, tsdb.ErrNoTable) {
		t.Errorf("plan without a table: %v, want ErrNoTable", err)
	}
	other, conn := tsdbtest.Open(t, tsdbtest.Options{})
	conf := &bigtable.TableConf{TableID: tsdbtest.Table, ColumnFamilies: map[string]bigtable.Family{"theirs": {}}}
	if err := admin(t, conn).CreateTableFromConf(ctx, conf); err != nil {
		t.Fatal(err)
	}
	if p, err := retention.NewPlanFor(ctx, other, nil); !errors.Is(err, tsdb.ErrNoTable) {
		t.Errorf("plan for another program's table: %v\n%v", err, p)
	}
}
