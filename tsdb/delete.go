package tsdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// deletePage is how many rows are read and then deleted at once.
const deletePage = 5000

// Delete deletes the point of an entity at exactly that time, cut off to the schema's precision. Deleting a point that is
// not there is no error, so a Delete may be repeated. Errors are a *WriteError, as for Put. It costs one request.
func (r *Repository[T]) Delete(ctx context.Context, e Entity, t time.Time) error {
	if err := r.admitEntity(ctx, e); err != nil {
		return rejected(err).err()
	}
	units, err := r.schema.precision.Units(t)
	if err != nil {
		return rejected(err).err()
	}
	return fromBT(r.store.table.Apply(ctx, r.key(e, units), deletion())).err()
}

// DeleteRange deletes the points of an entity in an interval, expired ones too, and returns how many. Points written while
// it runs may stay.
//
// It reads the keys and deletes them page by page (two requests for 5,000 points), so its cost grows with the points. An
// error leaves the pages before it deleted; the count says how many. Rows that could not be deleted are in a *BatchError.
// It may be repeated.
func (r *Repository[T]) DeleteRange(ctx context.Context, e Entity, in Interval) (deleted int, err error) {
	if err := r.admitEntity(ctx, e); err != nil {
		return 0, err
	}
	oldest, newest, ok := in.units(r.schema.precision)
	if !ok {
		return 0, nil
	}
	return r.deleteRows(ctx, r.space.Entity(e.path, oldest, newest))
}

// DeleteEntity deletes all points of an entity in this dataset. It is DeleteRange over all of time.
func (r *Repository[T]) DeleteEntity(ctx context.Context, e Entity) (deleted int, err error) {
	return r.DeleteRange(ctx, e, AllTime())
}

// DeletePrefix deletes all points of every entity below a prefix, or of the tenant's whole dataset for AllEntities. Costs
// and errors are those of DeleteRange.
func (r *Repository[T]) DeletePrefix(ctx context.Context, p Prefix) (deleted int, err error) {
	if err := r.admit(ctx); err != nil {
		return 0, err
	}
	if p.path == "" && !p.all {
		return 0, invalid.New(ErrInvalid, "prefix", "empty", "at least one part, or AllEntities")
	}
	if err := r.space.CheckPrefix(p.path); err != nil {
		return 0, err
	}
	for _, rng := range r.space.Under(p.path) {
		n, err := r.deleteRows(ctx, rng)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

func deletion() *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteRow()
	return m
}

// keysOnly passes one cell of each row, without its value.
func keysOnly() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
}

// deleteRows deletes the rows of rng that are points of this repository's space, and no other.
func (r *Repository[T]) deleteRows(ctx context.Context, rng rowkey.Range) (deleted int, err error) {
	for !rng.Empty() {
		var entries []bt.Entry
		returned, last := 0, ""
		page := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: keysOnly(), Limit: deletePage, Long: true}
		for row, err := range r.store.table.Rows(ctx, page) {
			if err != nil {
				return deleted, err
			}
			last = row.Key()
			returned++
			if !strings.HasPrefix(last, r.space.TenantPrefix()) {
				return deleted, fmt.Errorf("%w: dataset %s", ErrForeignRow, r.schema.name)
			}
			if _, _, ok := r.space.Split(last); ok {
				entries = append(entries, bt.Entry{Key: last, Mutation: deletion(), Mutations: 1})
			}
		}
		outcomes := make([]Outcome, len(entries))
		for i, out := range r.store.table.Bulk(ctx, entries) {
			outcomes[i] = fromBT(out)
			if out.State == bt.Stored {
				deleted++
			}
		}
		if err := batchError(outcomes); err != nil {
			return deleted, err
		}
		if returned < deletePage {
			return deleted, nil
		}
		rng = rng.After(last)
	}
	return deleted, nil
}
