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

	rows   points.Rows
	schema *Schema[T]
	store  *Store
	err    error  // returned by every call
	id     string // of WithID
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
func (r *Repository[T]) admit(ctx context.Context) error {
	if err := r.allowed(ctx); err != nil {
		return err
	}
	if err := r.store.core.Erased.Admit(ctx, r.rows.Tenant); err != nil {
		return err
	}
	return r.store.core.Erased.AdmitDataset(r.schema.d.Name)
}

// allowed is admit without the check for erasures.
func (r *Repository[T]) allowed(ctx context.Context) error {
	switch {
	case r == nil || r.schema == nil:
		return invalid.New(ErrInvalid, "repository", "the zero value", "a repository from Schema.For")
	case r.err != nil:
		return r.err
	}
	if err := r.store.admit(); err != nil {
		return err
	}
	if err := r.store.core.AdmitTenant(ctx, r.rows.Tenant); err != nil {
		return err
	}
	return r.rows.KnowLimits(ctx)
}

// admitEntity is admit for a call on one entity.
func (r *Repository[T]) admitEntity(ctx context.Context, e Entity) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	return r.rows.Space.CheckPath(e.path)
}

// admitPrefix is admit for a call on the entities below a prefix.
func (r *Repository[T]) admitPrefix(ctx context.Context, p Prefix) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	if p.path == "" && !p.all {
		return invalid.New(ErrInvalid, "prefix", "empty", "at least one part, or AllEntities")
	}
	return r.rows.Space.CheckPrefix(p.path)
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

func (r *Repository[T]) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	return r.beginMany(ctx, name, 0, false)
}

func (r *Repository[T]) beginMany(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
	if r == nil || r.store == nil || r.store.core == nil || r.schema == nil {
		return ctxerr.Given(ctx), nil
	}
	return r.store.core.Watch.Begin(ctx, name, telemetry.Subject{Tenant: r.rows.Tenant.String(), Dataset: r.schema.d.Name, Batch: n, Batched: batched})
}
