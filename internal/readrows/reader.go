// Package readrows turns the chunks of a ReadRows stream into rows, in memory that is used again for the next row. It
// makes the checks of the official client.
package readrows

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Bounds of the memory that a reader keeps between rows and reads.
const (
	keySlab    = 1024     // bytes of keys that are allocated together
	mostNames  = 256      // columns whose names are kept
	longName   = 128      // bytes of a column whose name is not kept
	mostCells  = 4096     // cells of a row whose memory is kept
	firstValue = 16 << 20 // bytes allocated for a value in parts before they have come

	// mostRow bounds the memory of a row, in bytes of values and cells. Bigtable returns at most 256 MiB of a row:
	// https://cloud.google.com/bigtable/quotas#limits-data-size
	mostRow   = 512 << 20
	cellBytes = 56 // of a Cell
)

// Reader makes rows of chunks. A row is valid until the reader takes another chunk. The zero Reader is ready, for rows
// in ascending order. It is used by one goroutine at a time.
type Reader struct {
	row  Row // the one under way, or the last one
	size int // of the row under way: bytes of values and cells
	open bool
	last string // key of the last complete row of the stream

	reverse   bool
	family    string // of the current cell
	qualifier []byte
	column    string // name of the current cell's column; "" if it is not known yet
	time      int64
	value     []byte // of a cell whose value comes in parts; nil outside of one

	keys  strings.Builder // only ever added to: its texts are handed out
	names map[string]name
	text  []byte // for a look-up in names
}

// name is the name of a column with its family.
type name struct{ family, column string }

// Reset prepares the reader for another read, in ascending or in descending order of keys. The reader lets go of all
// rows.
func (r *Reader) Reset(reverse bool) {
	r.Abandon()
	if cap(r.row.cells) > mostCells {
		r.row.cells = nil
	}
	r.row.reset("")
	clear(r.row.cells[:min(r.row.used, cap(r.row.cells))])
	r.row.used = 0
	r.reverse, r.column, r.qualifier = reverse, "", nil
}

// Abandon ends a stream that broke: it drops the chunks of a row that is not complete. The order of keys is checked
// within a stream, so a caller that resumes checks that rows are in the range that is left.
func (r *Reader) Abandon() {
	r.drop()
	r.last = ""
}

// drop drops the chunks of a row that is not complete.
func (r *Reader) drop() { r.open, r.value = false, nil }

// Open reports whether a row is not complete.
func (r *Reader) Open() bool { return r.open }

// follows reports whether a key comes behind that of the last row.
func (r *Reader) follows(key []byte) bool {
	if r.reverse {
		return string(key) < r.last
	}
	return string(key) > r.last
}

// What can be wrong with chunks.
var (
	errReset      = errors.New("tsdb: the service reset a row between rows")
	errResetWith  = errors.New("tsdb: the service reset a row in a chunk with other fields")
	errNoColumn   = errors.New("tsdb: the service began a row without key, family or column")
	errOrder      = errors.New("tsdb: the service returned rows that are out of order")
	errOtherRow   = errors.New("tsdb: the service began a row within another")
	errQualifier  = errors.New("tsdb: the service returned a family without a column")
	errCommitPart = errors.New("tsdb: the service ended a row within a value")
	errCellPart   = errors.New("tsdb: the service began a cell within a value")
	errRowSize    = fmt.Errorf("tsdb: the service returned a row of more than %d bytes", mostRow)
)

