package soak

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// check compares the whole table with the expected state, after all writes and faults have ended.
func (w *world) check(ctx context.Context, clean *tsdb.Store) {
	w.checkJournal(ctx)
	w.checkPending()
	for _, d := range w.shortOnes {
		if d.tenant == w.victim {
			continue
		}
		now := w.slotNow(d)
		from := max(0, now-int(w.shortAge/slotWidth)-8)
		if err := w.ask(d.tenant.ctx(ctx), "the last Range of what expires", d, w.short.For(clean, d.tenant.id), d.short, from, now+1, tsdb.NewestFirst); err != nil {
			w.fail("tenant %s, device %s cannot be read: %v", d.tenant.id, d.entity, err)
		}
	}
	w.checkPoints(ctx, clean)
	w.checkHeads(ctx, clean)
	w.checkAdded(ctx, clean)
}

// checkJournal delivers the rest of the journal, and checks that the program was notified of each dead letter.
func (w *world) checkJournal(ctx context.Context) {
	if err := w.flush(ctx); err != nil {
		w.fail("flushing the writer without faults: %v", err)
		return
	}
	letters, again := int64(0), []uint64(nil)
	for l, err := range w.writer.Load().DeadLetters(ctx) {
		if err != nil {
			w.fail("reading the dead letters: %v", err)
			return
		}
		if c := w.byTenant[l.Tenant.String()]; c == nil || c == w.victim {
			w.fail("dead letter %d belongs to tenant %q, which is unknown or erased", l.ID, l.Tenant)
		}
		letters++
		if l.Rollup != "" {
			again = append(again, l.ID)
			w.added.recordRetry(w, l)
		}
	}
	// Refused events, which do not count, count once after they are retried.
	if n, err := w.writer.Load().RetryDeadLetters(ctx, again...); err != nil || n != len(again) {
		w.fail("retried %d of %d dead letters of events: %v", n, len(again), err)
	}
	if err := w.flush(ctx); err != nil {
		w.fail("flushing the retried dead letters: %v", err)
	}
	w.t.Logf("dead letters: %d, %d of them events that were retried", letters, len(again))
	notified := w.stats.buried.Load() + w.stats.buriedEvents.Load() - w.stats.buriedVictim.Load()
	if letters != notified { // as of before the retry
		w.fail("got %d dead letters, and notifications of %d", letters, notified)
	}
	if j := w.writer.Load().Stats().Journal; j.Points != 0 {
		w.fail("after a flush the journal holds %d points, want 0", j.Points)
	}
	if err := w.writer.Load().Close(ctx); err != nil {
		w.fail("closing the writer: %v", err)
	}
}

// checkPending looks for puts without an outcome.
func (w *world) checkPending() {
	for _, d := range w.devices {
		for _, s := range []*series{d.plain, d.short} {
			if s != nil && s.pending.count() > 0 {
				w.fail("tenant %s, device %s: %d puts got no outcome, the newest in slot %d", d.tenant.id, d.entity, s.pending.count(), s.pending.highest())
			}
		}
	}
}

// checkPoints reads every point.
func (w *world) checkPoints(ctx context.Context, clean *tsdb.Store) {
	begun, before := time.Now(), w.stats.points.Load()
	acked, tried := 0, 0
	for _, d := range w.devices {
		if d.tenant == w.victim {
			continue
		}
		acked += d.plain.acked[0].count()
		tried += d.plain.tried[0].count()
		if err := w.ask(d.tenant.ctx(ctx), "the last Range", d, w.plain.For(clean, d.tenant.id), d.plain, 0, w.slots(), tsdb.OldestFirst); err != nil {
			w.fail("tenant %s, device %s cannot be read: %v", d.tenant.id, d.entity, err)
			return
		}
	}
	found := int(w.stats.points.Load() - before)
	if found < acked || found > tried {
		w.fail("got %d points, want at least the %d acknowledged and at most the %d put", found, acked, tried)
	}
	w.t.Logf("points: %d acknowledged, %d put, %d found, read in %v", acked, tried, found, time.Since(begun).Round(time.Millisecond))
}

// checkHeads reads the newest point of each device from the heads.
func (w *world) checkHeads(ctx context.Context, clean *tsdb.Store) {
	for _, c := range w.customers {
		if c == w.victim {
			continue
		}
		var entities []tsdb.Entity
		for _, d := range c.devices {
			entities = append(entities, d.entity)
		}
		answers, err := w.plain.For(clean, c.id).LatestMany(c.ctx(ctx), entities, 1)
		if len(answers) != len(entities) {
			w.fail("LatestMany of tenant %s: %v", c.id, err)
			return
		}
		for i, a := range answers {
			if a.Err != nil {
				w.fail("LatestMany of tenant %s, device %s: %v", c.id, entities[i], a.Err)
				continue
			}
			p, none := newestOf(a)
			_ = w.checkNewest("the last LatestMany", c.devices[i], c.devices[i].plain, c.devices[i].plain.floor(byHead, true), p, none)
		}
	}
}
