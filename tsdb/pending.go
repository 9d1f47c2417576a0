package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// pending is a point or an event on its way through a writer.
type pending struct {
	journal.Entry
	write      points.Write
	event      *event             // in the place of write, for an event that is added to a rollup
	generation tenancy.Generation // what was known of erasures when it was taken
}

// overhead is about how many bytes of memory a writer takes for a point, without its key and payload.
const overhead = 384

func newPending(id tenant.ID, w points.Write, caller journal.Caller) *pending {
	p := &pending{write: w}
	p.enter(caller, buffer.Item{
		Tenant:    id.String(),
		Key:       w.Key,
		Bytes:     w.Size() + overhead,
		Mutations: int32(w.Mutations()),
		Alone:     w.Conditional(),
	})
	return p
}

// enter sets what the buffer knows of the write.
func (p *pending) enter(caller journal.Caller, it buffer.Item) {
	p.Item, p.Caller = it, caller
	p.Item.Work = p
	if caller != nil {
		p.Item.Done = ended
	}
}

// ended tells the caller of a write how it ended.
func ended(it *buffer.Item, out bt.Outcome) { of(it).Caller.Ended(out) }

// of returns the write of an item.
func of(it *buffer.Item) *pending { return it.Work.(*pending) }

// Tenant implements tenancy.Write.
func (p *pending) Tenant() string { return p.Item.Tenant }

// Path implements tenancy.Write.
func (p *pending) Path() (string, bool) {
	if p.event != nil {
		return p.event.path, true
	}
	id, _, ok := rowkey.PointID(p.write.Key, p.write.D.Salts, p.write.D.Identity)
	return id.Path(), ok
}

// Dataset implements tenancy.Write.
func (p *pending) Dataset() string {
	if p.event != nil {
		return p.event.to.Dataset
	}
	return p.write.D.Name
}

// place returns the path, the time and the ID of a point.
func (p *pending) place() (path string, units int64, id string, ok bool) {
	of, err := tenant.Parse(p.Item.Tenant)
	if err != nil {
		return "", 0, "", false
	}
	space, err := p.write.D.Space(of)
	if err != nil {
		return "", 0, "", false
	}
	return space.SplitEvent(p.write.Key)
}

// size returns the bytes of a write's key and payload.
func (p *pending) size() int { return p.Item.Bytes - overhead }
