package engine

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

const (
	separator = '#' // ends the parts of row keys, by the custom of Bigtable's users

	firstRowsShards = 16
	firstRowsShare  = 4       // its part of the cache's bytes
	firstRowCells   = 4       // most cells of a row that is remembered
	firstRowBytes   = 1 << 10 // most bytes of them
	firstRowCost    = 300     // bytes of a memory besides its keys and values
	mostSeparators  = 64
)

// firstRows remembers the first rows of ranges of one key prefix each, such as the newest point of an entity. It holds
// one memory for each prefix up to a separator, and forgets those that were not used for long.
//
// It is exact. A write makes it forget the prefixes of the write's rows before anybody can see the write. A reader adds
// what it has read only if no write was under way from before it chose its state until it asked to add, and none has
// begun for the prefix since. So what is remembered has not changed since a moment at which readers saw all writes. A
// reader uses it only if that moment was not after the reader began.
type firstRows struct {
	writes atomic.Int64  // begun, and not yet seen by all readers
	moment atomic.Uint64 // counts the begins and the ends of writes
	parts  atomic.Uint64 // bit n: there may be memories of prefixes with n separators
	seed   maphash.Seed
	most   int // bytes of one generation of a shard
	shards [firstRowsShards]firstRowsShard
}

type firstRowsShard struct {
	mu         sync.RWMutex
	fresh, old map[string]*firstRow
	bytes      int // of fresh
}

// firstRow is the first row at or behind a key. It does not change.
type firstRow struct {
	moment uint64
	known  bool   // false while a reader looks for it
	cost   int    // bytes, about
	from   []byte // the key
	row    []byte // the prefix of the row or, without cells, a key up to which there is no row
	cells  []rowfilter.Cell
}

// prefixOf returns the part of a span's keys, up to a separator, that all its rows share, and how many separators it
// has. Without one, or for a span of one row, it returns nil.
func prefixOf(s span) (prefix []byte, parts int) {
	n := 0
	for n < len(s.lower) && n < len(s.upper) && s.lower[n] == s.upper[n] {
		n++
	}
	if n == len(s.lower)-1 && s.lower[n] == escEnd && s.lower[n-1] == escByte && len(s.upper) == len(s.lower) {
		return nil, 0
	}
	if n = bytes.LastIndexByte(s.lower[:n], separator) + 1; n <= tablePrefixLen {
		return nil, 0
	}
	prefix = s.lower[:n]
	parts = bytes.Count(prefix[tablePrefixLen:], []byte{separator})
	if parts >= mostSeparators {
		return nil, 0
	}
	return prefix, parts
}

func (f *firstRows) shard(prefix []byte) *firstRowsShard {
	return &f.shards[maphash.Bytes(f.seed, prefix)%firstRowsShards]
}

var noRow firstRow

// find returns the first row of a span, or no cells if the span has none. moment is the moment before the caller chose
// its state.
func (f *firstRows) find(s span, moment uint64) (row *firstRow, found bool) {
	prefix, _ := prefixOf(s)
	if prefix == nil {
		return nil, false
	}
	row = f.shard(prefix).get(prefix, f.most)
	if row == nil || !row.known || row.moment > moment || bytes.Compare(row.from, s.lower) > 0 {
		return nil, false
	}
	if row.cells == nil {
		return row, bytes.Compare(s.upper, row.row) <= 0
	}
	if bytes.Compare(row.row, s.upper) >= 0 {
		return &noRow, true
	}
	return row, bytes.Compare(row.row, s.lower) >= 0
}

func (s *firstRowsShard) get(prefix []byte, most int) *firstRow {
	s.mu.RLock()
	row, fresh := s.fresh[string(prefix)]
	if !fresh {
		row = s.old[string(prefix)]
	}
	s.mu.RUnlock()
	if row != nil && !fresh {
		s.mu.Lock()
		if s.old[string(prefix)] == row {
			s.set(string(prefix), row, most)
		}
		s.mu.Unlock()
	}
	return row
}

