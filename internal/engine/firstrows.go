package engine

import (
	"bytes"
	"hash/maphash"
	"slices"
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
	firstRowCost    = 300     // bytes of what is remembered besides keys and cells
	firstCellCost   = 110     // bytes of a cell besides its qualifier and value
	mostSeparators  = 64
)

// firstRows remembers the first rows of ranges of one key prefix each, such as the newest point of an entity. It holds
// one row for each prefix up to a separator, and forgets those that were not used for long.
//
// It is exact. A write makes it forget the prefixes of the write's rows before anybody can see the write. A reader adds
// what it has read only if no write was under way from before it chose its state until it asked to add, and none has
// begun for the prefix since. So what is remembered has not changed since a moment at which readers saw all writes. A
// reader uses it only if that moment was not after the reader began.
type firstRows struct {
	writes atomic.Int64  // begun, and not yet seen by all readers
	moment atomic.Uint64 // counts the begins and the ends of writes
	parts  atomic.Uint64 // bit n: it may hold prefixes with n separators
	seed   maphash.Seed
	most   int // bytes of one generation of a shard
	shards [firstRowsShards]firstRowsShard
}

type firstRowsShard struct {
	mu         sync.RWMutex
	fresh, old map[string]*firstRow
	bytes      int // of fresh
}

// firstRow is the first row at or behind a key. Only its shard changes it, and only the cost.
type firstRow struct {
	prefix string
	moment uint64
	known  bool   // false while a reader looks for it
	cost   int    // bytes, about
	from   []byte // the key
	row    []byte // the prefix of the row or, without cells, a key up to which there is no row
	cells  []rowfilter.Cell
}

// empty reports whether there is no row.
func (r *firstRow) empty() bool { return len(r.cells) == 0 }

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
	if row.empty() {
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
			s.set(row, most)
		}
		s.mu.Unlock()
	}
	return row
}

// set remembers a row. The caller holds mu.
func (s *firstRowsShard) set(row *firstRow, most int) {
	s.delete(row.prefix)
	row.cost = firstRowCost + len(row.prefix) + len(row.from) + len(row.row)
	for i := range row.cells {
		row.cost += firstCellCost + len(row.cells[i].Qualifier) + len(row.cells[i].Value)
	}
	if s.fresh == nil || s.bytes+row.cost > most {
		s.fresh, s.old, s.bytes = make(map[string]*firstRow), s.fresh, 0
	}
	s.fresh[row.prefix] = row
	s.bytes += row.cost
}

// delete forgets the row of a prefix. The caller holds mu.
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
	if prefix == nil || !f.quiet(moment) {
		return nil
	}
	row := &firstRow{prefix: string(prefix), moment: moment, from: bytes.Clone(s.lower)}
	sh := f.shard(prefix)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f.parts.Or(1 << parts) // a write that begins from now on looks for the prefix
	if !f.quiet(moment) {
		return nil
	}
	sh.set(row, f.most)
	return row
}

// quiet reports whether no write has begun or ended since a moment, and none was under way.
func (f *firstRows) quiet(moment uint64) bool {
	return f.writes.Load() == 0 && f.moment.Load() == moment
}

// answer records what the caller of ask has found: the prefix of a row and all its cells or, without cells, a key up to
// which there is no row.
func (f *firstRows) answer(asked *firstRow, row []byte, cells []rowfilter.Cell) {
	got := *asked
	got.known, got.row, got.cells = true, bytes.Clone(row), slices.Clone(cells)
	for i := range got.cells {
		c := &got.cells[i]
		c.Qualifier, c.Value = bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
	}
	f.replace(asked, &got)
}

// withdraw ends what ask has begun without an answer.
func (f *firstRows) withdraw(asked *firstRow) { f.replace(asked, nil) }

// replace replaces what ask returned, if it has not been forgotten.
func (f *firstRows) replace(asked, by *firstRow) {
	s := f.shard([]byte(asked.prefix))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fresh[asked.prefix] != asked && s.old[asked.prefix] != asked:
	case by == nil:
		s.delete(asked.prefix)
	default:
		s.set(by, f.most)
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
	var last []byte // the prefix of the row that was forgotten last
	for r := b.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return // Pebble refuses a batch that it cannot read
		}
		deletesRange := kind == pebble.InternalKeyKindRangeDelete
		if deletesRange && bytes.Compare(value, []byte{spaceCell}) <= 0 || len(key) == 0 || key[0] > spaceCell || key[0] < spaceCell && !deletesRange {
			continue // no cells
		}
		if !deletesRange && last != nil && bytes.HasPrefix(key, last) {
			continue
		}
		row, err := rowPrefix(key)
		if err != nil || deletesRange && !endsIn(row, value) {
			f.clear()
			return
		}
		f.forget(row, parts)
		last = row
	}
}

// endsIn reports whether the end of a range that begins in a row is the row's end, or before it.
func endsIn(row, end []byte) bool {
	n := len(row) - 1 // of the terminator's last byte
	return len(end) > n && bytes.Equal(end[:n], row[:n]) && end[n] <= escAfter
}

// forget forgets the prefixes of a row, whose own prefix is given.
func (f *firstRows) forget(row []byte, parts uint64) {
	for n, at := 1, tablePrefixLen; n < mostSeparators && parts>>n != 0; n++ {
		i := bytes.IndexByte(row[at:], separator)
		if i < 0 {
			return
		}
		if at += i + 1; parts&(1<<n) != 0 {
			f.shard(row[:at]).forget(row[:at])
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

// forgetAll makes a change that may concern everything that is remembered.
func (f *firstRows) forgetAll(change func()) {
	f.writes.Add(1)
	f.moment.Add(1)
	f.clear()
	change()
	f.end()
}

// clear forgets everything. A write is under way, so nothing is added meanwhile.
func (f *firstRows) clear() {
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		s.fresh, s.old, s.bytes = nil, nil, 0
		s.mu.Unlock()
	}
	f.parts.Store(0) // not earlier: another write would look for nothing while something is still remembered
}
