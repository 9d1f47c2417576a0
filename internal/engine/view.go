package engine

import (
	"bytes"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// view is an authorized view: the part of a table that requests through it can see and change. It never changes.
type view struct {
	message  *adminpb.AuthorizedView
	prefixes [][]byte
	columns  map[string]viewColumns
}

// viewColumns is the part of a family that a view covers.
type viewColumns struct {
	qualifiers [][]byte
	prefixes   [][]byte
}

func newView(m *adminpb.AuthorizedView) *view {
	v := &view{message: m, columns: make(map[string]viewColumns)}
	s := m.GetSubsetView()
	v.prefixes = s.GetRowPrefixes()
	for name, f := range s.GetFamilySubsets() {
		v.columns[name] = viewColumns{qualifiers: f.GetQualifiers(), prefixes: f.GetQualifierPrefixes()}
	}
	return v
}

// hasRow reports whether the view covers a row.
func (v *view) hasRow(key []byte) bool {
	return slices.ContainsFunc(v.prefixes, func(p []byte) bool { return bytes.HasPrefix(key, p) })
}

// end returns the first row key after all rows of the view. It returns an empty key if there is none, or without a
// view.
func (v *view) end() []byte {
	end := []byte{}
	if v == nil {
		return end
	}
	for _, p := range v.prefixes {
		after := rowfilter.PrefixEnd(p)
		if after == nil {
			return []byte{}
		}
		if bytes.Compare(after, end) > 0 {
			end = after
		}
	}
	return end
}

// hasColumn reports whether the view covers a column.
func (v *view) hasColumn(family string, qualifier []byte) bool {
	c, ok := v.columns[family]
	return ok && (slices.ContainsFunc(c.qualifiers, func(q []byte) bool { return bytes.Equal(q, qualifier) }) ||
		slices.ContainsFunc(c.prefixes, func(p []byte) bool { return bytes.HasPrefix(qualifier, p) }))
}

// hasFamily reports whether the view covers all columns of a family.
func (v *view) hasFamily(family string) bool {
	return slices.ContainsFunc(v.columns[family].prefixes, func(p []byte) bool { return len(p) == 0 })
}

// id returns the last part of the view's name.
func (v *view) id() string {
	_, id, _ := strings.Cut(v.message.GetName(), viewsPart)
	return id
}
