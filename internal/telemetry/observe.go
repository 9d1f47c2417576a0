package telemetry

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observe creates the instruments that are read only when metrics are collected: those of writers, the cache and
// rollups.
func (p *Probe) observe(m maker) {
	o := &observed{maker: m}
	points := o.level("tidemark.writer.buffer.points", "{point}", "Points that writers hold in memory.")
	bytes := o.level("tidemark.writer.buffer.bytes", "By", "Memory of the points that writers hold.")
	roomPoints := o.level("tidemark.writer.buffer.capacity.points", "{point}", "Points that writers may hold in memory.")
	roomBytes := o.level("tidemark.writer.buffer.capacity.bytes", "By", "Memory that the points of writers may take.")
	oldest := o.ageSeconds("tidemark.writer.oldest.age", "Age of the oldest point that is not delivered.")
	accepted := o.sum("tidemark.writer.accepted", "{point}", "Points that callers handed to writers.")
	ended := o.sum("tidemark.writer.points", "{point}", "Points that have ended, by outcome.")
	requests := o.sum("tidemark.writer.requests", "{request}", "Requests that writers made.")
	retries := o.sum("tidemark.writer.retries", "{request}", "Requests of writers that repeated one.")
	blocked := o.addSeconds("tidemark.writer.blocked.time", "Time that callers have waited for room in a writer, all together.")
	inFlight := o.level("tidemark.writer.requests.inflight", "{request}", "Requests of writers under way.")
	slots := o.level("tidemark.writer.requests.limit", "{request}", "Requests of writers that may be under way now.")
	rate := o.level("tidemark.writer.rate.limit", "By/s", "Bytes a second that writers may send while the service asks for less; 0 without a limit.")
	down := o.level("tidemark.writer.down", "{writer}", "1 while writers take the service for unreachable.")
	tenantPoints := o.sum("tidemark.writer.tenant.points", "{point}", "Points handed to writers, by tenant.")
	tenantBytes := o.sum("tidemark.writer.tenant.bytes", "By", "Bytes of keys and payloads handed to writers, by tenant.")
	journal := o.level("tidemark.journal.points", "{point}", "Points in journals that are not delivered.")
	journalBytes := o.level("tidemark.journal.bytes", "By", "What journals take of their capacity.")
	journalLimit := o.level("tidemark.journal.capacity", "By", "What journals may take.")
	letters := o.level("tidemark.journal.dead_letters", "{point}", "Dead letters in journals.")
	looks := o.sum("tidemark.cache.requests", "{request}", "Looks into the last-value cache, by result.")
	entries := o.level("tidemark.cache.entries", "{entity}", "Entities in the last-value cache.")
	cached := o.level("tidemark.cache.bytes", "By", "What the last-value cache takes of its limit.")
	lag := o.ageSeconds("tidemark.rollup.lag", "How old the oldest change is that closed buckets of a rollup do not show yet.")

	plain := metric.WithAttributeSet(attribute.NewSet(p.base...))
	with := func(more ...attribute.KeyValue) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(append(p.base[:len(p.base):len(p.base)], more...)...))
	}
	one := func(key, value string) metric.ObserveOption { return with(attribute.String(key, value)) }
	stored, rejected, unknown := one(attrOutcome, "stored"), one(attrOutcome, "rejected"), one(attrOutcome, "unknown")
	hit, miss, shared := one(attrResult, "hit"), one(attrResult, "miss"), one(attrResult, "shared")
	registration, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		if f, any := p.writers.figures(); any {
			to.ObserveInt64(points, f.Points, plain)
			to.ObserveInt64(bytes, f.Bytes, plain)
			to.ObserveInt64(roomPoints, f.CapacityPoints, plain)
			to.ObserveInt64(roomBytes, f.CapacityBytes, plain)
			to.ObserveFloat64(oldest, f.Oldest.Seconds(), plain)
			to.ObserveInt64(accepted, p.accepted.Load(), plain)
			to.ObserveInt64(ended, f.Stored, stored)
			to.ObserveInt64(ended, f.Rejected, rejected)
			to.ObserveInt64(ended, f.Unknown, unknown)
			if f.Unchanged > 0 {
				to.ObserveInt64(ended, f.Unchanged, one(attrOutcome, "unchanged"))
			}
			to.ObserveInt64(requests, f.Requests, plain)
			to.ObserveInt64(retries, f.Retries, plain)
			to.ObserveFloat64(blocked, f.Blocked.Seconds(), plain)
			to.ObserveInt64(inFlight, f.InFlight, plain)
			to.ObserveInt64(slots, f.Slots, plain)
			to.ObserveInt64(rate, f.RateLimit, plain)
			to.ObserveInt64(down, bit(f.Down), plain)
			if f.Journal {
				to.ObserveInt64(journal, f.JournalPoints, plain)
				to.ObserveInt64(journalBytes, f.JournalBytes, plain)
				to.ObserveInt64(journalLimit, f.JournalLimit, plain)
				to.ObserveInt64(letters, f.Dead, plain)
			}
			tenants := *p.tenants.Load()
			for name, t := range tenants {
				of := one(attrTenant, name)
				to.ObserveInt64(tenantPoints, t.points.Load(), of)
				to.ObserveInt64(tenantBytes, t.bytes.Load(), of)
			}
			if p.conf.Tenants > 0 && len(tenants) >= p.conf.Tenants {
				of := one(attrTenant, Other)
				to.ObserveInt64(tenantPoints, p.others.points.Load(), of)
				to.ObserveInt64(tenantBytes, p.others.bytes.Load(), of)
			}
		}
		if p.conf.Cache != nil {
			c := p.conf.Cache()
			to.ObserveInt64(looks, c.Hits, hit)
			to.ObserveInt64(looks, c.Misses, miss)
			to.ObserveInt64(looks, c.Shared, shared)
			to.ObserveInt64(entries, c.Entries, plain)
			to.ObserveInt64(cached, c.Bytes, plain)
		}
		p.rollups.each(func(of rollup, d time.Duration) {
			to.ObserveFloat64(lag, d.Seconds(), with(attribute.String(attrDataset, of.dataset), attribute.String(attrRollup, of.name)))
		})
		return nil
	}, o.all...)
	if refused(err) {
		return
	}
	p.observed = registration
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// lags holds how far the rollups of a store are behind.
type lags struct {
	mu    sync.Mutex
	since map[rollup]time.Time // all changes up to this time are in the closed buckets
}

type rollup struct{ dataset, name string }

// Worked records that the closed buckets of a rollup contain all changes up to a time.
func (p *Probe) Worked(dataset, name string, upTo time.Time) {
	if p == nil {
		return
	}
	p.rollups.mu.Lock()
	defer p.rollups.mu.Unlock()
	if p.rollups.since == nil {
		p.rollups.since = map[rollup]time.Time{}
	}
	p.rollups.since[rollup{dataset, name}] = upTo
}

// Left records that no worker runs for a dataset's rollups any more.
func (p *Probe) Left(dataset string) {
	if p == nil {
		return
	}
	p.rollups.mu.Lock()
	defer p.rollups.mu.Unlock()
	maps.DeleteFunc(p.rollups.since, func(of rollup, _ time.Time) bool { return of.dataset == dataset })
}

func (l *lags) each(f func(rollup, time.Duration)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, t := range l.since {
		f(of, time.Since(t))
	}
}
