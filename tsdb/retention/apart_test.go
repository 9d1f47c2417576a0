package retention_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/gc"
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

// TestACatalogueThatDoesNotAgree: programs that have no family in common can record two policies of one class. A plan by the
// catalogue says what to do, and puts it right.
func TestACatalogueThatDoesNotAgree(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	if err := store.Ensure(t.Context(), define(t, "events", days("d7", 7), hourly(days("d90", 30)))); err != nil {
		t.Fatal(err)
	}
	if _, err := retention.NewPlanFor(t.Context(), store, nil); !errors.Is(err, retention.ErrInvalid) || !strings.Contains(err.Error(), `"d90"; want one that is given a policy here`) {
		t.Error(err)
	}
	p, err := retention.NewPlanFor(t.Context(), store, map[string]gc.Policy{"d90": gc.MaxAge(90 * day)})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, store, p)
	if p, err := retention.NewPlanFor(t.Context(), store, nil); err != nil || !p.Empty() {
		t.Errorf("%v, %v", p, err)
	}
}
