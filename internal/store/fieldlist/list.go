package fieldlist

import (
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// list is what this process has seen of the fields of a tenant's dataset.
type list struct {
	of    rowkey.ID
	names *counts

	mu     sync.Mutex
	fields map[string][]*seen
	dirty  bool // the table may lack something
	// What see works on.
	family string
	day    int32
	see    func(name []byte, k codec.Kind)

	whole struct { // when points had all fields of a type
		of     *fields.Shape
		family string
		at     days
	}
	omitted struct {
		hashes map[uint64]bool // of names that are left out, up to MaxFields
		family string
		day    int32
		told   days // the number and the day that the table has
	}
}

// seen is a kind of a field in one class.
type seen struct {
	family string
	kind   codec.Kind
	at     days
	stored days // what the table has: none if last is before first
}

// counts are the names that the lists of one tenant, and all lists, have.
type counts struct{ tenant, all *atomic.Int64 }

func (c counts) add(n int) { c.tenant.Add(int64(n)); c.all.Add(int64(n)) }

func newList(of rowkey.ID, names counts) *list {
	l := &list{of: of, names: &names, fields: map[string][]*seen{}}
	l.see = l.note
	return l
}

// with calls visit, which adds the fields of one point. It reports whether the list has become dirty.
func (l *list) with(family string, day int32, visit func(*list)) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.dirty
	l.family, l.day = family, day
	visit(l)
	return l.dirty && !was
}

// hasAll reports whether the list has all fields of a type on the day of the point at hand.
func (l *list) hasAll(of *fields.Shape) bool {
	w := &l.whole
	return of != nil && w.of == of && w.family == l.family && w.at.first <= l.day && l.day <= w.at.last
}

// noteTyped adds the fields that a payload of a type has, except those whose kind the type does not say. After a
// payload with all fields of the type, hasAll is true on this day.
func (l *list) noteTyped(of *fields.Shape, format string, payload []byte) {
	n := 0
	err := fields.Split(format, of, payload, func(path string, raw []byte) {
		leaf := of.Leaf(path)
		k := leaf.KindOf()
		if fields.IsNull(format, raw) {
			k = codec.KindNull
		} else {
			n++
		}
		if k != codec.KindInvalid {
			l.note([]byte(leaf.Name), k)
		}
	})
	if w := &l.whole; err == nil && n == len(of.Leaves) {
		if w.of != of || w.family != l.family {
			w.of, w.family, w.at = of, l.family, days{l.day, l.day}
		}
		w.at = days{min(w.at.first, l.day), max(w.at.last, l.day)}
	}
}

// note adds a field of the point at hand.
func (l *list) note(name []byte, k codec.Kind) {
	all := l.fields[string(name)]
	for _, s := range all {
		if s.kind != k || s.family != l.family {
			continue
		}
		if l.day < s.at.first || l.day > s.at.last {
			s.at = days{min(s.at.first, l.day), max(s.at.last, l.day)}
			l.dirty = true
		}
		return
	}
	if all == nil {
		if !valid(name) || len(l.fields) >= MaxFields || l.names.tenant.Load() >= mostOfTenant || l.names.all.Load() >= mostNames {
			l.omit(name)
			return
		}
		l.names.add(1)
	}
	s := &seen{family: l.family, kind: k, at: days{l.day, l.day}, stored: days{0, -1}}
	l.fields[string(name)] = append(all, s)
	l.dirty = true
}

var seed = maphash.MakeSeed()

// omit counts a name that is left out.
func (l *list) omit(name []byte) {
	o := &l.omitted
	if o.hashes == nil {
		o.hashes = map[uint64]bool{}
	}
	if len(o.hashes) < MaxFields {
		o.hashes[maphash.Bytes(seed, name)] = true
	}
	o.day = max(o.day, l.day)
	// The number is written when it has doubled, and on each new day.
	if n := int32(len(o.hashes)); n >= 2*o.told.first || o.day > o.told.last {
		o.family, l.dirty = l.family, true
	}
}

// change is what is written to the row of a list.
type change struct {
	*list
	mutation *bigtable.Mutation
	ops      int
	parts    []part
	omitted  days
}

// part is a field of a change.
type part struct {
	*seen
	to days
}

// take returns what the table lacks. Until written or failed is called, it counts as written.
func (l *list) take() *change {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &change{list: l, mutation: bigtable.NewMutation(), omitted: l.omitted.told}
	l.dirty = false
	for name, all := range l.fields {
		for _, s := range all {
			if s.stored != s.at {
				c.add(name, s)
			}
		}
	}
	o := &l.omitted
	if to := (days{int32(len(o.hashes)), o.day}); to != o.told {
		c.ops += set(c.mutation, o.family, omittedColumn, o.day, strconv.AppendInt(nil, int64(to.first), 10))
		c.omitted = to
	}
	return c
}

func (c *change) add(name string, s *seen) {
	c.ops += set(c.mutation, s.family, column(s.at.first, s.kind, name), s.at.last, nil)
	if was := s.stored; was.first <= was.last && was.first != s.at.first {
		c.mutation.DeleteTimestampRange(s.family, column(was.first, s.kind, name), 0, endOf(was.last)+1000)
		c.ops++
	}
	c.parts = append(c.parts, part{s, s.at})
}

func (c *change) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		p.stored = p.to
	}
	c.list.omitted.told = c.omitted
}

func (c *change) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = true
}
