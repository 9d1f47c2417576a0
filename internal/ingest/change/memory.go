package change

import (
	"container/heap"
	"container/list"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Memory has the last stored point of each entity, and the newest one after it that was left out. Its memory is
// bounded: the tenant that uses most forgets the entity that it wrote longest ago. Create it with New. It is safe for
// concurrent use.
type Memory struct {
	opts Options

	mu      sync.Mutex
	bytes   int
	shares  map[string]*share
	largest shares
	waiting map[string]int // the bytes of points that wait for the outcome of another, by tenant; "" is the sum
	paused  map[string]int // tenants with deletions under way
	closed  bool

	unchanged atomic.Uint64
	again     atomic.Uint64
}

// Options configure a Memory.
type Options struct {
	// Bytes is about how much memory entities may use. Points that wait for an outcome may use half as much.
	Bytes int
	// Put gives points to the writer without waiting, because those that they were compared with were not stored. It
	// reports the outcome of a point that the writer does not take.
	Put func(*Point)
	// Erased reports whether a write belongs to what was erased since it was taken.
	Erased func(tenancy.Write, tenancy.Generation) bool
}

// New returns an empty memory.
func New(o Options) *Memory {
	return &Memory{opts: o, shares: map[string]*share{}, waiting: map[string]int{}, paused: map[string]int{}}
}

// Unchanged returns how many points were left out.
func (m *Memory) Unchanged() uint64 { return m.unchanged.Load() }

// Again returns how many points were given to the writer because those before them were not stored.
func (m *Memory) Again() uint64 { return m.again.Load() }

// Waits reports whether points wait for the outcome of another.
func (m *Memory) Waits() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting[""] > 0
}

// place identifies an entity.
type place struct{ tenant, dataset, path string }

// share is what a tenant uses.
type share struct {
	tenant   string
	bytes    int
	at       int // in the heap
	entities map[place]*entity
	used     list.List // of *entity, the one that was written last in front
}

// entity is what is known of one entity.
type entity struct {
	place
	share   *share
	used    *list.Element
	streams []*stream
}

// stream is the points of an entity that have the same fields. No two streams of an entity have a field in common.
type stream struct {
	entity *entity
	last   *Point // the newest one that was given to the writer
	held   *Point // the newest one after it, which says nothing new; nil for none
	bytes  int
}

// About how many bytes of memory an entity, a stream and a point use besides their texts and payloads.
const (
	entityBytes = 300
	streamBytes = 350
	heldBytes   = 650
)

func (p *Point) heldSize() int { return heldBytes + p.Pending.Size() }

// weigh counts the bytes of a stream after a change.
func (m *Memory) weigh(s *stream) {
	n := streamBytes + len(s.last.payload)
	for _, name := range s.last.Fields {
		n += 16 + len(name)
	}
	if s.held != nil {
		n += s.held.heldSize()
	}
	m.count(s.entity.share, n-s.bytes)
	s.bytes = n
}

func (m *Memory) count(sh *share, bytes int) {
	m.bytes += bytes
	sh.bytes += bytes
	heap.Fix(&m.largest, sh.at)
}

// entity returns an entity, or nil, and notes that it is used.
func (m *Memory) entity(at place) *entity {
	sh := m.shares[at.tenant]
	if sh == nil {
		return nil
	}
	e := sh.entities[at]
	if e != nil {
		sh.used.MoveToFront(e.used)
	}
	return e
}

// add adds an entity.
func (m *Memory) add(at place) *entity {
	sh := m.shares[at.tenant]
	if sh == nil {
		sh = &share{tenant: at.tenant, entities: map[place]*entity{}}
		m.shares[at.tenant] = sh
		heap.Push(&m.largest, sh)
	}
	e := &entity{place: at, share: sh}
	e.used = sh.used.PushFront(e)
	sh.entities[at] = e
	m.count(sh, e.size())
	return e
}

func (at place) size() int { return entityBytes + len(at.tenant) + len(at.dataset) + len(at.path) }

// remove forgets a stream, and its entity with the last one. It returns the point that the stream held, or nil.
func (m *Memory) remove(s *stream) (held *Point) {
	e := s.entity
	if i := slices.Index(e.streams, s); i >= 0 {
		e.streams = slices.Delete(e.streams, i, i+1)
		m.count(e.share, -s.bytes)
		held, s.held, s.bytes = s.held, nil, 0
	}
	if len(e.streams) == 0 && e.share.entities[e.place] == e {
		m.drop(e)
	}
	return held
}

// drop removes an entity without streams, and its share with the last one.
func (m *Memory) drop(e *entity) {
	sh := e.share
	delete(sh.entities, e.place)
	sh.used.Remove(e.used)
	m.count(sh, -e.size())
	if len(sh.entities) == 0 {
		heap.Remove(&m.largest, sh.at)
		delete(m.shares, sh.tenant)
	}
}

// forget removes the streams of an entity, and returns the points that they held, which are then to be stored.
func (m *Memory) forget(e *entity, which func(*stream) bool) (held []*Point) {
	for i := len(e.streams) - 1; i >= 0; i-- {
		if s := e.streams[i]; which(s) {
			held = promote(held, m.remove(s))
		}
	}
	return held
}

func all(*stream) bool { return true }

// promote appends a point that was left out and is now to be stored, unless it is nil.
func promote(list []*Point, p *Point) []*Point {
	if p == nil {
		return list
	}
	p.state = given
	return append(list, p)
}

// makeRoom forgets entities until the rest fits, and returns the points that they held.
func (m *Memory) makeRoom() (held []*Point) {
	for m.bytes > m.opts.Bytes {
		oldest := m.largest[0].used.Back().Value.(*entity)
		held = append(held, m.forget(oldest, all)...)
	}
	return held
}

// release frees the write of a point that will not be stored.
func (p *Point) release() {
	if p.Pending != nil {
		delivery.Free(&p.Pending.Item)
		p.Pending = nil
	}
}

// shares is a heap of tenants, the one that uses most first.
type shares []*share

func (h shares) Len() int           { return len(h) }
func (h shares) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h shares) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *shares) Push(x any) {
	sh := x.(*share)
	sh.at = len(*h)
	*h = append(*h, sh)
}

func (h *shares) Pop() any {
	last := len(*h) - 1
	sh := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return sh
}
