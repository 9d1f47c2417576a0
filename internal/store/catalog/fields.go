package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/fields"
)

// leaves returns the fields of payloads that the head's fields are taken from.
func (d *Dataset) leaves() []fields.Leaf {
	if d.Head == nil || d.Head.Shape == nil {
		return nil
	}
	return d.Head.Shape.Leaves
}

// FieldPaths returns the paths of all fields that points in heads may have, of any program.
func (d *Dataset) FieldPaths() (out []string) {
	for _, l := range d.leaves() {
		out = append(out, l.Path)
	}
	if d.Head != nil {
		out = append(out, d.Head.Former...)
	}
	return out
}

// missingFields lists the fields of payloads that d declares and o lacks.
func (d *Dataset) missingFields(o *Dataset) (diffs []string) {
	for _, l := range d.leaves() {
		if !slices.ContainsFunc(o.leaves(), func(s fields.Leaf) bool { return s.Path == l.Path }) {
			diffs = append(diffs, fmt.Sprintf("dataset %s: field %s of heads declared, but not stored (Ensure adds it)", d.Name, l.Name))
		}
	}
	return diffs
}

// withFields returns d with the fields that the stored o has too: programs with other types may write them.
func (d Dataset) withFields(o Dataset) Dataset {
	if d.Head == nil || d.Head.Shape == nil || o.Head == nil {
		return d
	}
	head := *d.Head
	leaves, former := slices.Clone(head.Shape.Leaves), slices.Clone(head.Former)
	for _, s := range o.leaves() {
		if !slices.ContainsFunc(leaves, func(l fields.Leaf) bool { return overlap(l.Path, s.Path) }) {
			leaves = append(leaves, s)
		}
	}
	if len(leaves) <= fields.MaxLeaves {
		head.Shape = fields.OfLeaves(leaves)
	}
	for _, path := range o.FieldPaths() {
		if !slices.ContainsFunc(head.Shape.Leaves, func(l fields.Leaf) bool { return l.Path == path }) && !slices.Contains(former, path) {
			former = append(former, path)
		}
	}
	head.Former = former
	d.Head = &head
	return d
}

// overlap reports whether two fields are the same, or one is in the other.
func overlap(a, b string) bool {
	return a == b || a == "" || b == "" || strings.HasPrefix(a, b+"#") || strings.HasPrefix(b, a+"#")
}
