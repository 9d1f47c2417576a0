// Package tenancy holds what a table stores about its tenants: erasure marks, class assignments, limits in profiles,
// and authorized views. It decides whether a call is allowed, and returns the rows that the call may touch.
package tenancy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// Tenancy is a store's knowledge of the tenants of its table, and the rules for their calls. It is safe for concurrent
// use.
type Tenancy struct {
	Whole   *bt.Table // without views: for the store's own rows. Rows returns a tenant's
	Name    string    // of the table
	Clock   func() time.Time
	Time    *clock.Watch // over clock
	Service *ServiceClock
	Watch   *telemetry.Probe
	Views   *Views         // nil for none
	Limits  *limit.Limiter // nil for none
	Erased  *Erasures
	Classes *refresh.Value[Classes]
	// ProfileLimits are the limits that the limiter has from profiles; nil for none.
	ProfileLimits *refresh.Value[profileLimits]
	entries       entries
	RequireTenant bool
	// Alone reports whether no other store can hold anything that it has read from the table, and none has it open now.
	// Nil is no. Package embedded sets it before it hands out the store.
	Alone func() bool
	// OnlyFirst says that reads can ask for only the first row of each range. Package embedded sets it like Alone.
	OnlyFirst bool

	Closed atomic.Bool
}

// AdmitTenant refuses a call for a tenant that is not the context's.
func (s *Tenancy) AdmitTenant(ctx context.Context, id tenant.ID) error {
	have, ok := tenant.FromContext(ctx)
	switch {
	case ok && have != id:
		return fmt.Errorf("%w: %s, the repository is of %s", ErrTenantMismatch, invalid.Quote(have.String()), id)
	case !ok && s.RequireTenant:
		return fmt.Errorf("%w, and the store requires one", ErrNoTenant)
	}
	return nil
}

// Admit refuses a call for a tenant that is not the context's, or is erased.
func (s *Tenancy) Admit(ctx context.Context, id tenant.ID) error {
	if err := s.AdmitTenant(ctx, id); err != nil {
		return err
	}
	return s.Erased.Admit(ctx, id)
}

// Rows returns the table as a tenant may see it: through the tenant's view if the store uses views. All reads and
// writes of a tenant's rows use it.
func (s *Tenancy) Rows(id tenant.ID) *bt.Table {
	switch {
	case s.Views != nil && !id.IsZero():
		return s.Views.of(id)
	}
	return s.Whole
}

// Explain adds the table to an error of the service, and names what is missing.
func (s *Tenancy) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dataset.ErrExists):
		return err
	case s.Views != nil && noView(err):
		return fmt.Errorf("%w: table %s: %w", ErrNoView, s.Name, err)
	case s.Views != nil && status.Code(err) == codes.PermissionDenied:
		return fmt.Errorf("tsdb: table %s, or an authorized view that must cover the families of the schema (EnsureView adds them): %w", s.Name, err)
	case status.Code(err) == codes.NotFound:
		return fmt.Errorf("%w: table %s: %w", ErrNoTable, s.Name, err)
	}
	return fmt.Errorf("tsdb: table %s: %w", s.Name, err)
}

// Open starts the caches of the table's data about tenants; it reads nothing yet. drop is called with the tenants whose
// erasure marks have changed.
func (t *Tenancy) Open(drop func(func(tenant string) bool), limitsOfProfiles bool) error {
	t.Service = &ServiceClock{table: t, asking: make(chan struct{}, 1)}
	t.Erased = newErasures(t, drop)
	t.Classes = newAssigned(t)
	t.entries.of = map[string]*refresh.Value[catalog.Entry]{}
	if limitsOfProfiles {
		return t.withProfileLimits()
	}
	return nil
}

// AdmitOpen refuses calls on a store that is closed.
func (t *Tenancy) AdmitOpen() error {
	if t.Closed.Load() {
		return bt.ErrClosed
	}
	return nil
}

// Close cancels running reads and waits for them.
func (t *Tenancy) Close() {
	t.Erased.Close()
	t.Classes.Close()
	if t.ProfileLimits != nil {
		t.ProfileLimits.Close()
	}
	t.entries.close()
}

// KnowLimits refuses a call for a tenant whose limits are not known.
func (s *Tenancy) KnowLimits(ctx context.Context, id tenant.ID) error {
	if s.ProfileLimits == nil {
		return nil
	}
	p := s.ProfileLimits.Fresh()
	if p == nil {
		ctx, cancel := s.Whole.Bound(ctx, false)
		defer cancel()
		var err error
		if p, err = s.ProfileLimits.Get(ctx); err != nil {
			return fmt.Errorf("tsdb: read the limits of tenants: %w", err)
		}
	}
	if err := p.Refused[id.String()]; err != nil {
		return fmt.Errorf("tsdb: the limits in the profile of tenant %s: %w", id, err)
	}
	return nil
}
