package fieldlist

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// key identifies a list: the fields of a tenant's dataset in one class.
type key struct {
	dataset rowkey.ID
	family  string
}

// list is what this process has seen of a dataset's fields.
type list struct {
	key
	row   string
	dirty atomic.Bool // something is not written yet
	// How many names the lists in use have, and those of the tenant.
	all, ofTenant *atomic.Int64

	mu      sync.Mutex
	fields  map[string][]*seen
	omitted map[uint64]bool // hashes of names that are left out, up to MaxFields
	walker  walker
	day     int32 // of the point that the walker reads

	omittedDay   int32
	omittedDirty bool
}

// seen is a kind of a field, and the days on which it was seen. A day that is not written yet is dirty.
type seen struct {
	kind                  codec.Kind
	first, last           int32
	firstDirty, lastDirty bool
}

// mostOfTenant is how many names the lists of one tenant may hold, so that no tenant drives out all others.
const mostOfTenant = 10 * MaxFields

func newList(k key, all, ofTenant *atomic.Int64) *list {
	l := &list{key: k, row: k.dataset.FieldsRow(), all: all, ofTenant: ofTenant, fields: map[string][]*seen{}}
	l.walker.visit = l.visit
	return l
}

// note adds the fields of a point, and reports whether there is something to write that was not there before.
func (l *list) note(tag string, day int32, payload []byte) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.dirty.Load()
	l.day = day
	l.walker.walk(tag, payload)
	return !was && l.dirty.Load()
}

// noteFields is note for a point that is decoded.
func (l *list) noteFields(day int32, fields codec.Record) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.dirty.Load()
	l.day = day
	for name, v := range fields.All() {
		l.visit([]byte(name), v.Kind())
	}
	return !was && l.dirty.Load()
}

// visit adds a field of the current point.
func (l *list) visit(name []byte, k codec.Kind) {
	all := l.fields[string(name)]
	for _, s := range all {
		if s.kind == k {
			if l.day < s.first || l.day > s.last {
				l.extend(s)
			}
			return
		}
	}
	if all == nil && !l.room(name) {
		l.omit(name)
		return
	}
	l.fields[string(name)] = append(all, &seen{k, l.day, l.day, true, true})
	l.dirty.Store(true)
}

// room reports whether a new name can be listed, and counts it.
func (l *list) room(name []byte) bool {
	if !valid(name) || len(l.fields) >= MaxFields || l.ofTenant.Load() >= mostOfTenant {
		return false
	}
	l.all.Add(1)
	l.ofTenant.Add(1)
	return true
}

func (l *list) extend(s *seen) {
	if l.day < s.first {
		s.first, s.firstDirty = l.day, true
	} else {
		s.last, s.lastDirty = l.day, true
	}
	l.dirty.Store(true)
}

var seed = maphash.MakeSeed()

// omit counts a name that is left out. It says so once for each doubling of the number, and each day.
func (l *list) omit(name []byte) {
	h, n := maphash.Bytes(seed, name), len(l.omitted)
	if l.omitted == nil {
		l.omitted = map[uint64]bool{}
	}
	if n < MaxFields {
		l.omitted[h] = true
	}
	doubled := len(l.omitted) > n && len(l.omitted)&n == 0
	if doubled || l.day > l.omittedDay {
		l.omittedDay, l.omittedDirty = max(l.day, l.omittedDay), true
		l.dirty.Store(true)
	}
}

// written is a part of a list that is being written.
type written struct {
	l             *list
	firsts, lasts []*seen
	omitted       bool
	ops           int // mutations
}

// mostOps bounds the mutations of one row in one flush.
const mostOps = 20_000

// take adds what is not written yet to a mutation, and takes it as written. The rest of a large list stays.
func (l *list) take(m *bigtable.Mutation) written {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := written{l: l}
	l.dirty.Store(false)
	for name, kinds := range l.fields {
		for _, s := range kinds {
			if w.ops >= mostOps {
				l.dirty.Store(true)
				return w
			}
			w.take(m, name, s)
		}
	}
	if l.omittedDirty {
		setOmitted(m, l.family, l.omittedDay, len(l.omitted))
		l.omittedDirty, w.omitted = false, true
		w.ops += 2
	}
	return w
}

func (w *written) take(m *bigtable.Mutation, name string, s *seen) {
	if s.firstDirty {
		setFirst(m, w.l.family, name, s.kind, s.first)
		s.firstDirty = false
		w.firsts, w.ops = append(w.firsts, s), w.ops+2
	}
	if s.lastDirty {
		setLast(m, w.l.family, name, s.kind, s.last)
		s.lastDirty = false
		w.lasts, w.ops = append(w.lasts, s), w.ops+2
	}
}

// undo says that the part was not written.
func (w *written) undo() {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	for _, s := range w.firsts {
		s.firstDirty = true
	}
	for _, s := range w.lasts {
		s.lastDirty = true
	}
	w.l.omittedDirty = w.l.omittedDirty || w.omitted
	w.l.dirty.Store(true)
}
