package rowkey

import "strings"

// kindMark stands between a dataset and the kind of its rows beside the points. No tenant's or dataset's name can hold it.
const kindMark = "!"

// The kinds of the rows of a rollup, before its name. Times in their keys are in milliseconds, whatever the dataset's
// precision.
const (
	RollupKind = "rollup."
	MarkKind   = "mark."
)

// Kind returns the space of the dataset's rows of a kind, beside that of its points. A kind is made of the bytes of a
// dataset's name.
func (s Space) Kind(kind string) Space {
	if s.prefix == "" {
		return s
	}
	s.prefix = s.prefix[:len(s.prefix)-1] + kindMark + kind + s.prefix[len(s.prefix)-1:]
	s.spare, s.identity = 0, false
	return s
}

// Beside returns s with its CheckPath and CheckPrefix refusing what has too long a key in the space of one of the kinds.
func (s Space) Beside(kinds ...string) Space {
	for _, kind := range kinds {
		s.spare = max(s.spare, len(kindMark)+len(kind))
	}
	return s
}

// AppendBeside appends the key that AppendPoint gives for the entity of a point in the space of a kind beside it, at another
// time. The point is a key that AppendEvent made, with an id or without. It reports false, and appends nothing, for what cannot be one.
func AppendBeside(dst []byte, point, kind string, units int64, identity bool) ([]byte, bool) {
	point, _, ok := cutID(point, identity)
	if !ok {
		return dst, false
	}
	tenant := strings.IndexByte(point, delim) + 1
	dataset := tenant + strings.IndexByte(point[tenant:], delim)
	end := len(point) - ReverseLen
	if tenant == 0 || dataset < tenant || end <= dataset+1 {
		return dst, false
	}
	dst = append(dst, point[:dataset]...)
	dst = append(dst, kindMark...)
	dst = append(dst, kind...)
	dst = append(dst, point[dataset:end]...)
	return appendReverse(dst, uint64(maxUnits-units)), true
}

// SameEntity reports whether two keys that AppendEvent made, with ids or without, are of one entity in one space.
func SameEntity(a, b string, identity bool) bool {
	a, _, _ = cutID(a, identity)
	b, _, _ = cutID(b, identity)
	n := len(a) - ReverseLen
	return n > 0 && len(a) == len(b) && a[:n] == b[:n]
}
