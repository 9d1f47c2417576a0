package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Repository reads and writes the points of one schema for one tenant in one store. It cannot read or write another
// tenant's rows: it builds keys from its own tenant, and checks each returned row before it decodes it. Every call
// fails with ErrTenantMismatch if the context carries another tenant (tenant.NewContext), and with ErrNoTenant if the
// context carries none and the store requires one.
//
// Schema.For makes one. It holds no resources, so make one per request. It is safe for concurrent use. Calls on the
// zero Repository or nil fail with ErrInvalid.
//
// To fake it in tests, declare an interface with the methods that your code calls. Your code can construct all of their
// arguments and results.
type Repository[T any] struct {
	repositoryGate[T]

	access
	schema *Schema[T]
}

// access is all of a repository that does not depend on the type of its values. The compiler compiles its methods once,
// and those of a generic type for each type argument.
type access struct {
	rows  points.Rows
	store *Store
	err   error  // returned by every call
	id    string // of WithID
}

// part returns the repository's access. It is nil for a nil repository; each call on it fails.
func (r *Repository[T]) part() *access {
	if r == nil {
		return nil
	}
	return &r.access
}

// Tenant returns the repository's tenant.
func (r *Repository[T]) Tenant() tenant.ID {
	if r == nil {
		return tenant.ID{}
	}
	return r.rows.Tenant
}

// Schema returns the repository's schema.
func (r *Repository[T]) Schema() *Schema[T] {
	if r == nil {
		return nil
	}
	return r.schema
}

// Store returns the repository's store.
func (r *Repository[T]) Store() *Store {
	if r == nil {
		return nil
	}
	return r.store
}

// admit returns an error if the call must not run.
func (a *access) admit(ctx context.Context) error {
	if err := a.allowed(ctx); err != nil {
		return err
	}
	if err := a.store.core.Erased.Admit(ctx, a.rows.Tenant); err != nil {
		return err
	}
	return a.store.core.Erased.AdmitDataset(a.rows.D.Name)
}

// allowed is admit without the check for erasures.
func (a *access) allowed(ctx context.Context) error {
	switch {
	case a == nil || a.err == nil && a.rows.D == nil:
		return invalid.New(ErrInvalid, "repository", "the zero value", "a repository from Schema.For")
	case a.err != nil:
		return a.err
	}
	if err := a.store.admit(); err != nil {
		return err
	}
	if err := a.store.core.AdmitTenant(ctx, a.rows.Tenant); err != nil {
		return err
	}
	return a.rows.KnowLimits(ctx)
}

// admitEntity is admit for a call on one entity.
func (a *access) admitEntity(ctx context.Context, e Entity) error {
	if err := a.admit(ctx); err != nil {
		return err
	}
	return a.rows.Space.CheckPath(e.path)
}

// admitPrefix is admit for a call on the entities below a prefix.
func (a *access) admitPrefix(ctx context.Context, p Prefix) error {
	if err := a.admit(ctx); err != nil {
		return err
	}
	if p.path == "" && !p.all {
		return invalid.New(ErrInvalid, "prefix", "empty", "at least one part, or AllEntities")
	}
	return a.rows.Space.CheckPrefix(p.path)
}

// WithID returns a repository for the points with this ID, in a schema with Identity. The ID applies to Put,
// PutIfAbsent, Get and Delete, and to Enqueue, TryEnqueue and EnqueueFunc of its sinks (Via). In a schema with Identity
// these calls fail with ErrInvalid without an ID; in any other schema they fail with one. All other calls ignore it:
// they read points of any ID, and PutMany and EnqueueMany use Point.ID. WithID does no I/O; the call that uses an
// invalid ID reports it.
func (r *Repository[T]) WithID(id string) *Repository[T] {
	if r == nil {
		return nil // each call reports it
	}
	one := *r
	one.id = id
	return &one
}

func (a *access) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	return a.beginMany(ctx, name, 0, false)
}

func (a *access) beginMany(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
	if a == nil || a.store == nil || a.store.core == nil || a.rows.D == nil {
		return ctxerr.Given(ctx), nil
	}
	return a.store.core.Watch.Begin(ctx, name, telemetry.Subject{Tenant: a.rows.Tenant.String(), Dataset: a.rows.D.Name, Batch: n, Batched: batched})
}
