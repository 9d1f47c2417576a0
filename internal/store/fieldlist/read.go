package fieldlist

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Field is a field of a list.
type Field struct {
	Name        string
	Kinds       []codec.Kind // in ascending order
	First, Last time.Time    // the starts of UTC days
}

// List is the fields of a tenant's dataset.
type List struct {
	Fields  []Field // in the order of the names, up to MaxFields
	Omitted int     // how many more there are, at least
}

// mostCells bounds the cells that a read returns of each class: those of the latest first days.
const mostCells = 20 * MaxFields

// Read reads the fields of a tenant's dataset that have not expired: one read of one row. What this process has noted
// counts even if it is not written yet.
func (r *Recorder) Read(ctx context.Context, t *bt.Table, of rowkey.ID, d *dataset.Dataset, now time.Time) (List, error) {
	families, h := d.ListFamilies(), d.Visibility(now)
	row, err := t.Row(ctx, of.FieldsRow(), dataset.AnyOf(len(families), func(i int) bigtable.Filter {
		return bigtable.ChainFilters(bigtable.ColumnRangeFilter(families[i], fieldPrefix, endOfColumns),
			bigtable.TimestampRangeFilterMicros(h.Cutoff(i), 0), bigtable.LatestNFilter(1), bigtable.CellsPerRowLimitFilter(mostCells))
	}))
	if err != nil {
		return List{}, err
	}
	j := joiner{fields: map[string]*joined{}}
	own := r.noted(of)
	for i, f := range families {
		if row != nil {
			j.addCells(row.Family(f), f)
		}
		if own != nil {
			j.addNoted(own, f, h.Cutoff(i))
		}
	}
	return j.list(), nil
}

// noted returns what this process has noted, or nil.
func (r *Recorder) noted(of rowkey.ID) *list {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lists[of.Dataset()]
}

// joiner joins what several processes have seen.
type joiner struct {
	fields  map[string]*joined
	omitted int
}

// joined is a field, with its kinds as bits.
type joined struct {
	kinds uint32
	days
}

func (j *joiner) addCells(cells []readrows.Cell, family string) {
	if len(cells) == mostCells {
		j.omitted++ // or the same names again
	}
	for i := range cells {
		column := strings.TrimPrefix(cells[i].Column, family+":")
		if column == omittedColumn {
			n, _ := strconv.Atoi(string(cells[i].Value))
			j.omitted = max(j.omitted, n)
		} else if first, k, name, ok := parseColumn(column); ok {
			j.add(name, k, days{first, int32(int64(cells[i].Timestamp) / dayMicros)})
		}
	}
}

// addNoted adds what this process has noted and that has not expired.
func (j *joiner) addNoted(l *list, family string, cutoff bigtable.Timestamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, all := range l.fields {
		for _, s := range all {
			if s.family == family && endOf(s.at.last) >= cutoff {
				j.add(name, s.kind, s.at)
			}
		}
	}
	if o := &l.omitted; o.family == family && endOf(o.day) >= cutoff {
		j.omitted = max(j.omitted, len(o.hashes))
	}
}

func (j *joiner) add(name string, k codec.Kind, at days) {
	f := j.fields[name]
	if f == nil {
		f = &joined{days: at}
		j.fields[strings.Clone(name)] = f
	}
	f.kinds |= 1 << k
	f.days = days{min(f.first, at.first), max(f.last, at.last)}
}

func (j *joiner) list() List {
	names := slices.Sorted(maps.Keys(j.fields))
	n := min(len(names), MaxFields)
	out := List{Fields: make([]Field, n), Omitted: j.omitted + len(names) - n}
	for i, name := range names[:n] {
		f := j.fields[name]
		out.Fields[i] = Field{Name: name, Kinds: kindsOf(f.kinds), First: timeOf(f.first), Last: timeOf(f.last)}
	}
	return out
}

// kindsOf returns the kinds of bits.
func kindsOf(bits uint32) (out []codec.Kind) {
	for k := codec.KindFloat; k <= codec.KindList; k++ {
		if bits&(1<<k) != 0 {
			out = append(out, k)
		}
	}
	return out
}
