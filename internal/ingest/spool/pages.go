package spool

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"
)

// The layout of bbolt's pages, in the machine's byte order.
const (
	pageBytes   = 4096
	pageHeader  = 16
	elementSize = 16

	branchPage = 0x01
	leafPage   = 0x02
	freePage   = 0x10
	bucketLeaf = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	metaBytes   = 64

	// maxRun bounds the bytes of one read: a page of up to four values of the largest size, and more than any of ours.
	maxRun = 256 << 20
)

// walker reads a bbolt file page by page, without bbolt. It checks everything that bbolt relies on: references, bounds,
// order, and that no page is used twice or is both used and free.
//
// bbolt's own code cannot do this check. If a branch page refers to itself, Cursor.First does not end, and Cursor.Seek
// and Tx.Check recurse until the stack is full, which ends the process. Tx.Check also runs in its own goroutine, in
// which an access to a page behind the end of the file cannot be recovered. And a page that is both used and free reads
// well until the next commit overwrites it.
type walker struct {
	file  io.ReaderAt
	pages uint64 // in use or free
	used  []bool
	count int // of used
	txid  uint64
	visit func(b bucket, key, value []byte) error
}

// walk visits each entry of the five tables in order, as a meta page describes the file. The value is valid during the
// call.
func walk(file io.ReaderAt, size int64, meta []byte, visit func(b bucket, key, value []byte) error) (*walker, error) {
	w := &walker{file: file, visit: visit}
	if size < 4*pageBytes {
		return nil, damaged("the file has only %d bytes", size)
	}
	root, free := binary.NativeEndian.Uint64(meta[16:]), binary.NativeEndian.Uint64(meta[32:])
	w.pages, w.txid = binary.NativeEndian.Uint64(meta[40:]), commitOf(meta)
	if w.pages < 4 || w.pages > uint64(size)/pageBytes {
		return nil, damaged("the file has %d bytes and should have %d pages of %d", size, w.pages, pageBytes)
	}
	w.used = make([]bool, w.pages)
	w.used[0], w.used[1] = true, true
	found := 0
	err := w.tree(root, nil, nil, 0, func(flags uint32, key, value []byte) error {
		if found == len(bucketNames) || flags != bucketLeaf || string(key) != bucketNames[found] {
			return damaged("there is an unknown table %.40q", key)
		}
		b := bucket(found)
		found++
		return w.table(b, value)
	})
	if err != nil {
		return nil, err
	}
	if found != len(bucketNames) {
		return nil, damaged("a table is missing")
	}
	return w, w.freelist(free)
}

// readMetas returns the valid ones of the first two pages, the newer one first. A commit writes the older one, as its
// last step. If one of the two is torn, the other counts, in bbolt too.
func readMetas(file io.ReaderAt) (metas [][]byte) {
	for i := range int64(2) {
		buf := make([]byte, metaBytes)
		if _, err := file.ReadAt(buf, i*pageBytes+pageHeader); err == nil && validMeta(buf) {
			metas = append(metas, buf)
		}
	}
	if len(metas) == 2 && commitOf(metas[1]) > commitOf(metas[0]) {
		slices.Reverse(metas)
	}
	return metas
}

// commitOf returns the number of the commit that wrote a meta page.
func commitOf(meta []byte) uint64 { return binary.NativeEndian.Uint64(meta[48:]) }

// dropMeta makes the meta page of a commit invalid, so that the commit before counts.
func dropMeta(file io.WriterAt, commit uint64) error {
	_, err := file.WriteAt(make([]byte, metaBytes), int64(commit%2)*pageBytes+pageHeader)
	return err
}

func validMeta(m []byte) bool {
	h := fnv.New64a()
	h.Write(m[:56])
	return binary.NativeEndian.Uint32(m) == boltMagic && binary.NativeEndian.Uint32(m[4:]) == boltVersion &&
		binary.NativeEndian.Uint32(m[8:]) == pageBytes && binary.NativeEndian.Uint64(m[56:]) == h.Sum64()
}

// checkFreelist checks the head of the list of free pages.
func checkFreelist(file io.ReaderAt, meta []byte) error {
	id, pages := binary.NativeEndian.Uint64(meta[32:]), binary.NativeEndian.Uint64(meta[40:])
	head := make([]byte, pageHeader)
	if _, err := file.ReadAt(head, int64(id)*pageBytes); err != nil {
		return damaged("page %d: %w", id, err)
	}
	if binary.NativeEndian.Uint64(head) != id || binary.NativeEndian.Uint16(head[8:]) != freePage ||
		uint64(binary.NativeEndian.Uint32(head[12:])) >= pages-id {
		return damaged("page %d is not the list of free pages", id)
	}
	return nil
}

// read returns n pages, starting at id.
func (w *walker) read(id, n uint64) ([]byte, error) {
	buf := make([]byte, n*pageBytes)
	if _, err := w.file.ReadAt(buf, int64(id)*pageBytes); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, damaged("page %d: %w", id, err)
	}
	return buf, nil
}

