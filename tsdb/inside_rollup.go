package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

func (r *Repository[T]) inside() (inside.Repository, error) {
	ctx := context.Background()
	if r != nil {
		ctx = tenant.NewContext(ctx, r.tenant) // each call's own context is judged by the answer's Admit
	}
	if err := r.admit(ctx); err != nil {
		return inside.Repository{}, err
	}
	store, err := r.store.inside()
	if err != nil {
		return inside.Repository{}, err
	}
	d := &r.schema.d
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

		RollupAge:         r.rollupAge,
		ShortestRollupAge: d.shortestRollupAge(),
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
	if err := r.schema.d.checkKeys(path); err != nil {
		return err
	}
	if err := r.store.erased.admitEntity(r.tenant, r.schema.d.name, path); err != nil {
		return err
	}
	return r.limits().Write(r.tenant, r.schema.d.name, path, bytes)
}

func (r *Repository[T]) asUnlimited(single bool) any {
	if r == nil {
		return r // inside says so
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

func insideDataset(d Dataset) (inside.Dataset, error) {
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
