package fieldlist

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// The bounds of a recorder's memory. It has two generations of lists, each of up to half of them.
const (
	mostNames = 50 * MaxFields
	mostLists = 10_000
)

// The times of the background task.
const (
	flushDelay = 3 * time.Second // from the first change to its write
	maxPause   = 5 * time.Minute // between two attempts, if writes fail
	closeWait  = 3 * time.Second // how long Close waits for the last write
)

// Recorder notes which fields the points of a store have, and writes what is new in the background. It reads nothing and
// delays no write. What is lost with the process, another process or the next point records. It is safe for concurrent
// use; nil records nothing.
type Recorder struct {
	t *tenancy.Tenancy

	mu          sync.RWMutex
	now, before map[key]*list // before: those that were not used since now began
	tenants     map[string]*atomic.Int64
	names       atomic.Int64 // in the lists of now

	task task
}

// Open returns a recorder. It starts no goroutine until there is something to write.
func Open(t *tenancy.Tenancy) *Recorder {
	r := &Recorder{t: t, now: map[key]*list{}, before: map[key]*list{}, tenants: map[string]*atomic.Int64{}}
	r.task.open(r.flush)
	return r
}

// Note notes the fields of a point that was sent. cell is the timestamp of its cell.
func (r *Recorder) Note(of rowkey.ID, d *dataset.Dataset, cell bigtable.Timestamp, payload []byte) {
	if r == nil || !d.Lists() {
		return
	}
	tag := d.Tags[0]
	if d.Unpack != nil {
		tag, payload = d.Unpack(payload)
	}
	r.NoteAs(of, d.ListFamily(), tag, cell, payload)
}

// NoteAs is Note for a point of any class and tag. It ignores payloads that do not name their fields.
func (r *Recorder) NoteAs(of rowkey.ID, family, tag string, cell bigtable.Timestamp, payload []byte) {
	day, ok := dayOf(cell)
	if !ok {
		return
	}
	k := key{of.Dataset(), family}
	r.mu.RLock()
	l := r.now[k]
	changed := l != nil && l.note(tag, day, payload)
	r.mu.RUnlock()
	if l == nil {
		changed = r.withList(k, func(l *list) bool { return l.note(tag, day, payload) })
	}
	if changed {
		r.task.wake()
	}
}

// NoteFields notes the fields of a point that is decoded.
func (r *Recorder) NoteFields(of rowkey.ID, family string, cell bigtable.Timestamp, fields codec.Record) {
	day, ok := dayOf(cell)
	if ok && r.withList(key{of.Dataset(), family}, func(l *list) bool { return l.noteFields(day, fields) }) {
		r.task.wake()
	}
}

// withList notes something in a list, which is in use from then on.
func (r *Recorder) withList(k key, note func(*list) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.use(k)
	return l != nil && note(l)
}

// use returns a list, as one that is in use. It returns nil while there is no room: the next point of the dataset is
// noted when there is.
func (r *Recorder) use(k key) *list {
	if l := r.now[k]; l != nil {
		return l
	}
	if r.full() && !r.rotate() {
		r.task.hurry()
		return nil
	}
	l := r.before[k]
	if delete(r.before, k); l == nil {
		k.dataset, k.family = k.dataset.Clone(), strings.Clone(k.family)
		l = newList(k, &r.names, r.ofTenant(k.dataset.Tenant()))
	}
	r.names.Add(int64(len(l.fields)))
	r.now[l.key] = l
	return l
}

// full reports whether the generation has its share of lists or names.
func (r *Recorder) full() bool { return len(r.now) >= mostLists/2 || r.names.Load() >= mostNames/2 }

// rotate begins a generation and forgets the lists of the one before. It returns false if one of these is not written
// yet.
func (r *Recorder) rotate() bool {
	for _, l := range r.before {
		if l.dirty.Load() {
			return false
		}
	}
	for _, l := range r.before {
		r.forget(l)
	}
	r.now, r.before = map[key]*list{}, r.now
	r.names.Store(0)
	return true
}

// ofTenant returns the number of names of a tenant.
func (r *Recorder) ofTenant(name string) *atomic.Int64 {
	n := r.tenants[name]
	if n == nil {
		n = new(atomic.Int64)
		r.tenants[name] = n
	}
	return n
}

// forget removes the names of a list from those of its tenant.
func (r *Recorder) forget(l *list) {
	if l.ofTenant.Add(int64(-len(l.fields))) == 0 {
		delete(r.tenants, l.dataset.Tenant())
	}
}

// DropTenants forgets what is known of tenants, because their rows may be gone.
func (r *Recorder) DropTenants(of func(tenant string) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, lists := range []map[key]*list{r.now, r.before} {
		gone := 0
		for k, l := range lists {
			if of(k.dataset.Tenant()) {
				delete(lists, k)
				r.forget(l)
				gone += len(l.fields)
			}
		}
		if i == 0 {
			r.names.Add(int64(-gone))
		}
	}
}

// mostFlushes bounds the writes of one Flush: a list is written in a few.
const mostFlushes = 100

// Flush writes all that is not written yet.
func (r *Recorder) Flush(ctx context.Context) error {
	for range mostFlushes {
		if err := r.flush(ctx); err != nil || len(r.dirty()) == 0 {
			return err
		}
	}
	return nil
}

// Close writes what is not written yet, within some seconds, and ends the background task.
func (r *Recorder) Close() {
	if r != nil {
		r.task.close()
	}
}

// dirty returns the lists that have something to write.
func (r *Recorder) dirty() (out []*list) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, lists := range []map[key]*list{r.now, r.before} {
		for _, l := range lists {
			if l.dirty.Load() {
				out = append(out, l)
			}
		}
	}
	return out
}
