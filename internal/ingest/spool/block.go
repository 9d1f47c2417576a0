package spool

import (
	"encoding/binary"
	"math"
)

// blockVersion is the first byte of each block.
const blockVersion = 1

// frame is one record in a block.
type frame struct {
	offset uint32 // the record's sequence number minus the block's
	data   []byte
}

// appendFrame appends a record in the form in which a block stores it.
func appendFrame(dst, data []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(data))+1), data...)
}

// frameSize returns how many bytes appendFrame appends.
func frameSize(data []byte) int {
	var head [binary.MaxVarintLen64]byte
	return binary.PutUvarint(head[:], uint64(len(data))+1) + len(data)
}

// nextFrame splits the first record off bytes that appendFrame wrote.
func nextFrame(body []byte) (whole, rest []byte) {
	size, n := binary.Uvarint(body)
	end := n + int(size) - 1
	return body[:end], body[end:]
}

// builder makes a block, record by record in the order of their sequence numbers.
type builder struct {
	buf     []byte
	first   uint64
	next    uint64   // the sequence number after the last record
	n       int      // records
	offsets []uint32 // of the records, once their numbers have a gap
	more    int      // how many bytes will follow; sizes the buffer
}

// fits reports whether the block has room for a record.
func (b *builder) fits(seq uint64, size int) bool {
	return b.n == 0 || len(b.buf)+size <= blockBytes && seq-b.first < math.MaxUint32
}

// add adds a record in the form of appendFrame. seq must be greater than all before.
func (b *builder) add(seq uint64, whole []byte) {
	switch {
	case b.n == 0:
		b.buf, b.first = append(make([]byte, 0, max(min(b.more, blockBytes), len(whole))+16), blockVersion), seq
	case seq != b.next:
		b.buf = append(b.buf, 0)
		b.buf = binary.AppendUvarint(b.buf, seq-b.next)
		if b.offsets == nil {
			for i := range b.n {
				b.offsets = append(b.offsets, uint32(i))
			}
		}
	}
	if b.offsets != nil {
		b.offsets = append(b.offsets, uint32(seq-b.first))
	}
	b.buf = append(b.buf, whole...)
	b.next = seq + 1
	b.n++
}

// parseBlock appends the records of a block to dst; their data share value's memory. It accepts exactly what builder
// writes.
func parseBlock(dst []frame, value []byte) ([]frame, error) {
	if len(value) == 0 {
		return dst, damaged("an empty block")
	}
	if value[0] > blockVersion {
		return dst, ErrVersion
	}
	if value[0] == 0 {
		return dst, damaged("a block of version 0")
	}
	rest, offset, hole := value[1:], uint64(0), true
	if len(rest) == 0 {
		return dst, damaged("a block without records")
	}
	for len(rest) > 0 {
		k, n := uvarint(rest)
		if n == 0 {
			return dst, damaged("a block with a bad length at byte %d", len(value)-len(rest))
		}
		rest = rest[n:]
		if k > 0 {
			if k-1 > uint64(len(rest)) {
				return dst, damaged("a block that ends within a record")
			}
			if offset > math.MaxUint32 {
				return dst, damaged("a block with too wide a range")
			}
			dst = append(dst, frame{uint32(offset), rest[: k-1 : k-1]})
			rest, offset, hole = rest[k-1:], offset+1, false
			continue
		}
		run, n := uvarint(rest)
		if n == 0 || run == 0 || run > math.MaxUint32 || hole || len(rest) == n {
			return dst, damaged("a block with a bad hole at byte %d", len(value)-len(rest))
		}
		rest, offset, hole = rest[n:], offset+run, true
	}
	return dst, nil
}

// uvarint is binary.Uvarint, but accepts only the shortest form: n is 0 for anything else.
func uvarint(b []byte) (v uint64, n int) {
	v, n = binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// A bitmap holds one bit for each record of a block, in order: whether it is done. Nil means that none is.
type bitmap []byte

func (m bitmap) has(i int) bool { return m != nil && m[i/8]&(1<<(i%8)) != 0 }

func (m bitmap) set(i int) { m[i/8] |= 1 << (i % 8) }

func newBitmap(n int) bitmap { return make(bitmap, (n+7)/8) }