// set sets the memory of a prefix. The caller holds mu.
func (s *firstRowsShard) set(prefix string, row *firstRow, most int) {
	s.delete(prefix)
	row.cost = firstRowCost + 2*len(prefix) + len(row.from) + len(row.row)
	for i := range row.cells {
		row.cost += len(row.cells[i].Qualifier) + len(row.cells[i].Value)
	}
	if s.fresh == nil || s.bytes+row.cost > most {
		s.fresh, s.old, s.bytes = make(map[string]*firstRow), s.fresh, 0
	}
	s.fresh[prefix] = row
	s.bytes += row.cost
}

// delete deletes the memory of a prefix. The caller holds mu.
func (s *firstRowsShard) delete(prefix string) {
	if row := s.fresh[prefix]; row != nil {
		s.bytes -= row.cost
		delete(s.fresh, prefix)
	}
	delete(s.old, prefix)
}

// ask begins to look for the first row of a span. It returns nil if what the caller will find must not be remembered.
func (f *firstRows) ask(s span, moment uint64) *firstRow {
	prefix, parts := prefixOf(s)
	if prefix == nil || f.writes.Load() != 0 {
		return nil
	}
	row := &firstRow{moment: moment, from: bytes.Clone(s.lower)}
	sh := f.shard(prefix)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f.parts.Or(1 << parts) // a write that begins from now on looks for the prefix
	if f.writes.Load() != 0 || f.moment.Load() != moment {
		return nil
	}
	sh.set(string(prefix), row, f.most)
	return row
}

// answer records what the caller of ask has found: a row with all its cells, or none in the span.
func (f *firstRows) answer(asked *firstRow, s span, row []byte, cells []rowfilter.Cell) {
	prefix, _ := prefixOf(s)
	got := &firstRow{moment: asked.moment, known: true, from: asked.from}
	if len(cells) == 0 {
		got.row = bytes.Clone(s.upper)
	} else {
		got.row = bytes.Clone(row)
		got.cells = make([]rowfilter.Cell, len(cells))
		for i, c := range cells {
			c.Qualifier, c.Value = bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
			got.cells[i] = c
		}
	}
	sh := f.shard(prefix)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.fresh[string(prefix)] == asked || sh.old[string(prefix)] == asked {
		sh.set(string(prefix), got, f.most)
	}
}

// begin forgets what a batch may change. Nobody sees the batch before it returns. The caller calls end once readers see
// the batch.
func (f *firstRows) begin(b *pebble.Batch) {
	f.writes.Add(1)
	f.moment.Add(1)
	parts := f.parts.Load()
	if parts == 0 {
		return
	}
	for r := b.Reader(); ; {
		kind, key, _, ok, err := r.Next()
		if !ok || err != nil {
			return // Pebble refuses a batch that it cannot read
		}
		switch {
		case kind == pebble.InternalKeyKindRangeDelete:
			f.clear()
		case len(key) > tablePrefixLen && key[0] == spaceCell:
			f.forget(key, parts)
		}
	}
}

// forget forgets the prefixes of a cell's row.
func (f *firstRows) forget(key []byte, parts uint64) {
	end, ok := escapedEnd(key[tablePrefixLen:])
	if !ok {
		return
	}
	for n, at := 1, tablePrefixLen; n < mostSeparators && parts>>n != 0; n++ {
		i := bytes.IndexByte(key[at:tablePrefixLen+end], separator)
		if i < 0 {
			return
		}
		if at += i + 1; parts&(1<<n) != 0 {
			f.shard(key[:at]).forget(key[:at])
		}
	}
}

func (s *firstRowsShard) forget(prefix []byte) {
	s.mu.RLock()
	_, fresh := s.fresh[string(prefix)]
	_, old := s.old[string(prefix)]
	s.mu.RUnlock()
	if fresh || old {
		s.mu.Lock()
		s.delete(string(prefix))
		s.mu.Unlock()
	}
}

func (f *firstRows) end() {
	f.moment.Add(1)
	f.writes.Add(-1)
}

// change makes a change that concerns what is remembered of whole tables.
func (f *firstRows) change(make func()) {
	f.writes.Add(1)
	f.moment.Add(1)
	f.clear()
	make()
	f.end()
}

// clear forgets everything.
func (f *firstRows) clear() {
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		s.fresh, s.old, s.bytes = nil, nil, 0
		s.mu.Unlock()
	}
}
