package main

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// The bounds of a row group, which is in memory until it is written.
const (
	groupRows  = 100_000
	groupBytes = 16 << 20 // of keys and payloads
)

// parquetWriter writes points of a dataset as a Parquet file. The columns, which the format orders by name, are the key fields,
// time (a timestamp in the dataset's precision, UTC), class, tag, and id where points have an identity; then each measure, as a double or, for a
// state, a string; and the payload: as text in json, or as bytes in payload.
type parquetWriter struct {
	view     *inspect.View
	out      *parquet.GenericWriter[any]
	columns  map[string]int // numbers by name
	key      []string
	measures []measure
	identity bool
	rows     int // of the open row group
	bytes    int
	most     int // bytes of a row group
}

// timeUnits are the units of the column time. Each holds all times of its precision, of centuries too.
var timeUnits = map[tsdb.Precision]parquet.TimeUnit{
	tsdb.Nanoseconds: parquet.Nanosecond, tsdb.Microseconds: parquet.Microsecond, tsdb.Milliseconds: parquet.Millisecond,
}

// newParquet returns a writer. Each measure is a column.
func newParquet(out io.Writer, v *inspect.View, measures []measure) (*parquetWriter, error) {
	text := func() parquet.Node { return parquet.Encoded(parquet.String(), &parquet.RLEDictionary) }
	d := v.Describe()
	w := &parquetWriter{view: v, key: d.Key, identity: d.Identity, measures: measures, columns: map[string]int{}, most: groupBytes}
	nodes := parquet.Group{
		"time": parquet.Timestamp(timeUnits[d.Precision]), "class": parquet.Optional(text()), "tag": text(),
		"json": parquet.Optional(parquet.JSON()), "payload": parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
	}
	if d.Identity {
		nodes["id"] = parquet.String()
	}
	add := func(name string, node parquet.Node) error {
		if nodes[name] != nil {
			return usageError{fmt.Errorf("two columns would have the name %q; the file has time, class, tag, json and payload, the key fields, and each --measure", name)}
		}
		nodes[name] = node
		return nil
	}
	for _, name := range d.Key {
		if err := add(name, text()); err != nil {
			return nil, err
		}
	}
	for i := range measures {
		node := parquet.Optional(parquet.Leaf(parquet.DoubleType))
		if measures[i].Kind == window.State {
			node = parquet.Optional(text())
		}
		if err := add(measures[i].Name, node); err != nil {
			return nil, err
		}
	}
	schema := parquet.NewSchema(d.Name, nodes)
	for i, path := range schema.Columns() {
		w.columns[path[0]] = i
	}
	w.out = parquet.NewGenericWriter[any](out, schema, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("tidectl", version(), ""))
	return w, nil
}

// add writes a point.
func (w *parquetWriter) add(p inspect.Point) error {
	row := make(parquet.Row, len(w.columns))
	for i := range row {
		row[i] = parquet.NullValue().Level(0, 0, i)
	}
	size := len(p.Payload)
	set := func(name string, v parquet.Value, optional int) {
		row[w.columns[name]] = v.Level(0, optional, w.columns[name])
	}
	text := func(name, s string, optional int) {
		size += len(s)
		set(name, parquet.ByteArrayValue([]byte(s)), optional)
	}
	for i, value := range w.view.Values(p.Entity) {
		text(w.key[i], value, 0)
	}
	at := p.Time.UnixNano()
	switch w.view.Describe().Precision {
	case tsdb.Microseconds:
		at = p.Time.UnixMicro()
	case tsdb.Milliseconds:
		at = p.Time.UnixMilli()
	}
	set("time", parquet.Int64Value(at), 0)
	if p.Class != "" {
		text("class", p.Class, 1)
	}
	text("tag", p.Tag, 0)
	if w.identity {
		text("id", p.ID, 0)
	}
	value := inspect.Payload{Tag: p.Tag, Data: p.Payload}
	for i := range w.measures {
		m := &w.measures[i]
		v := m.Value(value)
		if m.Kind == window.State {
			if s, ok := v.Text(); ok {
				text(m.Name, s, 1)
			}
		} else if x, ok := v.Number(); ok {
			set(m.Name, parquet.DoubleValue(x), 1)
		}
	}
	column := "payload"
	if p.Tag == codec.JSON[any]().Tag() && utf8.Valid(p.Payload) {
		column = "json"
	}
	if p.Err == nil {
		set(column, parquet.ByteArrayValue(slices.Clone(p.Payload)), 1)
	}
	if _, err := w.out.WriteRows([]parquet.Row{row}); err != nil {
		return err
	}
	w.rows++
	w.bytes += size
	if w.rows < groupRows && w.bytes < w.most {
		return nil
	}
	w.rows, w.bytes = 0, 0
	return w.out.Flush()
}

// end writes the last row group and the end of the file. Without it no program reads the file.
func (w *parquetWriter) end() error { return w.out.Close() }
