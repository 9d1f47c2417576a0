package delivery

import (
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// Pending is a point or an event that passes through a writer.
type Pending struct {
	journal.Entry
	Write points.Write
	event *event             // set instead of Write for an event of a rollup
	Taken tenancy.Generation // the state of erasures when the writer took the write
}

// overhead is about how many bytes of memory a writer needs for a point besides its key and payload.
const overhead = 384

var pendings = sync.Pool{New: func() any { return new(Pending) }}

// NewPoint returns a point for a writer. Caller may be nil.
func NewPoint(id tenant.ID, w points.Write, caller journal.Caller) *Pending {
	p := pendings.Get().(*Pending)
	p.Write = w
	p.enter(caller, buffer.Item{
		Tenant:    id.String(),
		Key:       w.Key,
		Bytes:     w.Size() + overhead,
		Mutations: int32(w.Mutations()),
		Alone:     w.Conditional(),
	})
	return p
}

// enter fills in the buffer's part of a write.
func (p *Pending) enter(caller journal.Caller, it buffer.Item) {
	p.Item, p.Caller = it, caller
	p.Item.Work = p
	if caller != nil {
		p.Item.Done = ended
	}
}

// Free lets the memory of an item's write be used again. Nothing may refer to the write any more, except to its payload
// and its texts: a request may hold them for longer.
func Free(it *buffer.Item) {
	p := Of(it)
	*p = Pending{}
	pendings.Put(p)
}

// ended reports to the caller of a write how it ended.
func ended(it *buffer.Item, out bt.Outcome) { Of(it).Caller.Ended(out) }

// Of returns the write of an item.
func Of(it *buffer.Item) *Pending { return it.Work.(*Pending) }

// Tenant implements tenancy.Write.
func (p *Pending) Tenant() string { return p.Item.Tenant }

// Path implements tenancy.Write.
func (p *Pending) Path() string {
	if p.event != nil {
		return p.event.path
	}
	return p.Write.Entity.Path()
}

// Dataset implements tenancy.Write.
func (p *Pending) Dataset() string {
	if p.event != nil {
		return p.event.to.Dataset
	}
	return p.Write.D.Name
}

// Size returns the bytes of a write's key and payload.
func (p *Pending) Size() int { return p.Item.Bytes - overhead }

// Target identifies what a write changes.
type Target struct {
	Tenant  tenant.ID
	Dataset string
	Path    string
	ID      string // in a dataset with Identity
	Time    time.Time
	Rollup  string // for an event its rollup, and Time is the start of the bucket; empty for a point
}

// Target returns what the write changes.
func (p *Pending) Target() Target {
	t := Target{Dataset: p.Dataset()}
	t.Tenant, _ = tenant.Parse(p.Item.Tenant)
	if ev := p.event; ev != nil {
		t.Rollup, t.Path, t.Time = ev.to.Rollup.Name, ev.path, time.UnixMilli(ev.event.Bucket).UTC()
		return t
	}
	t.Path, t.ID, t.Time = p.Write.Entity.Path(), p.Write.ID, p.Write.D.Precision.Time(p.Write.Units)
	return t
}
