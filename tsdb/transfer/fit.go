package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tsdb"
)

// fit compares the file's datasets with the catalogue, adds what Create and Extend allow, and opens each dataset's
// points.
func (im *importer) fit(ctx context.Context) error {
	h := im.blocks.header
	for _, name := range im.opts.Datasets {
		if h.dataset(name) == nil {
			return invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(name), "a dataset of the file")
		}
	}
	var names []string
	for _, d := range h.Datasets {
		if im.wanted(d.Name) {
			names = append(names, d.Name)
		}
	}
	st, err := im.load(ctx, names)
	if err != nil {
		return err
	}
	var diffs []string
	var lacking []catalog.Dataset
	into := make([]catalog.Dataset, len(h.Datasets))
	for i, d := range h.Datasets {
		if !im.wanted(d.Name) {
			continue
		}
		e, ok := st.Datasets[d.Name]
		if !ok {
			into[i] = d
			lacking = append(lacking, d)
			if !im.opts.Create {
				diffs = append(diffs, "dataset "+d.Name+": in the file, but not in the catalogue")
			}
			continue
		}
		into[i] = union(e.Dataset, d)
		if !into[i].Same(e.Dataset) {
			lacking = append(lacking, into[i])
			if !im.opts.Extend {
				diffs = append(diffs, additions(d, e.Dataset)...)
			}
		}
		diffs = append(diffs, differences(d, e.Dataset)...)
	}
	if len(diffs) > 0 {
		return &tsdb.ConflictError{Differences: diffs}
	}
	if len(lacking) > 0 && !im.opts.DryRun {
		if err := im.in.Ensure(ctx, lacking); err != nil {
			return err
		}
	}
	im.points = make([]*points.Raw, len(into))
	for i, d := range into {
		if d.Name == "" {
			continue
		}
		if im.points[i], err = im.in.Raw(ctx, d, im.id); err != nil {
			return err
		}
	}
	return nil
}

// load reads the catalogue's entries. With Create, the table may be missing.
func (im *importer) load(ctx context.Context, names []string) (catalog.State, error) {
	st, err := catalog.Load(ctx, im.in.Whole, names)
	if err = im.in.Explain(err); err != nil && im.opts.Create && errors.Is(err, tsdb.ErrNoTable) {
		return catalog.State{}, nil
	}
	if err == nil && st.Format > catalog.FormatVersion {
		return st, &tsdb.ConflictError{Differences: []string{"stored format: the table has a version that this program does not know"}}
	}
	return st, err
}

// additions lists the codec tags and the retention classes that only the file's dataset has.
func additions(file, stored catalog.Dataset) (list []string) {
	for _, tag := range lacks(file.Tags, stored.Tags) {
		list = append(list, fmt.Sprintf("dataset %s: codec tag %s is in the file, but not in the catalogue", stored.Name, tag))
	}
	for _, c := range lackingClasses(file.Classes, stored.Classes) {
		list = append(list, fmt.Sprintf("dataset %s: retention class %s (%s) is in the file, but not in the catalogue", stored.Name, c.Name, c.Policy))
	}
	return list
}

// differences lists why the file's dataset does not fit the store's. Parts that only one of them has do not matter.
func differences(file, stored catalog.Dataset) []string {
	both := union(stored, file)
	wide := file // with the parts that only the store has
	wide.Tags = slices.Concat(file.Tags, lacks(both.Tags, file.Tags))
	wide.Classes = slices.Concat(file.Classes, lackingClasses(both.Classes, file.Classes))
	if len(file.Kinds) == 0 || len(both.Kinds) == 0 {
		wide.Kinds = both.Kinds // the store's kinds check each part; any part is valid text
	}
	wide.Rollups = both.Rollups // each store has its own: a file has only points
	return wide.Differences(both)
}

// union returns the store's dataset, with the tags and classes that only the file's has appended.
func union(stored, file catalog.Dataset) catalog.Dataset {
	stored.Tags = slices.Concat(stored.Tags, lacks(file.Tags, stored.Tags))
	stored.Classes = slices.Concat(stored.Classes, lackingClasses(file.Classes, stored.Classes))
	return stored
}

// lacks returns the elements of all that are not in have.
func lacks(all, have []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(have, s) })
}

// lackingClasses returns the classes of all that are not in have, by name.
func lackingClasses(all, have []catalog.Class) []catalog.Class {
	return slices.DeleteFunc(slices.Clone(all), func(c catalog.Class) bool {
		return slices.ContainsFunc(have, func(h catalog.Class) bool { return h.Name == c.Name })
	})
}