// page returns a page with its overflow pages.
func (w *walker) page(id uint64) ([]byte, error) {
	if id >= w.pages {
		return nil, damaged("page %d of %d", id, w.pages)
	}
	buf, err := w.read(id, 1)
	if err != nil {
		return nil, err
	}
	more := uint64(binary.NativeEndian.Uint32(buf[12:]))
	if binary.NativeEndian.Uint64(buf) != id || more >= w.pages-id || more*pageBytes >= maxRun {
		return nil, damaged("page %d is not the page that it should be", id)
	}
	for i := id; i <= id+more; i++ {
		if w.used[i] {
			return nil, damaged("page %d is used twice", i)
		}
		w.used[i] = true
		w.count++
	}
	if more == 0 {
		return buf, nil
	}
	return w.read(id, more+1)
}

// table visits a table's entries. bbolt stores a small table within the entry that names it.
func (w *walker) table(b bucket, value []byte) error {
	if len(value) < 16 {
		return damaged("the table %s", bucketNames[b])
	}
	each := func(flags uint32, key, value []byte) error {
		if flags != 0 {
			return damaged("there is a table within %s", bucketNames[b])
		}
		return w.visit(b, key, value)
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.tree(root, nil, nil, 0, each)
	}
	page := value[16:]
	if len(page) < pageHeader || binary.NativeEndian.Uint64(page) != 0 || binary.NativeEndian.Uint16(page[8:]) != leafPage {
		return damaged("the table %s", bucketNames[b])
	}
	return leaf(page, 0, nil, nil, each)
}

// tree visits the entries below a page. Their keys are at least low and less than high.
func (w *walker) tree(id uint64, low, high []byte, depth int, each func(flags uint32, key, value []byte) error) error {
	if depth > 64 {
		return damaged("page %d is nested too deep", id)
	}
	page, err := w.page(id)
	if err != nil {
		return err
	}
	switch binary.NativeEndian.Uint16(page[8:]) {
	case leafPage:
		return leaf(page, id, low, high, each)
	case branchPage:
	default:
		return damaged("page %d is of an unknown kind", id)
	}
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if n == 0 || pageHeader+n*elementSize > len(page) {
		return damaged("page %d refers to %d others", id, n)
	}
	keys, children := make([][]byte, n), make([]uint64, n)
	for i := range n {
		at := pageHeader + i*elementSize
		e := page[at:]
		children[i] = binary.NativeEndian.Uint64(e[8:])
		if keys[i], err = within(page, at, n, e, binary.NativeEndian.Uint32(e[4:]), 0); err != nil {
			return damaged("page %d, element %d", id, i)
		}
		if i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 || i == 0 && low != nil && bytes.Compare(keys[i], low) < 0 ||
			high != nil && bytes.Compare(keys[i], high) >= 0 {
			return damaged("the keys of page %d are out of order", id)
		}
	}
	for i := range n {
		above := high
		if i+1 < n {
			above = keys[i+1]
		}
		if err := w.tree(children[i], keys[i], above, depth+1, each); err != nil {
			return err
		}
	}
	return nil
}

// leaf visits the entries of a page.
func leaf(page []byte, id uint64, low, high []byte, each func(flags uint32, key, value []byte) error) error {
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if pageHeader+n*elementSize > len(page) {
		return damaged("page %d holds %d entries", id, n)
	}
	before := low
	for i := range n {
		at := pageHeader + i*elementSize
		e := page[at:]
		size := binary.NativeEndian.Uint32(e[8:])
		both, err := within(page, at, n, e[4:], size, binary.NativeEndian.Uint32(e[12:]))
		if err != nil || size == 0 {
			return damaged("page %d, entry %d", id, i)
		}
		key, value := both[:size:size], both[size:]
		if c := bytes.Compare(before, key); before != nil && (c > 0 || c == 0 && i > 0) || high != nil && bytes.Compare(key, high) >= 0 {
			return damaged("the keys of page %d are out of order", id)
		}
		if err := each(binary.NativeEndian.Uint32(e), key, value); err != nil {
			return err
		}
		before = key
	}
	return nil
}

// within returns the bytes that an element refers to. pos is the field that holds their distance from the element at
// offset at.
func within(page []byte, at, n int, pos []byte, key, value uint32) ([]byte, error) {
	from := uint64(at) + uint64(binary.NativeEndian.Uint32(pos))
	to := from + uint64(key) + uint64(value)
	if from < uint64(pageHeader+n*elementSize) || to > uint64(len(page)) {
		return nil, ErrDamaged
	}
	return page[from:to:to], nil
}

// freelist checks that no free page is used.
func (w *walker) freelist(id uint64) error {
	page, err := w.page(id)
	if err != nil {
		return err
	}
	if binary.NativeEndian.Uint16(page[8:]) != freePage {
		return damaged("page %d is not the list of free pages", id)
	}
	ids := page[pageHeader:]
	n := uint64(binary.NativeEndian.Uint16(page[10:]))
	if n == 0xFFFF {
		n, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids))/8 {
		return damaged("page %d lists %d free pages", id, n)
	}
	for i := range n {
		free := binary.NativeEndian.Uint64(ids[8*i:])
		if free >= w.pages || w.used[free] {
			return damaged("page %d is used and free", free)
		}
		w.used[free] = true
	}
	return nil
}
