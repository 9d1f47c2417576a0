package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Retired names the retired parts of a dataset. A part that is also among the dataset's tags, classes or rollups may be
// declared or not, so programs that no longer declare it can run next to those that still do. A part that is no longer
// among them was removed, and no program can declare it until it is released.
type Retired struct {
	Classes []string `json:"classes,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Rollups []string `json:"rollups,omitempty"`
}

// Part is a retention class, a codec tag or a rollup of a dataset. One of the names is set.
type Part struct{ Class, Tag, Rollup string }

// String returns the part's name for messages.
func (p Part) String() string {
	switch {
	case p.Class != "":
		return "retention class " + p.Class
	case p.Tag != "":
		return "codec tag " + p.Tag
	}
	return "rollup " + p.Rollup
}

// list returns the list that a part belongs to, and its name there.
func (r *Retired) list(p Part) (*[]string, string) {
	switch {
	case p.Class != "":
		return &r.Classes, p.Class
	case p.Tag != "":
		return &r.Tags, p.Tag
	}
	return &r.Rollups, p.Rollup
}

func (r *Retired) has(p Part) bool {
	if r == nil {
		return false
	}
	list, name := r.list(p)
	return slices.Contains(*list, name)
}

// Has reports whether the dataset has a part.
func (d *Dataset) Has(p Part) bool {
	return slices.Contains(d.parts(), p)
}

// parts returns the dataset's parts.
func (d *Dataset) parts() (all []Part) {
	for _, name := range d.Tags {
		all = append(all, Part{Tag: name})
	}
	for _, c := range d.Classes {
		all = append(all, Part{Class: c.Name})
	}
	for _, r := range d.Rollups {
		all = append(all, Part{Rollup: r.Name})
	}
	return all
}

// only lists the parts that d has and o lacks. what says what they are.
func (d *Dataset) only(o Dataset, what string) (diffs []string) {
	for _, p := range d.parts() {
		if !o.Has(p) {
			diffs = append(diffs, fmt.Sprintf("dataset %s: %s is %s", d.Name, p, what))
		}
	}
	return diffs
}

// IsRetired reports whether a part is retired.
func (d *Dataset) IsRetired(p Part) bool { return d.Retired.has(p) }

// SetRetired retires a part, or makes it current again.
func (d *Dataset) SetRetired(p Part, retired bool) {
	r := &Retired{}
	if d.Retired != nil {
		r = &Retired{slices.Clone(d.Retired.Classes), slices.Clone(d.Retired.Tags), slices.Clone(d.Retired.Rollups)}
	}
	list, name := r.list(p)
	*list = slices.DeleteFunc(*list, func(s string) bool { return s == name })
	if retired {
		*list = append(*list, name)
	}
	d.Retired = r
}

// Remove removes a part from the dataset.
func (d *Dataset) Remove(p Part) {
	*d = d.without(func(q Part) bool { return q == p })
	d.RollupAges = maps.Clone(d.RollupAges)
	if delete(d.RollupAges, p.Class); len(d.Rollups) == 0 {
		d.RollupAges = nil
	}
}

// without returns d without some of its parts.
func (d Dataset) without(gone func(Part) bool) Dataset {
	d.Classes = slices.DeleteFunc(slices.Clone(d.Classes), func(c Class) bool { return gone(Part{Class: c.Name}) })
	d.Tags = slices.DeleteFunc(slices.Clone(d.Tags), func(tag string) bool { return gone(Part{Tag: tag}) })
	d.Rollups = slices.DeleteFunc(slices.Clone(d.Rollups), func(r Rollup) bool { return gone(Part{Rollup: r.Name}) })
	return d
}

// withoutRetired returns d without the parts that are retired in it and missing in o.
func (d Dataset) withoutRetired(o Dataset) Dataset {
	return d.without(func(p Part) bool { return d.Retired.has(p) && !o.Has(p) })
}

// WithRetired returns d with the parts that are retired in stored and missing in d, after the others.
func (d Dataset) WithRetired(stored Dataset) Dataset {
	missing := stored.without(func(p Part) bool { return !stored.Retired.has(p) || d.Has(p) })
	for _, c := range missing.Classes {
		if age, ok := stored.RollupAges[c.Name]; ok && len(d.Rollups) > 0 {
			d.RollupAges = maps.Clone(d.RollupAges)
			if d.RollupAges == nil {
				d.RollupAges = map[string]string{}
			}
			d.RollupAges[c.Name] = age
		}
	}
	d.Classes = append(slices.Clone(d.Classes), missing.Classes...)
	d.Tags = append(slices.Clone(d.Tags), missing.Tags...)
	d.Rollups = append(slices.Clone(d.Rollups), missing.Rollups...)
	return d
}

// removed lists the parts that d has and that were removed from o.
func (d *Dataset) removed(o Dataset) (diffs []string) {
	for _, p := range d.parts() {
		if o.Retired.has(p) && !o.Has(p) {
			diffs = append(diffs, fmt.Sprintf("dataset %s: %s is declared, and was removed (tenants.Release lets its name be used again)", d.Name, p))
		}
	}
	return diffs
}

// Rewrite stores the entry of a dataset after a change of its parts, if the catalogue still holds old. It keeps members
// that this version does not know. It returns false, and changes nothing, if another process changed the entry first.
func Rewrite(ctx context.Context, t *bt.Table, d Dataset, old Entry) (bool, error) {
	doc, err := d.document(old.document)
	if err != nil {
		return false, err
	}
	return write(ctx, t, old, d.Name, doc, tenant.ID{})
}

// DeleteEntry deletes the entry of a dataset if the catalogue still holds it.
func DeleteEntry(ctx context.Context, t *bt.Table, e Entry) error {
	if e.generation == 0 {
		return nil
	}
	_, err := deleteRow(ctx, t, rowkey.DatasetRows+e.Name, e.generation)
	return err
}
