package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Inside is for the packages of this module that are built on tsdb: no other can make its argument. It does no I/O. Its error
// is why no call on the repository can work.
func (r *Repository[T]) Inside(inside.Key) (inside.Repository, error) {
	ctx := context.Background()
	if r != nil {
		ctx = tenant.NewContext(ctx, r.tenant) // each call's own context is judged by the answer's Admit
	}
	if err := r.admit(ctx); err != nil {
		return inside.Repository{}, err
	}
	store, err := r.store.Inside(inside.Key{})
	if err != nil {
		return inside.Repository{}, err
	}
	d := &r.schema.dataset
	in := inside.Repository{
		Store:     store,
		Dataset:   d.name,
		Fields:    d.fields,
		Salts:     d.salts,
		Arrival:   d.timely,
		Space:     r.space,
		Precision: d.precision,
		Whole:     d.unexpired,
		Admit:     r.admit,
		AdmitEntity: func(path string) error {
			return r.store.erased.admitEntity(r.tenant, d.name, path)
		},
		Table:   r.rows,
		Take:    r.take,
		Rollups: make([]inside.Rollup, len(d.rollups)),
	}
	for i := range d.rollups {
		u := &d.rollups[i]
		in.Rollups[i] = inside.Rollup{Rollup: u.Rollup, Definition: r.schema.listed[i], Rows: r.space.Kind(rowkey.RollupKind + u.Name), Families: u.families, Age: u.class.age, Bounded: u.class.bounded}
		if u.Kind == catalog.Derived {
			in.Rollups[i].Marks = r.space.Kind(rowkey.MarkKind + u.Name)
		}
	}
	return in, nil
}

// take refuses what must not be written of an entity, and counts it against the tenant's limits.
func (r *Repository[T]) take(path string, bytes int) error {
	if err := r.schema.checkKeys(path); err != nil {
		return err
	}
	if err := r.store.erased.admitEntity(r.tenant, r.schema.name, path); err != nil {
		return err
	}
	return r.limits().Write(r.tenant, r.schema.name, path, bytes)
}

// Unlimited returns a repository that its tenant's limits do not hold, for what packages of this module read in the
// background. With single all its calls go through the app profile of conditional writes, for what writes by what it reads.
func (r *Repository[T]) Unlimited(_ inside.Key, single bool) *Repository[T] {
	if r == nil {
		return nil // Inside says so
	}
	free := *r
	free.unlimited = true
	if single && r.rows != nil {
		free.rows = r.rows.SingleCluster()
	}
	return &free
}

// unexpired returns the oldest time from which on no point has expired in any class.
func (d *dataset) unexpired(now time.Time) int64 {
	h := d.horizon(now)
	cutoff := int64(0)
	for i := range d.classes {
		if d.classes[i].bounded {
			cutoff = max(cutoff, int64(h.cutoff(i)))
		}
	}
	return cutoff / 1000
}

// Described returns what a schema says of its dataset, for the packages of this module: no other can make its first argument.
func Described(_ inside.Key, d Dataset) (inside.Dataset, error) {
	if d == nil || d.shape() == nil {
		return inside.Dataset{}, invalid.New(ErrInvalid, "dataset", "zero", "a schema from Define")
	}
	shape := d.shape()
	out := inside.Dataset{Name: shape.name, Fields: shape.fields, Salts: shape.salts, Precision: shape.precision, Entry: shape.entry()}
	for i := range shape.rollups {
		out.Rollups = append(out.Rollups, shape.rollups[i].Rollup)
	}
	return out, nil
}

// EntityAt returns the entity at a path of package rowkey, for the packages of this module. Its inverse is Entity.String.
func EntityAt(_ inside.Key, path string) Entity { return Entity{path: path} }

// IntervalMillis returns the first and last whole millisecond in an interval, and false where there is none, for the packages
// of this module.
func IntervalMillis(_ inside.Key, in Interval) (oldest, newest int64, ok bool) {
	return in.units(rowkey.Milliseconds)
}

// Begin is for the packages of this module that are built on tsdb: it begins an operation on the repository's rows, of n events
// where it is batched.
func (r *Repository[T]) Begin(ctx context.Context, _ inside.Key, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
	return r.beginMany(ctx, name, n, batched)
}
