package fields

import (
	"maps"
	"slices"
	"strings"
)

// MaxFound is how many fields of an entity are collected.
const MaxFound = 1024

// Newest collects the newest value of each field. Fields are added newest first, so the first of a path counts. A value
// excludes older ones at paths around and below its own, and older fields of the same oneof. Make one with NewNewest.
type Newest struct {
	shape   *Shape
	found   map[string]int // in parts; -1 for excluded
	around  map[string]struct{}
	chosen  map[string]int32
	parts   []Part
	times   []int64
	dropped bool
	checked int // how many of found Complete has looked at
}

// NewNewest returns a collection for payloads of a shape, which may be nil. It has room for n fields, and for more.
func NewNewest(shape *Shape, n int) *Newest {
	return &Newest{shape: shape, found: make(map[string]int, n), parts: make([]Part, 0, n), times: make([]int64, 0, n)}
}

// Clone returns a copy; nil of nil.
func (n *Newest) Clone() *Newest {
	if n == nil {
		return nil
	}
	out := *n
	out.found, out.around, out.chosen = maps.Clone(n.found), maps.Clone(n.around), maps.Clone(n.chosen)
	out.parts, out.times = slices.Clone(n.parts), slices.Clone(n.times)
	return &out
}

// Add adds the value of a field and its time, unless a newer one excludes it. It keeps raw.
func (n *Newest) Add(path string, raw []byte, time int64) {
	if _, known := n.found[path]; known {
		return
	}
	leaf := n.shape.Leaf(path)
	switch {
	case len(n.found) >= MaxFound:
		n.dropped = true
		return
	case n.hidden(path, leaf):
		n.found[path] = -1
		return
	}
	n.found[path] = len(n.parts)
	n.parts, n.times = append(n.parts, Part{path, raw}), append(n.times, time)
	for i := range len(path) {
		if path[i] == '#' {
			n.around = with(n.around, path[:i], struct{}{})
		}
	}
	if leaf != nil {
		for _, o := range leaf.Oneofs {
			n.chosen = with(n.chosen, o.In, o.Field)
		}
	}
}

func with[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = make(map[string]V)
	}
	m[key] = v
	return m
}

// hidden reports whether a newer value excludes the field.
func (n *Newest) hidden(path string, leaf *Leaf) bool {
	if _, ok := n.around[path]; ok || n.Has("") || path == "" && len(n.parts) > 0 {
		return true
	}
	for i := range len(path) {
		if path[i] == '#' && n.Has(path[:i]) {
			return true
		}
	}
	return leaf != nil && slices.ContainsFunc(leaf.Oneofs, func(o Oneof) bool {
		field, ok := n.chosen[o.In]
		return ok && field != o.Field
	})
}

// Has reports whether there is a value of the path.
func (n *Newest) Has(path string) bool {
	i, ok := n.found[path]
	return ok && i >= 0
}

// Complete reports whether all fields of the shape are there or excluded. Without a shape it is false. After true it is
// not called again.
func (n *Newest) Complete() bool {
	if n.shape == nil || n.checked == len(n.found) && n.checked > 0 {
		return false
	}
	n.checked = len(n.found)
	return len(n.shape.Missing(n)) == 0
}

// Full reports whether fields were left out because there are too many.
func (n *Newest) Full() bool { return n.dropped }

// Join returns a payload of the values.
func (n *Newest) Join(format string) ([]byte, error) {
	oldest := slices.Clone(n.parts)
	slices.Reverse(oldest)
	return Join(format, oldest)
}

// Time is the time of a field.
type Time struct {
	Path, Name string
	Units      int64
}

// Times returns the fields in the order of their dotted names. Of several with one name the one counts whose outermost
// object has the longest name, as in codec.Lookup.
func (n *Newest) Times() []Time {
	out := make([]Time, len(n.parts))
	for i, p := range n.parts {
		out[i] = Time{p.Path, n.shape.Name(p.Path), n.times[i]}
	}
	slices.SortFunc(out, func(a, b Time) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return longer(a.Path, b.Path)
	})
	return slices.CompactFunc(out, func(a, b Time) bool { return a.Name == b.Name })
}

// longer compares two paths of one dotted name: the one with the longer outer names is less.
func longer(a, b string) int {
	return slices.CompareFunc(Names(a), Names(b), func(a, b string) int { return len(b) - len(a) })
}
