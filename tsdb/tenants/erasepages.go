package tenants

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
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
		space, kinds, err := spaceOf(id, d)
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

// spaceOf returns a tenant's space of a dataset in the catalogue, and the kinds of its key fields.
func spaceOf(id tenant.ID, d catalog.Dataset) (rowkey.Space, []rowkey.FieldKind, error) {
	kinds, err := d.FieldKinds()
	_, identity, unknown := rowkey.ParseTimeName(d.Precision)
	if err := cmp.Or(rowkey.CheckDataset(d.Name), rowkey.CheckFields(d.Key, d.Salts), err, unknown); err != nil {
		return rowkey.Space{}, nil, fmt.Errorf("tenants: dataset %s of the catalogue: %w", invalid.Quote(d.Name), err)
	}
	space, err := rowkey.NewSpace(id, d.Name, d.Key, d.Salts)
	return space.WithIdentity(identity), kinds, err
}

// hashes returns the hashes that identify the entity in its mark; nil for a tenant.
func (e *erasure) hashes() []catalog.EntityHash { return hashesOf(e.fit) }

func hashesOf(fit []fitting) (hashes []catalog.EntityHash) {
	for _, f := range fit {
		hashes = append(hashes, catalog.HashEntity(f.dataset, f.path))
	}
	return hashes
}

// ranges returns the ranges to erase, in order.
func (e *erasure) ranges(ctx context.Context) ([]rowkey.Range, error) {
	if e.fit == nil {
		return []rowkey.Range{e.all}, nil
	}
	var ranges []rowkey.Range
	for _, f := range e.fit {
		ranges = append(ranges, f.space.Whole(f.path))
		kinds, err := e.kinds(ctx, f.space)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			ranges = append(ranges, k.Whole(f.path))
		}
		ranges = append(ranges, f.marks()...)
	}
	slices.SortFunc(ranges, func(a, b rowkey.Range) int { return strings.Compare(a.Start, b.Start) })
	return slices.Compact(ranges), nil
}

// marks returns the ranges of the entity's marks. The erasure itself writes some.
func (f *fitting) marks() (ranges []rowkey.Range) {
	if f.marked == nil {
		return nil
	}
	for i := range f.marked.Rollups {
		if kind := f.marked.Rollups[i].Mark; kind != "" {
			ranges = append(ranges, f.space.Kind(kind).Whole(f.path))
		}
	}
	return ranges
}

