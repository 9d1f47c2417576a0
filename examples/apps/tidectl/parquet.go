package main

import (
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// The bounds of a row group, which is in memory until it is written.
const (
	groupRows  = 100_000
	groupBytes = 16 << 20 // of texts
)

// parquetSheet writes a table as a Parquet file.
type parquetSheet struct {
	to        io.Writer
	name      string // of the dataset
	precision tsdb.Precision
	out       *parquet.GenericWriter[any]
	columns   []column
	rows      int // of the open row group
	bytes     int
	most      int // bytes of a row group
}

func newParquet(out io.Writer, dataset string, in tsdb.Precision) *parquetSheet {
	return &parquetSheet{to: out, name: dataset, precision: in, most: groupBytes}
}

// timeUnits are the units of the column time. Each holds all times of its precision, of centuries too.
var timeUnits = map[tsdb.Precision]parquet.TimeUnit{
	tsdb.Nanoseconds: parquet.Nanosecond, tsdb.Microseconds: parquet.Microsecond, tsdb.Milliseconds: parquet.Millisecond,
}

// ordered is a group whose fields have the order of the columns. A parquet.Group orders them by name.
type ordered struct {
	parquet.Group
	columns []column
}

func (o ordered) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, f := range o.Group.Fields() {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(o.columns))
	for i, c := range o.columns {
		fields[i] = byName[c.name]
	}
	return fields
}

// GoType implements parquet.Node. That of a Group panics for some names.
func (ordered) GoType() reflect.Type { return reflect.TypeFor[any]() }

func (s *parquetSheet) begin(columns []column) error {
	nodes := parquet.Group{}
	for _, c := range columns {
		node := s.node(c.as)
		if c.repeats {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
		if !c.required {
			node = parquet.Optional(node)
		}
		nodes[c.name] = node
	}
	s.columns = columns
	s.out = parquet.NewGenericWriter[any](s.to, parquet.NewSchema(s.name, ordered{nodes, columns}), parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("tidectl", version(), ""))
	return nil
}

func (s *parquetSheet) node(as columnType) parquet.Node {
	switch as {
	case asTime:
		return parquet.Timestamp(timeUnits[s.precision])
	case asBool:
		return parquet.Leaf(parquet.BooleanType)
	case asInt:
		return parquet.Int(64)
	case asUint:
		return parquet.Uint(64)
	case asFloat:
		return parquet.Leaf(parquet.DoubleType)
	case asBytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case asJSON:
		return parquet.JSON()
	}
	return parquet.String()
}

func (s *parquetSheet) row(of []codec.Value) error {
	row := make(parquet.Row, len(of))
	for i, v := range of {
		c, defined := s.columns[i], 0
		cell := s.cell(c.as, v)
		switch {
		case c.required && cell.IsNull():
			cell = parquet.ByteArrayValue(nil)
		case !c.required && !cell.IsNull():
			defined = 1
		}
		if cell.Kind() == parquet.ByteArray {
			s.bytes += len(cell.ByteArray())
		}
		row[i] = cell.Level(0, defined, i)
	}
	if _, err := s.out.WriteRows([]parquet.Row{row}); err != nil {
		return err
	}
	if s.rows++; s.rows < groupRows && s.bytes < s.most {
		return nil
	}
	s.rows, s.bytes = 0, 0
	return s.out.Flush()
}

// cell returns a value in a column; null for nothing.
func (s *parquetSheet) cell(as columnType, v codec.Value) parquet.Value {
	if contentOf(v) == 0 {
		return parquet.NullValue()
	}
	switch as {
	case asTime:
		at, _ := v.Time()
		switch s.precision {
		case tsdb.Microseconds:
			return parquet.Int64Value(at.UnixMicro())
		case tsdb.Milliseconds:
			return parquet.Int64Value(at.UnixMilli())
		}
		return parquet.Int64Value(at.UnixNano())
	case asBool:
		b, _ := v.Bool()
		return parquet.BooleanValue(b)
	case asInt:
		i, _ := v.Int()
		return parquet.Int64Value(i)
	case asUint:
		u, _ := v.Uint()
		return parquet.Int64Value(int64(u))
	case asFloat:
		if x, ok := v.Number(); ok {
			return parquet.DoubleValue(x)
		}
		return parquet.NullValue()
	case asBytes:
		b, _ := v.Bytes()
		return parquet.ByteArrayValue(b)
	}
	return parquet.ByteArrayValue([]byte(textOf(v)))
}

// end writes the last row group and the end of the file. Without it no program reads the file.
func (s *parquetSheet) end(failed error) error {
	if failed != nil {
		return failed
	}
	return s.out.Close()
}
