package soak

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// check holds the whole table against the account, once nothing is written any more and nothing fails.
func (w *world) check(ctx context.Context, clean *tsdb.Store) {
	w.checkJournal(ctx)
	w.checkTold()
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

// checkJournal delivers what the journal has, and looks at what is left: dead letters, all of which were told of.
func (w *world) checkJournal(ctx context.Context) {
	if err := w.flush(ctx); err != nil {
		w.fail("the writer does not deliver, without faults: %v", err)
		return
	}
	letters, again := int64(0), []uint64(nil)
	for l, err := range w.writer.Load().DeadLetters(ctx) {
		if err != nil {
			w.fail("the dead letters cannot be read: %v", err)
			return
		}
		if c := w.byTenant[l.Tenant.String()]; c == nil || c == w.victim {
			w.fail("dead letter %d is of tenant %q, who is unknown or erased", l.ID, l.Tenant)
		}
		letters++
		if l.Rollup != "" {
			again = append(again, l.ID)
			w.added.revived(w, l)
		}
	}
	// Events that were refused, and so do not count, count once when they are put back.
	if n, err := w.writer.Load().RetryDeadLetters(ctx, again...); err != nil || n != len(again) {
		w.fail("%d of %d dead events were put back: %v", n, len(again), err)
	}
	if err := w.flush(ctx); err != nil {
		w.fail("the writer does not deliver what was put back: %v", err)
	}
	w.t.Logf("dead letters: %d, of which %d events were put back", letters, len(again))
	told := w.stats.buried.Load() + w.stats.buriedEvents.Load() - w.stats.buriedVictim.Load()
	if letters != told { // before any are put back
		w.fail("there are %d dead letters, of %d the program was told", letters, told)
	}
	if j := w.writer.Load().Stats().Journal; j.Points != 0 {
		w.fail("the journal holds %d points after a flush", j.Points)
	}
	if err := w.writer.Load().Close(ctx); err != nil {
		w.fail("the writer did not close: %v", err)
	}
}

// checkTold looks for points whose end nobody was told.
func (w *world) checkTold() {
	for _, d := range w.devices {
		for _, s := range []*series{d.plain, d.short} {
			if s != nil && s.pending.count() > 0 {
				w.fail("tenant %s, device %s: %d puts were never told of, the newest is slot %d", d.tenant.id, d.entity, s.pending.count(), s.pending.highest())
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
		w.fail("%d points are there, %d were acknowledged and %d put", found, acked, tried)
	}
	w.t.Logf("points: %d acknowledged, %d put, %d there, read in %v", acked, tried, found, time.Since(begun).Round(time.Millisecond))
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
		answers, err := w.plain.For(clean, c.id).LatestMany(c.ctx(ctx), entities)
		if len(answers) != len(entities) {
			w.fail("LatestMany of tenant %s: %v", c.id, err)
			return
		}
		for i, a := range answers {
			if a.Err != nil && !errors.Is(a.Err, tsdb.ErrNotFound) {
				w.fail("LatestMany of tenant %s, device %s: %v", c.id, entities[i], a.Err)
				continue
			}
			_ = w.newest("the last LatestMany", c.devices[i], c.devices[i].plain, c.devices[i].plain.floor(byHead, true), a.Point, a.Err)
		}
	}
}
