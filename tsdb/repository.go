package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant"
)

// Repository reads and writes the points of one schema for one tenant in one store. No call on it can touch another
// tenant's rows: it makes its keys from its own tenant, and checks each row that comes back before it decodes it. Where the
// context carries a tenant (tenant.NewContext) other than the repository's, every call fails with ErrTenantMismatch, and
// where it carries none and the store requires one, with ErrNoTenant.
//
// Schema.For makes one. It holds no resources, is safe for concurrent use, and may be made anew for each request.
//
// To fake a repository in tests, declare an interface with the methods that your code calls: all that they take and
// return can be made by you.
type Repository[T any] struct {
	rows   points.Rows
	schema *Schema[T]
	store  *Store
	err    error  // why no call can work
	id     string // of the points that calls are about, in a schema with Identity
}

// Tenant returns the tenant that the repository is bound to.
func (r *Repository[T]) Tenant() tenant.ID {
	if r == nil {
		return tenant.ID{}
	}
	return r.rows.Tenant
}

// Schema returns the schema of the repository.
func (r *Repository[T]) Schema() *Schema[T] {
	if r == nil {
		return nil
	}
	return r.schema
}

// Store returns the store of the repository.
func (r *Repository[T]) Store() *Store {
	if r == nil {
		return nil
	}
	return r.store
}

// admit refuses a call that cannot or must not be made.
func (r *Repository[T]) admit(ctx context.Context) error {
	if err := r.allowed(ctx); err != nil {
		return err
	}
	if err := r.store.core.Erased.Admit(ctx, r.rows.Tenant); err != nil {
		return err
	}
	return r.store.core.Erased.AdmitDataset(r.schema.d.Name)
}

// allowed is admit for a call whose tenant may be erased.
func (r *Repository[T]) allowed(ctx context.Context) error {
	switch {
	case r == nil || r.schema == nil:
		return invalid.New(ErrInvalid, "repository", "zero", "one from Schema.For")
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

// WithID returns the repository for the points with that ID, in a schema with Identity: Put, PutIfAbsent, Get and Delete, and Enqueue, TryEnqueue
// and EnqueueFunc of the Sink that its Via returns, are about the point of an entity and a time which has it. Without it they are
// refused with ErrInvalid, and so is any ID in a schema without Identity. All other calls are about points whatever their IDs:
// PutMany takes them from its points. It does no I/O and cannot fail: an ID that is not allowed is reported by the call that uses it.
func (r *Repository[T]) WithID(id string) *Repository[T] {
	if r == nil {
		return nil // each call says so
	}
	one := *r
	one.id = id
	return &one
}
