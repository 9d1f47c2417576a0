package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// AddsKinds reports whether a program declares kinds of key fields and the catalogue has only text.
func AddsKinds(declared, stored catalog.Dataset) bool {
	return len(declared.Kinds) > 0 && len(stored.Kinds) == 0 && slices.Equal(declared.Key, stored.Key)
}

// NextEntity returns the first key after a row that can belong to another entity of the dataset, and why the row's own
// entity is invalid, if it is.
func (d *Dataset) NextEntity(key string) (next string, bad error) {
	next = key + "\x00"
	id, ok := rowkey.TenantOf(key)
	if !ok {
		return next, nil
	}
	space, err := d.Space(id)
	if err != nil {
		return next, err
	}
	for _, part := range space.Starts() {
		switch {
		case key < part.Start:
			return part.Start, nil
		case key >= part.Limit:
			continue
		}
		if _, kind, ok := rowkey.KindOf(key); ok && kind != "" {
			space, _ = space.Reserved(kind)
		}
		path, _, ok := space.Split(key)
		if !ok {
			if path, ok = space.SplitEntity(key); !ok {
				return next, nil
			}
		}
		if err := space.CheckPath(path); err != nil {
			return next, fmt.Errorf("tenant %s: %w", id, err)
		}
		return space.Whole(path).Limit, nil
	}
	return rowkey.TenantsAfter(id).Start, nil
}

// Parts returns the key parts of values for the first key fields.
func (d *Dataset) Parts(values []any) ([]string, error) {
	parts := make([]string, len(values))
	for i, v := range values {
		var err error
		if parts[i], err = d.Kinds[i].Part(d.Fields[i], v); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// CheckCount refuses a number of values other than one for each key field.
func (d *Dataset) CheckCount(n int, what string) error {
	if n != len(d.Fields) {
		return invalid.New(ErrInvalid, "entity", fmt.Sprintf("%d %s", n, what),
			fmt.Sprintf("exactly %d, one for each key field (%s)", len(d.Fields), strings.Join(d.Fields, ", ")))
	}
	return nil
}

// EntryKinds returns the kinds in the catalogue's form.
func (d *Dataset) EntryKinds() []string {
	if !slices.ContainsFunc(d.Kinds, func(k rowkey.FieldKind) bool { return k != rowkey.FieldKind{} }) {
		return nil
	}
	out := make([]string, len(d.Kinds))
	for i, k := range d.Kinds {
		out[i] = k.String()
	}
	return out
}