// inOrder returns the ranges in the order in which they are deleted: stored buckets after points, whose deletion marks the buckets, and
// marks last.
func inOrder(ranges []rowkey.Range) []rowkey.Range {
	turn := func(r rowkey.Range) int {
		switch _, kind, _ := rowkey.KindOf(r.Start); {
		case strings.HasPrefix(kind, rowkey.MarkKind):
			return 2
		case strings.HasPrefix(kind, rowkey.RollupKind):
			return 1
		}
		return 0
	}
	ranges = slices.Clone(ranges)
	slices.SortStableFunc(ranges, func(a, b rowkey.Range) int { return turn(a) - turn(b) })
	return ranges
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

// rest returns the rest of sorted ranges from the key next on.
func rest(ranges []rowkey.Range, next []byte) iter.Seq[rowkey.Range] {
	return func(yield func(rowkey.Range) bool) {
		for _, rng := range ranges {
			rng.Start = max(rng.Start, string(next))
			if !rng.Empty() && !yield(rng) {
				return
			}
		}
	}
}

// after returns the rest of a range after a page of its keys.
func after(rng rowkey.Range, page []string, full int) rowkey.Range {
	if len(page) < full {
		return rowkey.Range{Start: rng.Limit, Limit: rng.Limit}
	}
	return rng.After(page[len(page)-1])
}

// page reads the first keys in a range.
func (r room) page(ctx context.Context, rng rowkey.Range, most int64) (keys []string, err error) {
	err = r.rows(ctx, rng, keysOnly(), most, func(row *bt.Row) { keys = append(keys, row.Key()) })
	return keys, err
}

// deletePage deletes the first rows in a range, and returns their keys. It saves the record before it deletes, so
// that a call that was taken over deletes nothing: the tenant may have been readmitted since.
func (e *erasure) deletePage(ctx context.Context, rng rowkey.Range) (keys []string, deleted int, err error) {
	if keys, err = e.page(ctx, rng, int64(e.opts.deletePage)); err != nil || len(keys) == 0 {
		return keys, 0, err
	}
	if err := e.save(ctx, &e.mark, nil); err != nil {
		return keys, 0, err
	}
	if err := e.markBuckets(ctx, keys); err != nil {
		return keys, 0, err
	}
	deleted, err = e.deleteKeys(ctx, keys)
	return keys, deleted, err
}

// markBuckets marks the buckets of points that are about to be deleted. Until the erasure ends, and if it never does, rollups then
// agree with the points that are left. No worker takes the marks of an erased entity.
func (e *erasure) markBuckets(ctx context.Context, keys []string) error {
	for i := range e.fit {
		if f := &e.fit[i]; f.marked != nil {
			if _, err := e.applyAll(ctx, points.MarksOf(f.marked, f.space, keys, e.Clock)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteKeys deletes all rows of a page.
func (r room) deleteKeys(ctx context.Context, keys []string) (deleted int, err error) {
	entries := make([]bt.Entry, len(keys))
	for i, key := range keys {
		m := bigtable.NewMutation()
		m.DeleteRow()
		entries[i] = bt.Entry{Key: key, Mutation: m, Mutations: 1}
	}
	return r.applyAll(ctx, entries)
}

// applyAll applies the entries of a page, and retries while some of them succeed.
func (r room) applyAll(ctx context.Context, entries []bt.Entry) (applied int, err error) {
	for len(entries) > 0 {
		var failed []bt.Entry
		for i, out := range r.Whole.Bulk(ctx, entries) {
			if out.State == bt.Stored {
				applied++
				continue
			}
			failed = append(failed, entries[i])
			err = out.Err
		}
		switch {
		case len(failed) == 0:
			return applied, nil
		case len(failed) == len(entries):
			return applied, fmt.Errorf("%w: %w", errNoneApplied, r.Explain(err))
		}
		entries = failed
	}
	return applied, nil
}

// count counts a row.
func (rec *record) count(key string) {
	dataset, kind, _ := rowkey.KindOf(key)
	rec.Rows++
	i, found := rec.kind(dataset, kind)
	if !found && len(rec.Kinds) >= mostKinds { // of another program
		dataset, kind = "", ""
		i, found = rec.kind(dataset, kind)
	}
	if !found {
		rec.Kinds = slices.Insert(rec.Kinds, i, Counted{Dataset: dataset, Kind: kind})
	}
	rec.Kinds[i].Rows++
}

func (rec *record) kind(dataset, kind string) (int, bool) {
	return slices.BinarySearchFunc(rec.Kinds, Counted{Dataset: dataset, Kind: kind}, func(a, b Counted) int {
		return cmp.Or(strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Kind, b.Kind))
	})
}

// dropLetters drops the dead letters of erased data.
func (e *erasure) dropLetters(ctx context.Context, w *tsdb.Writer) (n int, err error) {
	const most = 1000
	var ids []uint64
	drop := func() error {
		dropped, err := w.DropDeadLetters(ctx, ids...)
		n, ids = n+dropped, ids[:0]
		return err
	}
	for l, err := range w.DeadLetters(ctx) {
		if err != nil {
			return n, err
		}
		if l.Tenant == e.id && (e.fit == nil || e.fits(l)) {
			ids = append(ids, l.ID)
		}
		if len(ids) == most {
			if err := drop(); err != nil {
				return n, err
			}
		}
	}
	return n, drop()
}

func (e *erasure) fits(l tsdb.DeadLetter) bool {
	return slices.ContainsFunc(e.fit, func(f fitting) bool { return f.dataset == l.Dataset && f.entity == l.Entity })
}
