package spool

import (
	"cmp"
	"slices"
)

// block is the state of a block on disk, as memory has it. Spool.mu guards all fields once the block is in the index,
// except first, offsets and n, which never change.
type block struct {
	first   uint64
	offsets []uint32 // of the records from first; nil if they are consecutive
	n       int      // records
	left    int      // records that are not done
	done    bitmap
	size    int // bytes on disk
	// marked means that the table of marks has an entry.
	marked bool
	// dirty means that records are done whose marks are not on disk yet; the block is then in index.dirty.
	dirty bool
	// freed means that size no longer counts.
	freed bool
}

func newBlock(b *builder, size int) *block {
	return &block{first: b.first, offsets: b.offsets, n: b.n, left: b.n, size: size}
}

// end returns the sequence number after the last record.
func (b *block) end() uint64 {
	if b.offsets != nil {
		return b.first + uint64(b.offsets[b.n-1]) + 1
	}
	return b.first + uint64(b.n)
}

// seq returns the sequence number of the record at place i.
func (b *block) seq(i int) uint64 {
	if b.offsets != nil {
		return b.first + uint64(b.offsets[i])
	}
	return b.first + uint64(i)
}

// place returns the place of the first record at or after seq; it may be n.
func (b *block) place(seq uint64) int {
	if seq <= b.first {
		return 0
	}
	if b.offsets == nil {
		return int(min(seq-b.first, uint64(b.n)))
	}
	i, _ := slices.BinarySearchFunc(b.offsets, seq-b.first, func(o uint32, want uint64) int { return cmp.Compare(uint64(o), want) })
	return i
}

// find returns the place of a record, and whether the block holds it.
func (b *block) find(seq uint64) (int, bool) {
	i := b.place(seq)
	return i, i < b.n && b.seq(i) == seq
}

// index holds, in order, all blocks that have records to deliver, and some that have none left. Spool.mu guards it.
type index struct {
	list  []*block
	empty int      // blocks in list without a record left
	dirty []*block // see block.dirty
	left  int      // records that are not done
	bytes int64    // of blocks that are not freed
}

// at returns the index of the first block that ends after seq; it may be len(list).
func (x *index) at(seq uint64) int {
	i, _ := slices.BinarySearchFunc(x.list, seq, func(b *block, seq uint64) int {
		if b.end() <= seq {
			return -1
		}
		return 1
	})
	return i
}

// find returns the block that holds a record.
func (x *index) find(seq uint64) (*block, int, bool) {
	i := x.at(seq)
	if i == len(x.list) {
		return nil, 0, false
	}
	place, ok := x.list[i].find(seq)
	return x.list[i], place, ok
}

// add appends a new block.
func (x *index) add(b *block) {
	x.list = append(x.list, b)
	x.left += b.left
	x.bytes += int64(b.size)
}

// mark marks a record as done and reports whether it was not done before.
func (x *index) mark(b *block, place int) bool {
	if b.done.has(place) {
		return false
	}
	if b.done == nil {
		b.done = newBitmap(b.n)
	}
	b.done.set(place)
	b.left--
	x.left--
	if b.left == 0 {
		x.empty++
		x.free(b)
	}
	if !b.dirty {
		b.dirty = true
		x.dirty = append(x.dirty, b)
	}
	return true
}

// free subtracts a block's size from bytes, once.
func (x *index) free(b *block) {
	if !b.freed {
		b.freed = true
		x.bytes -= int64(b.size)
	}
}

// sweep drops blocks without a record left: those in front at once, the others when they are many.
func (x *index) sweep() {
	n := 0
	for n < len(x.list) && x.list[n].left == 0 {
		x.list[n] = nil
		n++
	}
	x.list, x.empty = x.list[n:], x.empty-n
	if x.empty > 64 && x.empty > len(x.list)/4 {
		x.list = slices.DeleteFunc(x.list, func(b *block) bool { return b.left == 0 })
		x.empty = 0
	}
}
