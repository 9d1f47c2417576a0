package heatview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// Rank returns a recording with ranks in place of the names in row keys: of tenants, datasets and key fields, each
// among those that it is stored with. The ranks sort as the names do, so pictures and findings stay the same except for
// the names. Times at the end of keys, and fields that are nothing but times close to that of their request, stay.
// Which keys exist, how many, and when they were used can still be seen.
func Rank(r *heat.Recording) *heat.Recording {
	if len(r.List()) == 0 || r.Ranked {
		return r
	}
	tree := new(rankTree)
	for _, col := range r.Columns.List {
		at := r.Columns.Start(col.ID)
		for k := range col.Cells {
			each(&col.Cells[k], func(row heat.Row) { tree.add(split(string(row.Key), at)) })
		}
	}
	tree.rank(0)
	out := &heat.Recording{Columns: heat.Columns{Width: r.Columns.Width}, First: r.First, Last: r.Last, Ranked: true}
	for _, col := range r.Columns.List {
		at, ranked := r.Columns.Start(col.ID), heat.Column{ID: col.ID}
		for k := range col.Cells {
			from, to := &col.Cells[k], &ranked.Cells[k]
			*to = heat.Cell{Rows: from.Rows, Bytes: from.Bytes, Micros: from.Micros, Shift: from.Shift}
			for i := range from.Samples {
				to.Keep(tree.ranked(from.At(i), at))
			}
			if len(from.Largest.Key) > 0 {
				to.Largest = tree.ranked(from.Largest, at)
			}
		}
		out.Columns.List = append(out.Columns.List, &ranked)
	}
	return out
}

// each calls f with the rows that a cell keeps.
func each(c *heat.Cell, f func(heat.Row)) {
	for i := range c.Samples {
		f(c.At(i))
	}
	if len(c.Largest.Key) > 0 {
		f(c.Largest)
	}
}

// field is a part of a key between delimiters.
type field struct {
	text string
	kept bool // it is a time
}

// split returns the fields of a key.
func split(key string, at time.Time) []field {
	p := placeOf(key)
	texts := strings.Split(key, delim)
	out := make([]field, len(texts))
	offset := 0
	for i, text := range texts {
		timed := p.tenant != "" && offset == len(p.entity) && len(p.entity) < len(key)
		out[i] = field{text, timed || isTime(text, at) && isOnlyTime(text) || text == ""}
		offset += len(text) + len(delim)
	}
	return out
}

// rankTree has a node for each beginning of a key that ends with a field.
type rankTree struct {
	below map[string]*rankTree
	name  string // in place of the field's text
	kept  bool   // the name is the text
}

func (t *rankTree) add(fields []field) {
	for _, f := range fields {
		next := t.below[f.text]
		if next == nil {
			if t.below == nil {
				t.below = map[string]*rankTree{}
			}
			next = &rankTree{name: f.text, kept: f.kept}
			t.below[f.text] = next
		}
		t = next
	}
}

// rank names the fields below t in their order. A dataset's rows of other kinds than points remain such rows.
func (t *rankTree) rank(depth int) {
	names := make([]string, 0, len(t.below))
	for text := range t.below {
		names = append(names, text)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a+delim, b+delim) }) // as keys with these fields
	prefix := ""
	if depth < len(rankPrefixes) {
		prefix = rankPrefixes[depth]
	}
	width := len(fmt.Sprint(len(names)))
	for i, text := range names {
		next := t.below[text]
		if !next.kept {
			next.name = fmt.Sprintf("%s%0*d", prefix, width, i+1)
			if depth == 1 && strings.Contains(text, "!") {
				next.name += "!k"
			}
		}
		next.rank(depth + 1)
	}
}

// rankPrefixes are put before the ranks of tenants and datasets.
var rankPrefixes = []string{"t", "d"}

func (t *rankTree) ranked(r heat.Row, at time.Time) heat.Row {
	var names []string
	for _, f := range split(string(r.Key), at) {
		t = t.below[f.text]
		names = append(names, t.name)
	}
	r.Key = []byte(strings.Join(names, delim))
	return r
}
