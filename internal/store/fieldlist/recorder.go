package fieldlist

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// The bounds of a recorder's memory. A name takes about 200 bytes.
const (
	mostNames    = 100_000
	mostOfTenant = 10_000
	mostLists    = 10_000
	sweepPause   = time.Hour // how often a full recorder forgets, because what it forgets is written again
)

// The times of the background task.
const (
	flushDelay = 3 * time.Second // from the first change to its write
	maxPause   = 5 * time.Minute // between two attempts, if writes fail
	closeWait  = 3 * time.Second // how long Close waits for the last write
)

// Recorder notes which fields the points of a store have, and writes what is new in the background. It reads nothing
// and delays no write. What is lost with the process, another process or the next point records. It is safe for
// concurrent use; nil records nothing.
type Recorder struct {
	t    *tenancy.Tenancy
	ctx  context.Context // of the background task
	stop context.CancelFunc
	task sync.WaitGroup

	mu      sync.RWMutex
	lists   map[rowkey.ID]*list
	tenants map[string]*atomic.Int64 // the names of each
	names   atomic.Int64             // of all
	swept   time.Time
	running bool // the task
	closed  bool
}

// Open returns a recorder. It starts no goroutine until there is something to write.
func Open(t *tenancy.Tenancy) *Recorder {
	r := &Recorder{t: t, lists: map[rowkey.ID]*list{}, tenants: map[string]*atomic.Int64{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Note notes the fields of a point that is or may be stored. cell is the timestamp of its cell.
func (r *Recorder) Note(of rowkey.ID, d *dataset.Dataset, cell bigtable.Timestamp, payload []byte) {
	if r == nil || !d.Lists() {
		return
	}
	r.with(of, d.ListFamily(), cell, func(l *list) {
		if l.hasAll(d.Shape) {
			return
		}
		if d.Unpack != nil {
			var err error
			if payload, err = d.Unpack(payload); err != nil {
				return
			}
		}
		if s := d.Shape; s != nil && (s.Typed || !fields.Named(d.Format)) {
			l.noteTyped(s, d.Format, payload)
			return
		}
		fields.Kinds(d.Format, payload, l.see)
	})
}

// NoteFields notes the fields of a point that is decoded.
func (r *Recorder) NoteFields(of rowkey.ID, family string, cell bigtable.Timestamp, point codec.Record) {
	r.with(of, family, cell, func(l *list) {
		for name, v := range point.All() {
			l.see([]byte(name), v.Kind())
		}
	})
}

// with calls visit with the list to which it adds the fields of a point.
func (r *Recorder) with(of rowkey.ID, family string, cell bigtable.Timestamp, visit func(l *list)) {
	day, ok := dayOf(cell)
	if !ok {
		return
	}
	l := r.noted(of)
	if l == nil {
		l = r.add(of.Dataset())
	}
	if l != nil && l.with(family, day, visit) {
		r.wake()
	}
}

// add adds a list. It returns nil while there is no room: the next point of the dataset is noted when there is.
func (r *Recorder) add(of rowkey.ID) *list {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lists[of]; l != nil {
		return l
	}
	if r.full() {
		r.sweep()
		if r.full() {
			return nil
		}
	}
	of = of.Clone()
	n := r.tenants[of.Tenant()]
	if n == nil {
		n = new(atomic.Int64)
		r.tenants[of.Tenant()] = n
	}
	l := newList(of, counts{n, &r.names})
	r.lists[of] = l
	return l
}

func (r *Recorder) full() bool { return len(r.lists) >= mostLists || r.names.Load() >= mostNames }

// sweep forgets the lists that are written, unless it did not long ago.
func (r *Recorder) sweep() {
	if now := time.Now(); now.Sub(r.swept) >= sweepPause {
		r.swept = now
		r.drop(func(l *list) bool { return !l.dirty })
	}
}

// drop forgets lists.
func (r *Recorder) drop(which func(*list) bool) {
	for of, l := range r.lists {
		l.mu.Lock()
		if which(l) {
			delete(r.lists, of)
			l.names.add(-len(l.fields))
		}
		l.mu.Unlock()
	}
	for name, n := range r.tenants {
		if n.Load() == 0 {
			delete(r.tenants, name)
		}
	}
}

// DropTenants forgets what is known of tenants, because their rows may be gone.
func (r *Recorder) DropTenants(of func(tenant string) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(func(l *list) bool { return of(l.of.Tenant()) })
}
