package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// fitting is a dataset that can have the entity, and the entity's path in it.
type fitting struct {
	dataset string
	entity  tsdb.Entity
	space   rowkey.Space
	path    string
	marked  *dataset.Dataset // nil if no rollup is computed from the points
}

// fitting returns the datasets that have exactly the given key fields.
func (r room) fitting(ctx context.Context, id tenant.ID, dataset string, fields map[string]string) ([]fitting, error) {
	var fit []fitting
	var keys []string // of the requested datasets, for the error
	n := 0
	for e, err := range catalog.Each(ctx, r.Whole) {
		if err != nil {
			return nil, r.Explain(err)
		}
		d := e.Dataset
		if dataset != "" && d.Name != dataset {
			continue
		}
		if n++; n <= shownDatasets {
			keys = append(keys, d.Name+": "+strings.Join(d.Key, ", "))
		}
		if len(d.Key) != len(fields) {
			continue
		}
		if slices.ContainsFunc(d.Key, func(name string) bool { _, ok := fields[name]; return !ok }) {
			continue
		}
		space, kinds, _, err := spaceOf(id, d)
		if err != nil {
			return nil, err
		}
		parts := make([]string, len(d.Key))
		for i, name := range d.Key {
			if parts[i], err = kinds[i].Part(name, fields[name]); err != nil {
				return nil, fmt.Errorf("dataset %s: %w", d.Name, err)
			}
		}
		path := rowkey.Path(parts...)
		if err := space.CheckPath(path); err != nil {
			return nil, err
		}
		f := fitting{dataset: d.Name, entity: tsdb.NewEntity(parts...), space: space, path: path}
		if f.marked, err = markedBy(d); err != nil {
			return nil, err
		}
		fit = append(fit, f)
	}
	if len(fit) == 0 {
		return nil, unfit(ctx, keys, n, dataset, fields)
	}
	return fit, nil
}

// markedBy returns a dataset of the catalogue if rollups are computed from its points, and otherwise nil.
func markedBy(d catalog.Dataset) (*dataset.Dataset, error) {
	if !slices.ContainsFunc(d.Rollups, func(u catalog.Rollup) bool { return u.Kind == catalog.Derived }) {
		return nil, nil
	}
	return dataset.FromCatalog(d)
}

// shownDatasets is how many datasets an error lists.
const shownDatasets = 10

// unfit is the error for fields that are not the key fields of a dataset. For an operator it lists the keys of the
// first of the n datasets. If ctx carries a tenant, it lists none, because the datasets may be other tenants'.
func unfit(ctx context.Context, keys []string, n int, dataset string, fields map[string]string) error {
	given := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	if _, ok := tenant.FromContext(ctx); ok {
		return invalid.New(tsdb.ErrInvalid, "fields", given, "the key fields of a dataset in the catalogue, by name")
	}
	if len(keys) == 0 && dataset != "" {
		return invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(dataset), "a dataset of the catalogue")
	}
	if more := n - len(keys); more > 0 {
		keys = append(keys, fmt.Sprintf("and %d more datasets", more))
	}
	return invalid.New(tsdb.ErrInvalid, "fields", given,
		"the key fields of a dataset, each with a value ("+strings.Join(keys, "; ")+")")
}

// spaceOf returns a tenant's space of a dataset in the catalogue, the kinds of its key fields, and its precision.
func spaceOf(id tenant.ID, d catalog.Dataset) (rowkey.Space, []rowkey.FieldKind, rowkey.Precision, error) {
	space, kinds, precision, err := d.Space(id)
	if err != nil {
		err = fmt.Errorf("tenants: dataset %s of the catalogue: %w", invalid.Quote(d.Name), err)
	}
	return space, kinds, precision, err
}

// hashesOf returns the hashes that identify an entity in its mark; nil for a tenant.
func hashesOf(fit []fitting) (hashes []catalog.EntityHash) {
	for _, f := range fit {
		hashes = append(hashes, catalog.HashEntity(f.dataset, f.path))
	}
	return hashes
}

// mostKinds bounds the reserved kinds of one dataset that are searched for.
const mostKinds = 1000

// kinds returns the spaces of the reserved kinds of which a dataset has rows, with one request each.
func (r room) kinds(ctx context.Context, space rowkey.Space) (kinds []rowkey.Space, err error) {
	rng := space.Starts()[0]
	for range mostKinds {
		key, err := r.first(ctx, rng)
		if err != nil || key == "" {
			return kinds, err
		}
		_, kind, ok := rowkey.KindOf(key)
		reserved, named := space.Reserved(kind)
		if !ok || !named {
			rng = rng.After(key) // of another program
			continue
		}
		kinds = append(kinds, reserved)
		rng.Start = reserved.All().Limit
	}
	return nil, invalid.New(tsdb.ErrInvalid, "kinds", fmt.Sprintf("over %d", mostKinds), "a dataset with fewer kinds of rows")
}
