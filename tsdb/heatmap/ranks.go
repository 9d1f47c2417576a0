package heatmap

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ranked returns the recording with ranks in place of the names in row keys: of tenants, datasets and key fields, each among those
// that it is stored with. The ranks sort as the names do, so pictures and findings stay the same except for the names.
// Times at the end of keys, and fields that are nothing but times close to that of their request, stay. Which keys exist, how many, and when
// they were used can still be seen.
func (r *Recording) Ranked() *Recording {
	if len(r.list()) == 0 || r.ranked {
		return r
	}
	tree := new(rankTree)
	for _, col := range r.columns.list {
		at := r.columns.start(col.id)
		for k := range col.cells {
			col.cells[k].each(func(row row) { tree.add(split(string(row.key), at)) })
		}
	}
	tree.rank(0)
	out := &Recording{columns: columns{width: r.columns.width}, first: r.first, last: r.last, ranked: true}
	for _, col := range r.columns.list {
		at, ranked := r.columns.start(col.id), column{id: col.id}
		for k := range col.cells {
			from, to := &col.cells[k], &ranked.cells[k]
			*to = cell{rows: from.rows, bytes: from.bytes, micros: from.micros, shift: from.shift}
			for i := range from.samples {
				to.keep(tree.ranked(from.at(i), at))
			}
			if len(from.largest.key) > 0 {
				to.largest = tree.ranked(from.largest, at)
			}
		}
		out.columns.list = append(out.columns.list, &ranked)
	}
	return out
}

// each calls f with the rows that a cell keeps.
func (c *cell) each(f func(row)) {
	for i := range c.samples {
		f(c.at(i))
	}
	if len(c.largest.key) > 0 {
		f(c.largest)
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

func (t *rankTree) ranked(r row, at time.Time) row {
	var names []string
	for _, f := range split(string(r.key), at) {
		t = t.below[f.text]
		names = append(names, t.name)
	}
	r.key = []byte(strings.Join(names, delim))
	return r
}
