package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

func (r *Repository[T]) inside() (inside.Repository, error) {
	ctx := context.Background()
	if r != nil {
		ctx = tenant.NewContext(ctx, r.rows.Tenant) // each call's own context is judged by the answer's Admit
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
		Dataset:   d.Name,
		Fields:    d.Fields,
		Salts:     d.Salts,
		Arrival:   d.CheckTime,
		Space:     r.rows.Space,
		Precision: d.Precision,
		Whole:     d.OldestUnexpired,
		Admit:     r.admit,
		AdmitEntity: func(path string) error {
			return r.store.core.Erased.AdmitEntity(r.rows.Tenant, d.Name, path)
		},
		Table:   r.rows.View,
		Take:    r.rows.Take,
		Rollups: make([]inside.Rollup, len(d.Rollups)),

		RollupAge:         r.rows.RollupAge,
		ShortestRollupAge: d.ShortestRollupAge(),
	}
	for i := range d.Rollups {
		u := &d.Rollups[i]
		in.Rollups[i] = inside.Rollup{Rollup: u.Rollup, Definition: r.schema.listed[i], Rows: r.rows.Space.Kind(rowkey.RollupKind + u.Name), Families: u.Families, Age: u.Class.Age, Bounded: u.Class.Bounded}
		if u.Kind == catalog.Derived {
			in.Rollups[i].Marks = r.rows.Space.Kind(rowkey.MarkKind + u.Name)
		}
	}
	return in, nil
}

func (r *Repository[T]) asUnlimited(single bool) any {
	if r == nil {
		return r // inside says so
	}
	free := *r
	free.rows.Unlimited = true
	if single && r.rows.View != nil {
		free.rows.View = r.rows.View.SingleCluster()
	}
	return &free
}

func insideDataset(d Dataset) (inside.Dataset, error) {
	if d == nil || d.shape() == nil {
		return inside.Dataset{}, invalid.New(ErrInvalid, "dataset", "zero", "a schema from Define")
	}
	shape := d.shape()
	out := inside.Dataset{Name: shape.Name, Fields: shape.Fields, Salts: shape.Salts, Precision: shape.Precision, Entry: shape.ToCatalog(), Shape: shape}
	for i := range shape.Rollups {
		out.Rollups = append(out.Rollups, shape.Rollups[i].Rollup)
	}
	return out, nil
}
