package heat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/private"
)

// Errors of recordings that cannot be read. Compare with errors.Is.
var (
	// ErrDamaged: it is not a recording, or not all of one.
	ErrDamaged = errors.New("heatmap: not a recording, or a damaged one")
	// ErrVersion: a newer program wrote the recording.
	ErrVersion = errors.New("heatmap: recording of an unknown version")
)

// The file is described in docs/heatmap.md.
const (
	magic   = "TIDEHEAT"
	version = 1

	flagRanked = 1

	// widest is the width of columns that merged recordings of any times can reach.
	widest = 5 * 366 * 24 * time.Hour
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes the recording. It contains row keys.
func (r *Recording) Write(w io.Writer) error {
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriter(io.MultiWriter(w, sum))
	e := encoder{buf}
	_, _ = buf.WriteString(magic) // buf reports errors at its end
	e.number(version)
	flags := uint64(0)
	if r != nil && r.Ranked {
		flags = flagRanked
	}
	e.number(flags)
	if r == nil {
		r = &Recording{}
	}
	e.number(uint64(r.Columns.Width))
	e.time(r.First)
	e.time(r.Last)
	e.number(uint64(len(r.Columns.List)))
	for _, col := range r.Columns.List {
		e.signed(col.ID)
		for k := range col.Cells {
			e.cell(&col.Cells[k])
		}
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// Save writes the recording to a file with mode 0600, which replaces one of that name at once.
func (r *Recording) Save(name string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err = errors.Join(r.Write(file), file.Chmod(private.FileMode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// Read reads a recording that Write wrote. The error matches ErrDamaged or ErrVersion, or is the reader's. Read uses no
// more memory than a few times what it has read, whatever that is.
func Read(from io.Reader) (*Recording, error) {
	if from == nil {
		return nil, fmt.Errorf("%w: there is no reader", ErrDamaged)
	}
	d := decoder{r: bufio.NewReader(from)}
	out := d.recording()
	switch {
	case d.err == nil:
		return out, nil
	case errors.Is(d.err, io.EOF), errors.Is(d.err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it ends early", ErrDamaged)
	}
	return nil, d.err
}

type encoder struct{ w *bufio.Writer }

func (e encoder) number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	_, _ = e.w.Write(b[:binary.PutUvarint(b[:], n)])
}

func (e encoder) signed(n int64) {
	var b [binary.MaxVarintLen64]byte
	_, _ = e.w.Write(b[:binary.PutVarint(b[:], n)])
}

func (e encoder) time(t time.Time) {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	e.signed(t.UnixNano())
}

func (e encoder) row(r Row) {
	e.number(uint64(len(r.Key)))
	_, _ = e.w.Write(r.Key)
	e.number(uint64(r.Bytes))
	e.number(uint64(r.Micros))
}

func (e encoder) cell(c *Cell) {
	e.number(c.Rows)
	if c.Rows == 0 {
		return
	}
	e.number(c.Bytes)
	e.number(c.Micros)
	e.number(uint64(c.Shift))
	e.row(c.Largest)
	e.number(uint64(len(c.Samples)))
	for i := range c.Samples {
		e.row(c.At(i))
	}
}

// decoder reads a recording. After an error it returns zeros.
type decoder struct {
	r   *bufio.Reader
	sum uint32
	key []byte // of the last row
	err error
}

// ReadByte implements io.ByteReader.
func (d *decoder) ReadByte() (b byte, err error) {
	if b, err = d.r.ReadByte(); err != nil {
		d.err = err
		return 0, err
	}
	d.sum = crc32.Update(d.sum, castagnoli, []byte{b})
	return b, nil
}

// bytes reads n bytes into dst.
func (d *decoder) bytes(dst []byte, n int) []byte {
	if d.err != nil {
		return dst[:0]
	}
	dst = slices.Grow(dst[:0], n)[:n]
	if _, d.err = io.ReadFull(d.r, dst); d.err != nil {
		return dst[:0]
	}
	d.sum = crc32.Update(d.sum, castagnoli, dst)
	return dst
}

func (d *decoder) damaged(what string, n any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s is %v", ErrDamaged, what, n)
	}
}

// number reads a number of at most most.
func (d *decoder) number(what string, most uint64) uint64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(d)
	if err != nil || n > most {
		d.damaged(what, n) // unless the reader failed
		return 0
	}
	return n
}

func (d *decoder) signed(what string) int64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadVarint(d)
	if err != nil {
		d.damaged(what, n)
		return 0
	}
	return n
}

func (d *decoder) recording() *Recording {
	if head := d.bytes(nil, len(magic)); d.err == nil && string(head) != magic {
		d.damaged("its beginning", fmt.Sprintf("%q", head))
	}
	if v := d.number("version", math.MaxUint64); d.err == nil && v != version {
		d.err = fmt.Errorf("%w: %d; this program reads %d", ErrVersion, v, version)
	}
	out := &Recording{Ranked: d.number("flags", flagRanked) == flagRanked}
	out.Columns.Width = time.Duration(d.number("width", math.MaxInt64))
	first, last := d.signed("first time"), d.signed("last time")
	n := d.number("number of columns", MostColumns)
	if n > 0 {
		out.First, out.Last = time.Unix(0, first).UTC(), time.Unix(0, last).UTC()
		if width := out.Columns.Width; width < MinWidth || width > widest {
			d.damaged("width", width)
		}
		if last < first {
			d.damaged("last time", last)
		}
	}
	for range n {
		if d.err != nil {
			break
		}
		col := &Column{ID: d.signed("column")}
		if before := out.Columns.List; len(before) > 0 && col.ID <= before[len(before)-1].ID || !out.inRange(col.ID) {
			d.damaged("column", col.ID)
		}
		for k := range col.Cells {
			d.cell(&col.Cells[k])
		}
		out.Columns.List = append(out.Columns.List, col)
	}
	if out.Columns.Span() > MostColumns || out.Columns.Span() < 0 {
		d.damaged("number of columns", out.Columns.Span())
	}
	want := d.sum
	got := d.bytes(nil, 4)
	if d.err == nil && binary.LittleEndian.Uint32(got) != want {
		d.damaged("checksum", "wrong")
	}
	if _, err := d.r.ReadByte(); d.err == nil && err != io.EOF {
		d.damaged("its end", "followed by more")
	}
	return out
}

// inRange reports whether the times of a column can be represented.
func (r *Recording) inRange(id int64) bool {
	most := math.MaxInt64/max(int64(r.Columns.Width), 1) - MostColumns
	return -most < id && id < most
}

// row reads a row. Its key is valid until the next one.
func (d *decoder) row() (r Row) {
	d.key = d.bytes(d.key, int(d.number("length of a key", MaxKey)))
	r.Key = d.key
	r.Bytes = uint32(d.number("bytes of a row", math.MaxUint32))
	r.Micros = uint32(d.number("duration of a row", math.MaxUint32))
	return r
}

func (d *decoder) cell(c *Cell) {
	if c.Rows = d.number("rows", math.MaxUint64); c.Rows == 0 {
		return
	}
	c.Bytes = d.number("bytes", math.MaxUint64)
	c.Micros = d.number("duration", math.MaxUint64)
	c.Shift = uint8(d.number("chance of a sample", MaxShift))
	c.Largest = d.row().Clone()
	n := d.number("number of samples", min(MaxSamples, c.Rows))
	for range n {
		r := d.row()
		if d.err != nil {
			return
		}
		c.Keep(r)
	}
}
