package spool

import (
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// source is a block as it was when the commit was planned.
type source struct {
	b    *block
	done bitmap // including the records that the commit buries
	left int
	role role
}

type role int

const (
	leave  role = iota
	remove      // the block has no record left
	note        // write which of its records are done
	merge       // write its remaining records into another block
)

// burial is a record that the commit turns into a dead letter.
type burial struct {
	src   *source
	place int
	dead  Dead
}

// run is a row of neighbouring blocks, empty ones left out, and the blocks that replace them.
type run struct {
	from []*source
	to   []*block
}

// work is one commit: first its plan, then its result.
type work struct {
	now     func() time.Time
	batch   []*request
	sources map[*block]*source
	burials []burial
	runs    []*run
	tail    *run // the appended records, and the last block if they continue it

	state     state // after the commit
	deadBytes int64 // added or removed
	metas     map[string][]byte
}

// plan decides, under the lock, what a commit does to the existing blocks, so that the commit itself need not hold the
// lock. If blocks limits how many empty blocks it may remove, it does nothing else.
func (s *Spool) plan(batch []*request, flush bool, blocks int) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = true
	w := s.newWork(batch)
	appends := false
	for _, r := range batch {
		appends = appends || r.records > 0 || len(r.revive) > 0
		for _, d := range r.bury {
			b, place, ok := s.index.find(d.Seq)
			if !ok || b.done.has(place) {
				continue
			}
			src := w.source(b)
			if src.done.has(place) {
				continue
			}
			if src.done == nil {
				src.done = newBitmap(b.n)
			}
			src.done.set(place)
			src.left--
			src.role = note
			w.burials = append(w.burials, burial{src, place, d})
		}
	}
	for _, b := range s.index.dirty {
		switch {
		case b.left == 0:
			if blocks--; blocks >= 0 {
				w.source(b).role = remove
			}
		case flush:
			w.source(b).role = note
		}
	}
	for _, src := range w.sources {
		if src.left == 0 {
			src.role = remove
		}
	}
	if list := s.index.list; appends && len(list) > 0 {
		last := list[len(list)-1]
		if last.end() == s.state.next && last.size < tailBytes && last.left > 0 {
			if src := w.source(last); src.role != remove {
				src.role, w.tail.from = merge, []*source{src}
			}
		}
	}
	s.thin(w)
	return w
}

// newWork returns a commit that does nothing yet. The caller holds the spool's mu.
func (s *Spool) newWork(batch []*request) *work {
	return &work{now: s.o.Clock, batch: batch, sources: map[*block]*source{}, tail: &run{}, state: s.state, metas: map[string][]byte{}}
}

// source returns the commit's view of a block. The caller holds the spool's mu.
func (w *work) source(b *block) *source {
	src := w.sources[b]
	if src == nil {
		src = &source{b: b, done: slices.Clone(b.done), left: b.left}
		w.sources[b] = src
	}
	return src
}

// thin looks at blocks of which little is left. Instead of writing their marks, it rewrites them without their done
// records, together with small blocks in front of them: otherwise one record that cannot be delivered would keep a
// whole block. The caller holds the spool's mu.
func (s *Spool) thin(w *work) {
	var seqs []uint64
	for b, src := range w.sources {
		if src.role == note && src.left*4 <= b.n && b.size > tailBytes/8 {
			seqs = append(seqs, b.first)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		at := s.index.at(seq)
		src := w.sources[s.index.list[at]]
		if src.role != note {
			continue
		}
		from, size := []*source{src}, src.b.size/4
		for i := at - 1; i >= 0 && at-i < 1000; i-- {
			b := s.index.list[i]
			old := w.sources[b]
			if b.left == 0 || old != nil && old.role == remove {
				continue
			}
			if old != nil && old.role == merge || b.size >= tailBytes || size+b.size > blockBytes {
				break
			}
			from, size = append(from, w.source(b)), size+b.size
		}
		slices.Reverse(from)
		for _, src := range from {
			src.role = merge
		}
		w.runs = append(w.runs, &run{from: from})
	}
}

// apply executes the work in a transaction and leaves in w what publish needs.
func (w *work) apply(tx *bolt.Tx) error {
	t := txn{tx, &w.state}
	if err := w.buryAll(t); err != nil {
		return err
	}
	for _, src := range w.sources {
		var err error
		switch src.role {
		case remove:
			err = src.delete(t)
		case note:
			_, err = t.put(marks, seqKey(src.b.first), slices.Clone(src.done))
		}
		if err != nil {
			return err
		}
	}
	for _, r := range w.runs {
		out := writer{t: t, run: r}
		if err := out.move(); err != nil {
			return err
		}
		if err := out.flush(); err != nil {
			return err
		}
	}
	out := writer{t: t, run: w.tail}
	if err := out.move(); err != nil {
		return err
	}
	for _, r := range w.batch {
		if err := w.one(t, &out, r); err != nil {
			return err
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	return t.putState()
}

// one executes a request, except its burials.
func (w *work) one(t txn, out *writer, r *request) error {
	r.first = w.state.next
	for body := r.body; len(body) > 0; {
		var whole []byte
		out.b.more = len(body)
		whole, body = nextFrame(body)
		if err := out.append(whole); err != nil {
			return err
		}
	}
	if err := w.unbury(t, out, r); err != nil {
		return err
	}
	if r.meta == nil {
		return nil
	}
	return w.setMeta(t, r.meta)
}

func (w *work) setMeta(t txn, m *meta) error {
	key := []byte(m.name)
	if m.remove {
		old, err := load(t.tx, metas, key)
		if err != nil || old == nil {
			return err
		}
		w.metas[m.name] = nil
		return t.delete(metas, key)
	}
	w.metas[m.name] = m.value
	_, err := t.put(metas, key, slices.Clone(m.value))
	return err
}
