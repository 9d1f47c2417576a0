package retention_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAClassWithoutACommonFamily: a class cannot change while a dataset outside the plan uses it, even if that dataset
// keeps only rollups or heads in it, which have their own families.
func TestAClassWithoutACommonFamily(t *testing.T) {
	for name, other := range map[string]tsdb.Dataset{
		"rollup": define(t, "events", days("d7", 7), hourly(days("d90", 90))),
		"heads":  define(t, "events", days("d90", 90), func(o *tsdb.SchemaOptions) { o.Head, o.Precision = tsdb.Head{Points: 3, Only: true}, tsdb.Milliseconds }),
	} {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)), other)
		p := plan(t, store, define(t, "readings", days("d90", 30)))
		if _, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: p.Destructive()}); !errors.Is(err, errtype.ErrPlan) {
			t.Errorf("%s: error %v, plan\n%v", name, err, p)
		}
		if _, err := retention.NewPlanFor(t.Context(), store, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestACatalogueThatDoesNotAgree: programs without a common family can record two policies for one class. A plan from
// the catalogue reports the conflict, and corrects it.
func TestACatalogueThatDoesNotAgree(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	if err := store.Ensure(t.Context(), define(t, "events", days("d7", 7), hourly(days("d90", 30)))); err != nil {
		t.Fatal(err)
	}
	if _, err := retention.NewPlanFor(t.Context(), store, nil); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), `"d90"; want a policy for it in this call`) {
		t.Error(err)
	}
	p, err := retention.NewPlanFor(t.Context(), store, map[string]gc.Policy{"d90": gc.MaxAge(90 * day)})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, store, p)
	if p, err := retention.NewPlanFor(t.Context(), store, nil); err != nil || !p.Empty() {
		t.Errorf("plan %v, error %v", p, err)
	}
}
