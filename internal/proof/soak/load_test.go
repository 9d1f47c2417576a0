package soak

import (
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	producers = 4
	busy      = 20 // the first devices; they write in about every slot
)

// produce writes the points of the devices with a given remainder of their number. Each device has one producer, so its
// points reach the writer in the order in which they are recorded.
func (w *world) produce(n int) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(100+n)))
	owed, last := 0.0, time.Now()
	for pause(w.ctx, 20*time.Millisecond) {
		now := time.Now()
		owed += min(now.Sub(last).Seconds(), 1) * float64(w.rate) / producers
		last = now
		for ; owed >= 1 && w.ctx.Err() == nil; owed-- {
			w.putOne(rnd, w.draw(rnd, n))
		}
	}
}

// draw returns one of the producer's devices. Devices of noisy tenants come more often, and a few devices all the time.
func (w *world) draw(rnd *rand.Rand, n int) *device {
	if rnd.IntN(100) < 5 {
		return w.devices[rnd.IntN(busy/producers)*producers+n]
	}
	for rnd.IntN(100) < 50 {
		c := w.customers[rnd.IntN(w.noisy)]
		if d := c.devices[rnd.IntN(len(c.devices))]; d.n%producers == n {
			return d
		}
	}
	return w.devices[rnd.IntN(len(w.devices)/producers)*producers+n]
}

func (w *world) putOne(rnd *rand.Rand, d *device) {
	schema, s := w.plain, d.plain
	if d.short != nil && rnd.IntN(2) == 0 {
		schema, s = w.short, d.short
	}
	p, ok := s.choose(rnd, w.slotNow(d))
	if !ok {
		return
	}
	w.stats.put.Add(1)
	ended := func(out tsdb.Outcome) {
		switch out.State {
		case tsdb.Journaled, tsdb.Stored:
			w.stats.acked.Add(1)
		case tsdb.Rejected:
			w.stats.rejected.Add(1)
			if !w.refusal(d.tenant, out.Err) {
				w.fail("%s: putting a point of tenant %s, device %s, slot %d: rejected: %v", schema.Name(), d.tenant.id, d.entity, p.slot, out.Err)
			}
		case tsdb.Unknown:
			w.stats.unknown.Add(1)
		}
		if err := s.recordOutcome(p, out); err != nil {
			w.fail("%s: tenant %s, device %s: %v", schema.Name(), d.tenant.id, d.entity, err)
		}
	}
	sink := schema.For(w.store, d.tenant.id).Via(w.writer.Load())
	_ = sink.EnqueueFunc(d.tenant.ctx(w.t.Context()), d.entity, d.time(w.base, p.slot), d.value(p.slot, p.version), ended) // ended gets every outcome
}

// refusal reports whether an error may refuse a put: the writer is being reopened, the tenant is erased, or a fault
// explains it.
func (w *world) refusal(c *customer, err error) bool {
	return errors.Is(err, buffer.ErrClosed) || errors.Is(err, tsdb.ErrErased) && c == w.victim || byFaults(err, codes.InvalidArgument)
}

// deadLetter is called with each dead letter.
func (w *world) deadLetter(u tsdb.Undelivered) {
	if u.Tenant == w.victim.id {
		w.stats.buriedVictim.Add(1)
	}
	if u.Rollup != "" {
		w.stats.buriedEvents.Add(1)
		w.added.recordDead(w, u)
		return
	}
	w.stats.buried.Add(1)
	c := w.byTenant[u.Tenant.String()]
	if c == nil {
		w.fail("a dead letter belongs to the unknown tenant %s", u.Tenant)
		return
	}
	d := c.find(u.Entity)
	if d == nil {
		w.fail("a dead letter of tenant %s belongs to the unknown entity %s", u.Tenant, u.Entity)
		return
	}
	slot, ok := d.slotAt(w.base, u.Time)
	if s := w.seriesOf(d, u.Dataset); ok && s != nil && s.wasTried(slot, 0) {
		s.recordDead(slot)
		return
	}
	w.fail("a dead letter of tenant %s, device %s has the time %v, where no point was put", u.Tenant, u.Entity, u.Time)
}
