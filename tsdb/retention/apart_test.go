package retention_test

import (
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAClassWithoutACommonFamily: a dataset that is not in the plan keeps its class from changing, also where it keeps only rollups
// or heads in it, which have families of their own.
func TestAClassWithoutACommonFamily(t *testing.T) {
	for name, other := range map[string]tsdb.Dataset{
		"rollup": define(t, "events", days("d7", 7), hourly(days("d90", 90))),
		"heads":  define(t, "events", days("d90", 90), func(o *tsdb.SchemaOptions) { o.Head, o.Precision = tsdb.Head{Points: 3, Only: true}, tsdb.Milliseconds }),
	} {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)), other)
		p := plan(t, store, define(t, "readings", days("d90", 30)))
		if _, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: p.Destructive()}); !errors.Is(err, retention.ErrImpossible) {
			t.Errorf("%s: %v\n%v", name, err, p)
		}
		if _, err := retention.NewPlanFor(t.Context(), store, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
