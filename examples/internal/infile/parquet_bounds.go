package infile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// The bounds of a Parquet file. A row group may have any size, because its pages are read one after the other, of all
// columns at once.
const (
	maxFooter = 16 << 20
	// maxPages is the most bytes of the largest pages of a row group's columns together. Twice as much may be in
	// memory: a dictionary stays there while the other pages are read.
	maxPages = 256 << 20
	// valueBytes is about the memory for a value of a page, which may be packed into less than a bit.
	valueBytes = 8
	maxHeader  = 1 << 20 // of a page
)

// checkFooter refuses metadata that would take much memory.
func checkFooter(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return fmt.Errorf("%w: it has %d bytes", ErrDamaged, size)
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	if string(tail[4:]) != magicParquet {
		return fmt.Errorf("%w: it does not end as a Parquet file; encrypted files are not read", ErrDamaged)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case n > maxFooter:
		return fmt.Errorf("the metadata has %d bytes, and %d is the most", n, maxFooter)
	case n > size-12:
		return fmt.Errorf("%w: its metadata is cut off", ErrDamaged)
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	if err := (&thriftWalk{data: footer}).structure(0); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// checkPages refuses a row group whose pages would take much memory.
func checkPages(f *parquet.File, group int) error {
	total := int64(0)
	for _, c := range f.Metadata().RowGroups[group].Columns {
		m := c.MetaData
		at := m.DataPageOffset
		if m.DictionaryPageOffset > 0 {
			at = min(at, m.DictionaryPageOffset)
		}
		end := at + m.TotalCompressedSize
		if at < 0 || end < at || end > f.Size() {
			return fmt.Errorf("%w: a column is outside of the file", ErrDamaged)
		}
		largest := int64(0)
		for at < end {
			p, err := pageAt(f, at, end)
			if err != nil {
				return err
			}
			largest = max(largest, p.unpacked+p.packed+p.values*valueBytes)
			at += p.header + p.packed
		}
		if total += largest; total > maxPages {
			return fmt.Errorf("the largest pages of row group %d have more than %d bytes together, which is the most", group, maxPages)
		}
	}
	return nil
}

// page is what the header of a page says.
type page struct{ header, packed, unpacked, values int64 }

// pageAt reads the header of a page.
func pageAt(r io.ReaderAt, at, end int64) (p page, err error) {
	for window := int64(512); ; window *= 8 {
		buf := make([]byte, min(window, end-at))
		if _, err := r.ReadAt(buf, at); err != nil {
			return p, err
		}
		p = page{packed: -1, unpacked: -1}
		w := &thriftWalk{data: buf, each: func(depth int, field int16, n int64) {
			switch {
			case depth == 0 && field == 2:
				p.unpacked = n
			case depth == 0 && field == 3:
				p.packed = n
			case depth == 1 && field == 1:
				p.values = n
			}
		}}
		err := w.structure(0)
		if err == errThriftCut && window < maxHeader && window < end-at {
			continue
		}
		if p.header = int64(w.at); err == nil && (p.packed < 0 || p.unpacked < 0 || p.values < 0 || p.packed > end-at-p.header) {
			err = errThriftBad
		}
		if err != nil {
			err = fmt.Errorf("%w: the header of a page: %w", ErrDamaged, err)
		}
		return p, err
	}
}
