package journal

import "slices"

// turn is how many bytes of a tenant's writes go into a group before the next tenant's.
const turn = 64 << 10

// queue holds the writes that wait for a sync. Tenants take turns, so a tenant that floods the journal does not delay
// the others. The writes of one tenant keep their order. The zero value is an empty queue.
type queue struct {
	tenants map[string]*lane
	turns   []*lane // those with writes; the first has the next turn
	bytes   int     // held by all tenants
}

// lane holds the writes of one tenant.
type lane struct {
	entries []*Entry
	held    int // bytes of writes that wait, or whose callers were not called yet
}

// hasRoom reports whether a write of some bytes may be added. A tenant that is alone fills 7/8 of the room; the rest is
// for others.
func (q *queue) hasRoom(tenant string, bytes int) bool {
	free := maxQueued - q.bytes - bytes
	l := q.tenants[tenant]
	return q.bytes == 0 || free >= 0 && (l == nil || l.held+bytes <= maxShare*free)
}

// floods reports whether a tenant holds more than four turns of the queue. Its callers then yield the processor, as in
// package buffer.
func (q *queue) floods(tenant string) bool { return q.tenants[tenant].held > 4*turn }

// push adds a write.
func (q *queue) push(e *Entry) {
	l := q.tenants[e.Item.Tenant]
	if l == nil {
		if l = new(lane); q.tenants == nil {
			q.tenants = map[string]*lane{}
		}
		q.tenants[e.Item.Tenant] = l
	}
	if len(l.entries) == 0 {
		q.turns = append(q.turns, l)
	}
	l.entries = append(l.entries, e)
	l.held += len(e.record)
	q.bytes += len(e.record)
}

// free gives back the room of writes that have left the queue.
func (q *queue) free(tenant string, bytes int) {
	l := q.tenants[tenant]
	l.held -= bytes
	q.bytes -= bytes
	if l.held == 0 {
		delete(q.tenants, tenant)
	}
}

// take removes a group of at most size bytes, but at least one write.
func (q *queue) take(size int) (group []*Entry) {
	bytes := 0
	for len(q.turns) > 0 {
		l := q.turns[0]
		n, of := 0, 0
		for n < len(l.entries) && of < turn {
			record := len(l.entries[n].record)
			if bytes+of+record > size && len(group)+n > 0 {
				return append(group, l.cut(n)...)
			}
			of += record
			n++
		}
		bytes += of
		group = append(group, l.cut(n)...)
		if q.turns = q.turns[1:]; len(l.entries) > 0 {
			q.turns = append(q.turns, l)
		}
	}
	return group
}

// cut removes the first writes of a lane.
func (l *lane) cut(n int) (first []*Entry) {
	first = slices.Clone(l.entries[:n])
	clear(l.entries[:n])
	l.entries = l.entries[n:]
	return first
}

// putBack puts a group back in front of all other writes.
func (q *queue) putBack(group []*Entry) {
	for len(group) > 0 {
		from, tenant := len(group)-1, group[len(group)-1].Item.Tenant
		for from > 0 && group[from-1].Item.Tenant == tenant {
			from--
		}
		l := q.tenants[tenant]
		q.turns = slices.DeleteFunc(q.turns, func(other *lane) bool { return other == l })
		l.entries = slices.Concat(group[from:], l.entries)
		q.turns = slices.Insert(q.turns, 0, l)
		group = group[:from]
	}
}

// first returns the write with the next turn, or nil.
func (q *queue) first() *Entry {
	if len(q.turns) == 0 {
		return nil
	}
	return q.turns[0].entries[0]
}

// oldest returns the number of the write that was pushed first, or 0 if there is none.
func (q *queue) oldest() (seq uint64) {
	for _, l := range q.turns {
		if first := l.entries[0].seq; seq == 0 || first < seq {
			seq = first
		}
	}
	return seq
}

// remove takes out the writes that a function selects. Their room is not free yet.
func (q *queue) remove(selected func(*Entry) bool) (removed []*Entry) {
	for _, l := range q.turns {
		l.entries = slices.DeleteFunc(l.entries, func(e *Entry) bool {
			if selected(e) {
				removed = append(removed, e)
				return true
			}
			return false
		})
	}
	q.turns = slices.DeleteFunc(q.turns, func(l *lane) bool { return len(l.entries) == 0 })
	return removed
}
