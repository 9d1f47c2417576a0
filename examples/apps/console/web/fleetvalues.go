package web

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// fewPoints is how many points of each entity of a fleet are looked at together, and fewLacking from how many
	// entities on.
	fewPoints  = 15
	fewLacking = 64
	// morePoints is how many points of all entities are looked at after that.
	morePoints = 200_000
	// mostPoints is how many points of one entity are looked at.
	mostPoints = 1_000
	// mostSearched is how many entities are looked at one by one.
	mostSearched = 512
)

// lacks reports whether a point lacks a field. A null is no value, unless the dataset says that it is.
func (d *dataset) lacks(fields codec.Record, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		v, ok := fields.Lookup(name)
		return !ok || v.Kind() == codec.KindNull && !d.described.NullClears
	})
}

// valuesOf returns fields by their names. A null is no value, unless the dataset says that it is.
func (d *dataset) valuesOf(names []string, fields codec.Record, most int) []any {
	out := valuesOf(names, fields, most)
	for i, name := range names {
		if v, ok := fields.Lookup(name); ok && v.Kind() == codec.KindNull && d.described.NullClears {
			out[i] = plain{Text: "null"}
		}
	}
	return out
}

// newestValues completes the rows of a fleet with the newest value of each field: those of points that lack one, by
// their indices. Entities whose heads have the fields cost a row each. Others cost at most fewPoints + 1 rows each, and
// morePoints rows in all. Only the first rows of a prefix are read together; others are marked as cut.
func (d *dataset) newestValues(ctx context.Context, repo *tsdb.Repository[codec.Record], prefix tsdb.Prefix, first bool, names []string, rows []row, lacking map[tsdb.Entity]int) error {
	if heads := d.described.Head != nil && d.described.Head.Fields; heads || len(lacking) < fewLacking {
		return d.searchValues(ctx, repo, names, rows, lacking)
	}
	for _, i := range lacking {
		rows[i].cut = true
	}
	if !first {
		return nil
	}
	last := rows[len(rows)-1].Entity
	for f, err := range repo.Under(prefix).LatestFields(ctx, tsdb.FieldOptions{MaxPoints: fewPoints}) {
		if err != nil && !bad(err) {
			return err
		}
		if f.Entity.Compare(last) > 0 {
			break
		}
		if i, ok := lacking[f.Entity]; ok {
			if d.complete(&rows[i], names, &f, maxListed); !rows[i].cut {
				delete(lacking, f.Entity)
			}
		}
	}
	if len(lacking) > mostSearched {
		return nil
	}
	return d.searchValues(ctx, repo, names, rows, lacking)
}

// searchValues reads the fields of each entity by itself.
func (d *dataset) searchValues(ctx context.Context, repo *tsdb.Repository[codec.Record], names []string, rows []row, lacking map[tsdb.Entity]int) error {
	if len(lacking) == 0 {
		return nil
	}
	entities := slices.SortedFunc(maps.Keys(lacking), tsdb.Entity.Compare)
	most := min(mostPoints, max(fewPoints, morePoints/len(lacking)))
	found, err := repo.LatestFieldsMany(ctx, entities, tsdb.FieldOptions{MaxPoints: most})
	if found == nil {
		return err
	}
	for i := range found {
		if err := found[i].Err; err != nil && !bad(err) {
			return err
		}
		d.complete(&rows[lacking[entities[i]]], names, &found[i], maxListed)
	}
	return nil
}

// complete sets the values that were found. The row is cut if there may be others.
func (d *dataset) complete(r *row, names []string, f *tsdb.Fields[codec.Record], most int) {
	all := true
	values, ages := d.valuesOf(names, f.Value, most), make(numbers, len(names))
	other := false
	for i, name := range names {
		ages[i] = math.NaN()
		at, ok := f.Times.Of(name)
		if all = all && ok; !ok {
			continue
		}
		if t := millis(at); t != r.Time {
			ages[i], other = t, true
		}
	}
	r.Values, r.Times, r.value, r.cut = values, ages, f.Value, !all && !f.Back.IsZero()
	if !other {
		r.Times = nil
	}
}
