package infile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// thriftWalk walks over a structure of Thrift's compact protocol, in which Parquet has its metadata. The decoder of
// package parquet makes room for as many elements as a list says it has, so a few bytes could take all memory.
type thriftWalk struct {
	data     []byte
	at       int
	elements int // of lists, so far
	// each is called with the integers of structures. It is nil if nobody wants them.
	each func(depth int, field int16, n int64)
}

// The bounds of a structure.
const (
	thriftDepth    = 16
	thriftElements = 500_000
)

// The types of the compact protocol.
const (
	thriftTrue, thriftFalse, thriftByte              = 1, 2, 3
	thriftI16, thriftI32, thriftI64, thriftDouble    = 4, 5, 6, 7
	thriftBinary, thriftList, thriftSet              = 8, 9, 10
	thriftStruct, thriftUUID, thriftStop, thriftWide = 12, 13, 0, 15
)

var (
	errThriftCut = errors.New("metadata is cut off")
	errThriftBad = errors.New("metadata is not in the compact protocol")
)

func (w *thriftWalk) byte() (byte, error) {
	if w.at >= len(w.data) {
		return 0, errThriftCut
	}
	w.at++
	return w.data[w.at-1], nil
}

func (w *thriftWalk) uvarint() (uint64, error) {
	n, size := binary.Uvarint(w.data[w.at:])
	switch {
	case size == 0:
		return 0, errThriftCut
	case size < 0:
		return 0, errThriftBad
	}
	w.at += size
	return n, nil
}

func (w *thriftWalk) skip(n uint64) error {
	if n > uint64(len(w.data)-w.at) {
		return errThriftCut
	}
	w.at += int(n)
	return nil
}

// structure walks over a structure.
func (w *thriftWalk) structure(depth int) error {
	if depth > thriftDepth {
		return fmt.Errorf("%w: it is nested too deep", errThriftBad)
	}
	for field := int16(0); ; {
		b, err := w.byte()
		if err != nil || b == thriftStop {
			return err
		}
		if delta := int16(b >> 4); delta != 0 {
			field += delta
		} else {
			id, err := w.uvarint()
			if err != nil {
				return err
			}
			field = int16(id>>1) ^ -int16(id&1)
		}
		if is := b & 15; is == thriftTrue || is == thriftFalse {
			continue // the type is the value
		}
		if err := w.value(b&15, depth, field); err != nil {
			return err
		}
	}
}

func (w *thriftWalk) value(is byte, depth int, field int16) error {
	switch is {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftI16, thriftI32, thriftI64:
		n, err := w.uvarint()
		if err == nil && w.each != nil {
			w.each(depth, field, int64(n>>1)^-int64(n&1))
		}
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftUUID:
		return w.skip(16)
	case thriftBinary:
		n, err := w.uvarint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		return w.list(depth)
	case thriftStruct:
		return w.structure(depth + 1)
	}
	return errThriftBad // Parquet has no maps
}

func (w *thriftWalk) list(depth int) error {
	b, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(b >> 4)
	if n == thriftWide {
		if n, err = w.uvarint(); err != nil {
			return err
		}
	}
	if n > uint64(len(w.data)-w.at) { // each has a byte at least
		return errThriftCut
	}
	if w.elements += int(n); w.elements > thriftElements {
		return fmt.Errorf("%w: its lists have more than %d elements", errThriftBad, thriftElements)
	}
	for range n {
		if err := w.value(b&15, depth+1, 0); err != nil {
			return err
		}
	}
	return nil
}
