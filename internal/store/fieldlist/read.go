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

// mostCells bounds the cells that a read returns, for each family and of each of the two days.
const mostCells = 4 * MaxFields

// Read reads the fields of a tenant's dataset that have not expired: one read of one row. What this process has noted
// counts even if it is not written yet.
func (r *Recorder) Read(ctx context.Context, t *bt.Table, of rowkey.ID, d *dataset.Dataset, now time.Time) (List, error) {
	families, h := d.ListFamilies(), d.Visibility(now)
	filters := make([]bigtable.Filter, 0, 3*len(families)+1)
	for i, f := range families {
		visible := bigtable.TimestampRangeFilterMicros(h.Cutoff(i), 0)
		filters = append(filters,
			bigtable.ChainFilters(bigtable.ColumnRangeFilter(f, lastSlot, afterLast), visible, newest, bigtable.CellsPerRowLimitFilter(mostCells)),
			bigtable.ChainFilters(bigtable.ColumnRangeFilter(f, firstSlot, afterFirst), newest, bigtable.CellsPerRowLimitFilter(mostCells)),
			bigtable.ChainFilters(bigtable.ColumnRangeFilter(f, omittedColumn, omittedColumn+"\x00"), visible, newest))
	}
	row, err := t.Row(ctx, of.FieldsRow(), bigtable.InterleaveFilters(filters...))
	if err != nil {
		return List{}, err
	}
	j := joiner{fields: map[string]*days{}, firsts: map[string]int32{}}
	for i, f := range families {
		if row != nil {
			j.add(row.Family(f), f)
		}
		r.join(&j, key{of.Dataset(), f}, h.Cutoff(i))
	}
	return j.list(), nil
}

// join adds what this process has noted and that has not expired.
func (r *Recorder) join(j *joiner, k key, cutoff bigtable.Timestamp) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	l := r.now[k]
	if l == nil {
		l = r.before[k]
	}
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, kinds := range l.fields {
		for _, s := range kinds {
			if lastCell(s.last) >= cutoff {
				j.last(name, s.kind, s.last)
				j.first(name, s.first)
			}
		}
	}
	if lastCell(l.omittedDay) >= cutoff {
		j.omitted = max(j.omitted, len(l.omitted))
	}
}

var newest = bigtable.LatestNFilter(1)

// joiner joins the cells of a row.
type joiner struct {
	fields  map[string]*days
	firsts  map[string]int32 // by name; of fields that have expired, too
	omitted int
}

// days are the days of a field, and its kinds as bits.
type days struct {
	kinds       uint32
	first, last int32
}

func (j *joiner) add(cells []readrows.Cell, family string) {
	for i := range cells {
		column := strings.TrimPrefix(cells[i].Column, family+":")
		if column == omittedColumn {
			n, _ := strconv.Atoi(string(cells[i].Value))
			j.omitted = max(j.omitted, n)
		} else if name, k, ok := splitQualifier(column, lastSlot); ok {
			j.last(name, k, dayOfLast(cells[i].Timestamp))
		} else if name, _, ok := splitQualifier(column, firstSlot); ok {
			j.first(name, dayOfFirst(cells[i].Timestamp))
		}
	}
}

func (j *joiner) last(name string, k codec.Kind, day int32) {
	d := j.fields[name]
	if d == nil {
		d = &days{last: day}
		j.fields[strings.Clone(name)] = d
	}
	d.kinds |= 1 << k
	d.last = max(d.last, day)
}

func (j *joiner) first(name string, day int32) {
	if have, ok := j.firsts[name]; !ok || day < have {
		j.firsts[strings.Clone(name)] = day
	}
}

// list returns the fields that have not expired. A field whose first day was not read has only its last one.
func (j *joiner) list() List {
	out := List{Omitted: j.omitted}
	for _, name := range slices.Sorted(maps.Keys(j.fields)) {
		if len(out.Fields) == MaxFields {
			out.Omitted += len(j.fields) - MaxFields
			break
		}
		d := j.fields[name]
		first, ok := j.firsts[name]
		if !ok || first > d.last {
			first = d.last
		}
		out.Fields = append(out.Fields, Field{Name: name, Kinds: kindsOf(d.kinds), First: Day(first), Last: Day(d.last)})
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
