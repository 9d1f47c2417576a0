package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/display"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// The bounds of the first points of a table, whose fields are its columns.
const (
	sampledPoints = 1_000
	sampledBytes  = 16 << 20 // of payloads
	maxColumns    = 1_000
)

// pointTable writes points as a table for other programs: CSV, or Parquet. Its columns are the key fields, time, class
// (of an export), tag, and id where points have one; then the fields of the payloads in the order of their names, or
// each measure that the user names; then more, an object of the fields that have no column or do not fit its type;
// payload, the bytes of payloads that are not read; and in an answer to a query error. Which fields are columns is
// decided by the first points.
type pointTable struct {
	to       sheet
	read     reader
	view     *dynamic.View
	measures []measure
	typed    bool // a column has values of one type
	export   bool
	columns  []column // nil until they are known
	names    []string // of the fields that are columns
	sample   []tableRow
	bytes    int
	most     int // points of the sample
}

// sheet is the file of a table.
type sheet interface {
	begin(columns []column) error
	row(of []codec.Value) error
	end(failed error) error
}

// column is a column of a table. A column that is required has a value in each row.
type column struct {
	name     string
	as       columnType
	required bool
	repeats  bool // its values are few
}

// tableRow is a row whose fields have no columns yet.
type tableRow struct {
	fixed   []codec.Value
	fields  codec.Record
	point   dynamic.Point
	payload codec.Value
	failed  string
}

// newTable returns a table. export says that its points come from an export. Without measures, all fields are columns.
func newTable(to sheet, r reader, v *dynamic.View, measures []measure, export bool) (*pointTable, error) {
	t := &pointTable{to: to, read: r, view: v, measures: measures, export: export, most: sampledPoints}
	_, t.typed = to.(*parquetSheet)
	if len(measures) == 0 {
		return t, nil
	}
	taken := map[string]bool{}
	for _, c := range append(t.first(), t.last()...) {
		taken[c.name] = true
	}
	for i := range measures {
		if taken[measures[i].Name] {
			return nil, usageError{fmt.Errorf("two columns would have the name %q; the file has the key fields, time, class, tag, id and payload, and each --measure", measures[i].Name)}
		}
		taken[measures[i].Name] = true
	}
	return t, t.begin()
}

// first returns the columns before the fields, and last those behind them.
func (t *pointTable) first() (out []column) {
	d := described(t.view)
	for _, name := range keyFieldsOf(t.view) {
		out = append(out, column{name, asText, true, true})
	}
	out = append(out, column{"time", asTime, true, false})
	if t.export {
		out = append(out, column{"class", asText, false, true})
	}
	out = append(out, column{"tag", asText, true, true})
	if d.Identity {
		out = append(out, column{"id", asText, true, false})
	}
	return out
}

func (t *pointTable) last() (out []column) {
	if len(t.measures) == 0 {
		out = append(out, column{name: "more", as: asJSON})
	}
	out = append(out, column{name: "payload", as: asBytes})
	if !t.export {
		out = append(out, column{name: "error", as: asText})
	}
	return out
}

// add writes a point.
func (t *pointTable) add(p dynamic.Point) error {
	row := tableRow{point: p}
	for _, value := range t.view.Values(p.Entity) {
		row.fixed = append(row.fixed, codec.Str(value))
	}
	row.fixed = append(row.fixed, codec.ValueOf(p.Time))
	if t.export {
		row.fixed = append(row.fixed, orNull(p.Class))
	}
	row.fixed = append(row.fixed, orNull(p.Tag))
	if described(t.view).Identity {
		row.fixed = append(row.fixed, codec.Str(p.ID))
	}
	var plain []byte
	var err error
	if row.fields, plain, err = t.read.fields(p); err != nil {
		row.failed = err.Error()
	}
	if plain != nil {
		row.payload = codec.ValueOf(plain)
	}
	if t.columns != nil {
		return t.write(row)
	}
	t.sample = append(t.sample, row)
	if t.bytes += len(p.Payload); len(t.sample) < t.most && t.bytes < sampledBytes {
		return nil
	}
	return t.begin()
}

// begin decides the columns, and writes the points so far.
func (t *pointTable) begin() error {
	t.columns = t.first()
	for i := range t.measures {
		as := asFloat
		if t.measures[i].Kind == window.State {
			as = asText
		}
		t.columns = append(t.columns, column{name: t.measures[i].Name, as: as, repeats: as == asText})
	}
	if len(t.measures) == 0 {
		t.addFields()
	}
	t.columns = append(t.columns, t.last()...)
	if err := t.to.begin(t.columns); err != nil {
		return err
	}
	for _, row := range t.sample {
		if err := t.write(row); err != nil {
			return err
		}
	}
	t.sample = nil
	return nil
}

// addFields adds a column for each field of the sample. A field whose name another column has gets "field." before it.
func (t *pointTable) addFields() {
	found := map[string]content{}
	for _, row := range t.sample {
		for name, v := range row.fields.All() {
			found[name] |= contentOf(v)
		}
	}
	taken := map[string]bool{}
	for _, c := range append(t.first(), t.last()...) {
		taken[c.name] = true
	}
	t.names = slices.Sorted(maps.Keys(found))
	t.names = t.names[:min(len(t.names), maxColumns)]
	for _, name := range t.names {
		c := column{name: cmp.Or(name, "value"), as: asText}
		for taken[c.name] {
			c.name = "field." + c.name
		}
		taken[c.name] = true
		if t.typed {
			c.as = found[name].columnType()
		}
		t.columns = append(t.columns, c)
	}
}

// write writes a row.
func (t *pointTable) write(row tableRow) error {
	cells := make([]codec.Value, len(t.columns))
	at := copy(cells, row.fixed)
	for i := range t.measures {
		if row.failed == "" {
			cells[at+i] = t.measures[i].Value(dynamic.Payload{Tag: row.point.Tag, Data: row.point.Payload})
		}
	}
	at += len(t.measures)
	if len(t.measures) == 0 {
		var more []codec.Field
		i := 0 // of the names, which have the order of the fields
		for name, v := range row.fields.All() {
			for i < len(t.names) && t.names[i] < name {
				i++
			}
			if i < len(t.names) && t.names[i] == name && t.columns[at+i].as.fits(v) {
				cells[at+i] = v
			} else {
				more = append(more, codec.Field{Name: name, Value: v})
			}
		}
		at += len(t.names)
		if more != nil {
			text, err := json.Marshal(display.Value{Of: codec.NewRecord(more...)})
			if err != nil {
				return err
			}
			cells[at] = codec.Str(string(text))
		}
		at++
	}
	if cells[at] = row.payload; !t.export && row.failed != "" {
		cells[at+1] = codec.Str(row.failed)
	}
	return t.to.row(cells)
}

// end writes what is left. After an error, the file says that rows are missing.
func (t *pointTable) end(failed error) error {
	if t.columns == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.to.end(failed)
}

// orNull returns a text as a value; the zero Value for none.
func orNull(text string) codec.Value {
	if text == "" {
		return codec.Value{}
	}
	return codec.Str(text)
}
