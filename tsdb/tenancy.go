package tsdb

import (
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// tenancy is what a store knows of the tenants of its table, and what it holds their calls to.
type tenancy struct {
	whole   *bt.Table // past all walls: for the rows of the store itself. Rows of a tenant are reached by rows
	name    string    // of the table
	clock   func() time.Time
	time    *clock.Watch // over clock
	watch   *telemetry.Probe
	views   *views         // nil for none
	limits  *limit.Limiter // nil for none
	erased  *erasures
	classes *kept[assigned]
	// profileLimits are those that the limiter has from profiles; nil where it has none.
	profileLimits *kept[profileLimits]
	entries       entries
	requireTenant bool
	closed        atomic.Bool
}

// open begins to hold what the table says of tenants. Drop is called with the tenants whose erasure marks have changed.
func (t *tenancy) open(drop func(func(tenant string) bool), limitsOfProfiles bool) error {
	t.erased = newErasures(t, drop)
	t.classes = newAssigned(t)
	t.entries.of = map[string]*kept[catalog.Entry]{}
	if limitsOfProfiles {
		return t.withProfileLimits()
	}
	return nil
}

// admitOpen refuses calls on a store that is closed.
func (t *tenancy) admitOpen() error {
	if t.closed.Load() {
		return ErrClosed
	}
	return nil
}

// close ends the reads that are under way.
func (t *tenancy) close() {
	t.erased.close()
	t.classes.close()
	if t.profileLimits != nil {
		t.profileLimits.close()
	}
	t.entries.close()
}