// Next takes a chunk, and returns the row that it completes, if it does. After an error the reader must be reset.
func (r *Reader) Next(c *btpb.ReadRowsResponse_CellChunk) (*Row, error) {
	if !r.open {
		if err := r.begin(c); err != nil {
			return nil, err
		}
		return r.cell(c), nil
	}
	if err := r.check(c); err != nil {
		return nil, err
	}
	if r.size += len(c.Value) + cellBytes; r.size > mostRow {
		return nil, errRowSize
	}
	if c.GetResetRow() {
		r.drop()
		return nil, nil
	}
	if r.value == nil {
		if c.FamilyName != nil && c.FamilyName.Value != r.family {
			r.family, r.column = c.FamilyName.Value, ""
		}
		if c.Qualifier != nil && !bytes.Equal(c.Qualifier.Value, r.qualifier) {
			r.qualifier, r.column = c.Qualifier.Value, ""
		}
		r.time = c.TimestampMicros
	}
	return r.cell(c), nil
}

// begin begins a row with its first chunk.
func (r *Reader) begin(c *btpb.ReadRowsResponse_CellChunk) error {
	switch {
	case c.GetResetRow():
		return errReset
	case c.GetRowKey() == nil || c.FamilyName == nil || c.Qualifier == nil:
		return errNoColumn
	case r.last != "" && !r.follows(c.RowKey):
		return errOrder
	}
	r.open, r.size = true, len(c.Value)+cellBytes
	r.row.reset(r.key(c.RowKey))
	if r.column == "" || r.family != c.FamilyName.Value || !bytes.Equal(r.qualifier, c.Qualifier.Value) {
		r.family, r.qualifier, r.column = c.FamilyName.Value, c.Qualifier.Value, ""
	}
	r.time = c.TimestampMicros
	return nil
}

// check checks a chunk of a row that has begun.
func (r *Reader) check(c *btpb.ReadRowsResponse_CellChunk) error {
	names := c.RowKey != nil || c.FamilyName != nil || c.Qualifier != nil || c.TimestampMicros != 0
	switch {
	case c.GetResetRow() && (names || c.Value != nil || c.ValueSize != 0 || c.Labels != nil):
		return errResetWith
	case c.GetCommitRow() && c.ValueSize > 0:
		return errCommitPart
	case r.value != nil && names:
		return errCellPart
	case r.value != nil:
	case c.RowKey != nil && string(c.RowKey) != r.row.key:
		return errOtherRow
	case c.FamilyName != nil && c.Qualifier == nil:
		return errQualifier
	}
	return nil
}

// cell takes the value of a chunk, and returns the row if it is complete.
func (r *Reader) cell(c *btpb.ReadRowsResponse_CellChunk) *Row {
	value := c.Value
	if c.ValueSize > 0 || r.value != nil {
		if r.value == nil {
			r.value = make([]byte, 0, min(int(c.ValueSize), firstValue))
		}
		r.value = append(r.value, value...)
		if c.ValueSize > 0 {
			return nil
		}
		value, r.value = r.value, nil
	}
	if r.column == "" {
		r.intern()
	}
	r.row.add(r.family, Cell{Column: r.column, Timestamp: bigtable.Timestamp(r.time), Value: value})
	if !c.GetCommitRow() {
		return nil
	}
	r.open, r.last = false, r.row.key
	return &r.row
}

// key returns a row's key as a string. Keys are cut from small slabs.
func (r *Reader) key(key []byte) string {
	if r.keys.Cap()-r.keys.Len() < len(key) {
		r.keys.Reset()
		r.keys.Grow(max(len(key), keySlab))
	}
	from := r.keys.Len()
	r.keys.Write(key)
	return r.keys.String()[from:]
}

// intern sets the name of the current column, and its family to the same text as before.
func (r *Reader) intern() {
	r.text = append(append(append(r.text[:0], r.family...), ':'), r.qualifier...)
	known, ok := r.names[string(r.text)]
	if ok && known.family == r.family {
		r.family, r.column = known.family, known.column
		return
	}
	r.column = string(r.text)
	if len(r.text) > longName {
		r.text = nil
		return
	}
	if r.names == nil || len(r.names) >= mostNames {
		r.names = make(map[string]name)
	}
	r.family = r.column[:len(r.family)]
	r.names[r.column] = name{r.family, r.column}
}
