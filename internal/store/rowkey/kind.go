package rowkey

import "strings"

// kindMark separates a dataset from the kind of its rows that are not points. No name of a tenant or dataset can
// contain it.
const kindMark = "!"

// The kinds of a rollup's rows; its name follows. Times in their keys are in milliseconds, whatever the dataset's
// precision.
const (
	RollupKind = "rollup."
	MarkKind   = "mark."
)

// Kind returns the space of the dataset's rows of a kind. A kind consists of the bytes that a dataset's name may have.
func (s Space) Kind(kind string) Space {
	if s.prefix == "" {
		return s
	}
	s.prefix = s.prefix[:len(s.prefix)-1] + kindMark + kind + s.prefix[len(s.prefix)-1:]
	s.spare, s.identity = 0, false
	return s
}

// WithSiblings returns s with stricter CheckPath and CheckPrefix: they also refuse paths whose key in the space of one
// of the kinds would be too long.
func (s Space) WithSiblings(kinds ...string) Space {
	for _, kind := range kinds {
		s.spare = max(s.spare, len(kindMark)+len(kind))
	}
	return s
}

// AppendSibling appends the key that AppendPoint returns for a point's entity in the space of a kind, at another time.
// The point is a key from AppendEvent, with or without an id. For anything else it returns false and appends nothing.
func AppendSibling(dst []byte, point, kind string, units int64, identity bool) ([]byte, bool) {
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

// SameEntity reports whether two keys from AppendEvent, with or without ids, belong to one entity in one space.
func SameEntity(a, b string, identity bool) bool {
	a, _, _ = cutID(a, identity)
	b, _, _ = cutID(b, identity)
	n := len(a) - ReverseLen
	return n > 0 && len(a) == len(b) && a[:n] == b[:n]
}
