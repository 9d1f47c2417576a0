package infile

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

const magicParquet = "PAR1"

// Parquet reads the rows of a Parquet file. A column is a field; columns of a group have the names of both, joined with
// a dot. A list is an array. An empty list is no field. A timestamp is a text: with an offset if it is in UTC,
// otherwise without one. Null and NaN are nil. Lists of lists, and what is neither a number, a text, a bool nor a time,
// are left out.
type Parquet struct {
	f      *parquet.File
	leaves []leaf
	out    []string
	group  int
	rows   parquet.Rows // of the group; nil if it is not open
	buf    []parquet.Row
	next   int // in buf
	row    int64
	values map[string]any
}

// leaf is a column that has values.
type leaf struct {
	name string
	list bool
	of   func(parquet.Value) any // nil if the column is left out
}

// NewParquet reads the metadata of a file. It must be a file on disk, which is not packed. rename gives columns other
// names.
func NewParquet(f *File, rename map[string]string) (p *Parquet, err error) {
	defer recovered(&err)
	if !f.seekable {
		return nil, errors.New("a Parquet file is read from its end: want a file on disk that is not packed; its pages are packed themselves")
	}
	if err := checkFooter(f.raw, f.Size); err != nil {
		return nil, err
	}
	p = &Parquet{values: map[string]any{}, buf: make([]parquet.Row, 0, 64)}
	p.f, err = parquet.OpenFile(f.raw, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, c := range p.f.Root().Columns() {
		p.add(c, c.Name(), false)
	}
	return p, p.rename(rename)
}

// recovered makes an error of a panic of package parquet.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, r)
	}
}

// add adds the leaves of a column.
func (p *Parquet) add(c *parquet.Column, name string, list bool) {
	if c.Leaf() {
		l := leaf{name: name, list: list || c.Repeated()}
		if c.MaxRepetitionLevel() < 2 {
			l.of = valueOf(c.Type())
		}
		if l.of == nil {
			p.out = append(p.out, name)
		}
		p.leaves = append(p.leaves, l)
		return
	}
	inner := c.Columns()
	if lt := c.Type().LogicalType(); lt != nil && len(inner) == 1 { // of a list, the two levels below it have no names
		if _, isList := lt.Value.(*format.ListType); isList {
			if element := inner[0].Columns(); len(element) == 1 {
				p.add(element[0], name, true)
			} else {
				p.add(inner[0], name, true)
			}
			return
		}
	}
	for _, of := range inner {
		p.add(of, name+"."+of.Name(), list || c.Repeated())
	}
}

func (p *Parquet) rename(names map[string]string) error {
	renamed := 0
	for i := range p.leaves {
		l := &p.leaves[i]
		if other, ok := names[l.name]; ok {
			l.name, renamed = other, renamed+1
		}
		if slices.ContainsFunc(p.leaves[:i], func(other leaf) bool { return other.name == l.name }) {
			return fmt.Errorf("two columns have the name %.64q", l.name)
		}
	}
	if renamed < len(names) {
		return fmt.Errorf("--columns renames a column that the file has not; it has %.1000q", p.Columns())
	}
	return nil
}

// Columns returns the names of the columns.
func (p *Parquet) Columns() []string {
	var names []string
	for _, l := range p.leaves {
		names = append(names, l.name)
	}
	return names
}

// LeftOut returns the columns that are left out.
func (p *Parquet) LeftOut() []string { return p.out }

// Rows returns how many rows the file has.
func (p *Parquet) Rows() int64 { return p.f.NumRows() }

// Position implements Reader.
func (p *Parquet) Position() Position { return Position{Offset: p.row, Line: p.row} }

// Seek implements Reader.
func (p *Parquet) Seek(to Position) (err error) {
	defer recovered(&err)
	skip := to.Offset
	for p.group = 0; p.group < len(p.f.RowGroups()); p.group++ {
		n := p.f.RowGroups()[p.group].NumRows()
		if skip < n {
			break
		}
		skip -= n
	}
	if p.row = to.Offset; skip == 0 {
		return nil
	}
	if p.group == len(p.f.RowGroups()) {
		return errShorter
	}
	if err := p.open(); err != nil {
		return err
	}
	return p.rows.SeekToRow(skip)
}

func (p *Parquet) open() error {
	if err := checkPages(p.f, p.group); err != nil {
		return err
	}
	p.rows = p.f.RowGroups()[p.group].Rows()
	return nil
}

// Close ends the reading, before the file is closed.
func (p *Parquet) Close() error {
	if p.rows == nil {
		return nil
	}
	rows := p.rows
	p.rows = nil
	return rows.Close()
}

// Next implements Reader.
func (p *Parquet) Next() (rec Record, err error) {
	defer recovered(&err)
	for p.next == len(p.buf) {
		if err := p.fill(); err != nil {
			return rec, err
		}
	}
	row := p.buf[p.next]
	p.next++
	p.row++
	rec = Record{First: p.row, Last: p.row, Values: p.values}
	clear(p.values)
	for _, v := range row {
		l := p.leaves[v.Column()]
		if l.of == nil {
			continue
		}
		if v.IsNull() {
			if !l.list {
				p.values[l.name] = nil
			}
			continue
		}
		if kind := v.Kind(); (kind == parquet.ByteArray || kind == parquet.FixedLenByteArray) && len(v.ByteArray()) > MaxRecord {
			rec.Err = errLong
			return rec, nil
		}
		rec.Bytes += 8
		value := l.of(v)
		if text, ok := value.(string); ok {
			rec.Bytes += len(text)
		}
		switch {
		case value == nil && l.list:
		case l.list:
			list, _ := p.values[l.name].([]any)
			p.values[l.name] = append(list, value)
		default:
			p.values[l.name] = value
		}
	}
	if rec.Bytes > MaxRecord {
		rec.Err = errLong
	}
	return rec, nil
}

// fill reads the next rows.
func (p *Parquet) fill() error {
	if p.rows == nil {
		if p.group == len(p.f.RowGroups()) {
			return io.EOF
		}
		if err := p.open(); err != nil {
			return err
		}
	}
	n, err := p.rows.ReadRows(p.buf[:cap(p.buf)])
	p.buf, p.next = p.buf[:n], 0
	if err != nil && err != io.EOF {
		return fmt.Errorf("%w: row %d: %w", ErrDamaged, p.row+1, err)
	}
	if n > 0 {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%w: row %d: nothing can be read", ErrDamaged, p.row+1)
	}
	if cerr := p.Close(); cerr != nil {
		return cerr
	}
	p.group++
	return nil
}
