package soak

import (
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	producers = 4
	busy      = 20 // devices, the first ones, that write about as often as there are slots
)

// produce puts the points of the devices whose number has a remainder. A device has one producer, so that its points go
// into the writer in the order in which the account has them.
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

// draw returns one of the producer's devices; those of noisy tenants more often, and a few all the time.
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
	told := func(out tsdb.Outcome) {
		switch out.State {
		case tsdb.Journaled, tsdb.Stored:
			w.stats.acked.Add(1)
		case tsdb.Rejected:
			w.stats.rejected.Add(1)
			if !w.refusal(d.tenant, out.Err) {
				w.fail("%s: a put of tenant %s, device %s, slot %d was rejected: %v", schema.Name(), d.tenant.id, d.entity, p.slot, out.Err)
			}
		case tsdb.Unknown:
			w.stats.unknown.Add(1)
		}
		if err := s.told(p, out); err != nil {
			w.fail("%s: tenant %s, device %s: %v", schema.Name(), d.tenant.id, d.entity, err)
		}
	}
	sink := schema.For(w.store, d.tenant.id).Via(w.writer.Load())
	_ = sink.EnqueueFunc(d.tenant.ctx(w.t.Context()), d.entity, d.time(w.base, p.slot), d.value(p.slot, p.version), told) // told knows
}

// refusal reports whether a put may be refused with an error: the writer is being opened again, or the tenant erased, or the
// store does not know whether it is.
func (w *world) refusal(c *customer, err error) bool {
	return errors.Is(err, tsdb.ErrWriterClosed) || errors.Is(err, tsdb.ErrErased) && c == w.victim || excused(err, codes.InvalidArgument)
}

// buried is told of each dead letter.
func (w *world) buried(u tsdb.Undelivered) {
	if u.Tenant == w.victim.id {
		w.stats.buriedVictim.Add(1)
	}
	if u.Rollup != "" {
		w.stats.buriedEvents.Add(1)
		w.added.buried(w, u)
		return
	}
	w.stats.buried.Add(1)
	c := w.byTenant[u.Tenant.String()]
	if c == nil {
		w.fail("a dead letter is of tenant %s, whom nobody knows", u.Tenant)
		return
	}
	d := c.find(u.Entity)
	if d == nil {
		w.fail("a dead letter of tenant %s is of entity %s, which nobody knows", u.Tenant, u.Entity)
		return
	}
	slot, ok := d.slotAt(w.base, u.Time)
	if s := w.seriesOf(d, u.Dataset); ok && s != nil && s.wasPut(slot, 0) {
		s.buried(slot)
		return
	}
	w.fail("a dead letter of tenant %s, device %s is of %v, when nothing was put", u.Tenant, u.Entity, u.Time)
}
