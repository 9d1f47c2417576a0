package limit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// usage is the usage of one tenant.
type usage struct {
	mu            sync.Mutex
	rules         *rules  // the source of limits
	limits        *Limits // never nil once it is acquired
	points, bytes bucket
	seen          entities
	reads         int64 // in progress
	last          int64 // when it was acquired
	forgotten     bool  // removed from the shard
}

// adopt applies rules that were set since the tenant's last call.
func (u *usage) adopt(r *rules, id tenant.ID, now int64) {
	before, after := u.limits, r.of(id)
	if before == nil {
		before = &Limits{}
	}
	since := min(r.since, now)
	change := func(b *bucket, rate, burst, newRate, newBurst int64) {
		switch {
		case newRate == 0:
		case rate == 0:
			b.fill(now, newBurst)
		default:
			if since > b.at {
				b.flow(since, rate, burst) // the next flow cuts a burst that became smaller
			}
		}
	}
	change(&u.points, before.PointsPerSecond, before.PointsBurst, after.PointsPerSecond, after.PointsBurst)
	change(&u.bytes, before.BytesPerSecond, before.BytesBurst, after.BytesPerSecond, after.BytesBurst)
	if after.Entities == 0 {
		u.seen = entities{}
	}
	u.rules, u.limits = r, after
}

// flow adds the allowances since the last call.
func (u *usage) flow(now int64) {
	if l := u.limits; l.PointsPerSecond > 0 {
		u.points.flow(now, l.PointsPerSecond, l.PointsBurst)
	}
	if l := u.limits; l.BytesPerSecond > 0 {
		u.bytes.flow(now, l.BytesPerSecond, l.BytesBurst)
	}
}

// idle reports whether forgetting the tenant changes nothing.
func (u *usage) idle(now, window int64) bool {
	l := u.limits
	if u.reads > 0 || l == nil {
		return false
	}
	u.flow(now)
	if l.PointsPerSecond > 0 && !u.points.full(l.PointsBurst) || l.BytesPerSecond > 0 && !u.bytes.full(l.BytesBurst) {
		return false
	}
	u.seen.turn(now, window)
	return u.seen.count() == 0
}

// Write allows one point of an entity with a payload of bytes bytes, or returns an *Error and counts nothing. If the
// point is over several limits, the error names the one with the longest wait. A store calls Write for each point,
// after all other checks and before it sends anything.
func (c core) Write(id tenant.ID, dataset, entity string, bytes int) error {
	l := c.Value()
	if l.off() {
		return nil
	}
	u, now := l.acquire(id)
	if u == nil {
		return nil
	}
	defer u.mu.Unlock()
	lim, n := u.limits, int64(max(0, bytes))
	if lim.PointBytes > 0 && n > lim.PointBytes {
		return &Error{ID: PointBytes, Tenant: id, Limit: lim.PointBytes, Used: n}
	}
	var hash uint64
	if lim.Entities > 0 {
		u.seen.turn(now, l.window)
		hash = l.hash(dataset, entity)
		if n := int64(u.seen.count()); n >= lim.Entities && !u.seen.has(hash) {
			return &Error{ID: Entities, Tenant: id, Limit: lim.Entities, Used: n + 1}
		}
	}
	if err := u.rates(id, n, now); err != nil {
		return err
	}
	if lim.Entities > 0 {
		u.seen.add(hash)
	}
	return nil
}

// rates takes a point from both rates, or from neither.
func (u *usage) rates(id tenant.ID, n, now int64) *Error {
	l := u.limits
	var forPoint, forBytes int64
	u.flow(now)
	if l.PointsPerSecond > 0 {
		forPoint = u.points.wait(1, l.PointsPerSecond, l.PointsBurst)
	}
	if l.BytesPerSecond > 0 {
		forBytes = u.bytes.wait(n, l.BytesPerSecond, l.BytesBurst)
	}
	switch {
	case forBytes > forPoint:
		used := u.bytes.used(n, l.BytesBurst)
		return &Error{ID: BytesPerSecond, Tenant: id, Limit: l.BytesPerSecond, Burst: l.BytesBurst, Used: used, RetryAfter: time.Duration(forBytes)}
	case forPoint > 0:
		used := u.points.used(1, l.PointsBurst)
		return &Error{ID: PointsPerSecond, Tenant: id, Limit: l.PointsPerSecond, Burst: l.PointsBurst, Used: used, RetryAfter: time.Duration(forPoint)}
	}
	if l.PointsPerSecond > 0 {
		u.points.take(1)
	}
	if l.BytesPerSecond > 0 {
		u.bytes.take(n)
	}
	return nil
}

// Read allows one read to begin, or returns an *Error. Call done when the read has ended; a second call does nothing.
func (c core) Read(id tenant.ID) (done func(), err error) {
	l := c.Value()
	if l.off() || l.rules.Load().of(id).ConcurrentReads == 0 {
		return func() {}, nil
	}
	u, _ := l.acquire(id)
	if u == nil {
		return func() {}, nil
	}
	defer u.mu.Unlock()
	if most := u.limits.ConcurrentReads; most > 0 && u.reads >= most {
		return nil, &Error{ID: ConcurrentReads, Tenant: id, Limit: most, Used: u.reads + 1, RetryAfter: retryRead}
	}
	u.reads++
	return (&read{usage: u}).end, nil
}

// read is a read in progress.
type read struct {
	usage *usage
	ended atomic.Bool
}

func (r *read) end() {
	if r.ended.Swap(true) {
		return
	}
	r.usage.mu.Lock()
	r.usage.reads--
	r.usage.mu.Unlock()
}

// Span allows a read over a time of this length, or returns an *Error.
func (c core) Span(id tenant.ID, length time.Duration) error {
	l := c.Value()
	if most := l.Limits(id).RangeLength; most > 0 && length > most {
		return &Error{ID: RangeLength, Tenant: id, Limit: int64(most), Used: int64(length)}
	}
	return nil
}

// Concurrency returns how many requests a read may have in progress at once, at most width.
func (c core) Concurrency(id tenant.ID, width int) int {
	l := c.Value()
	if most := l.Limits(id).FanOut; most > 0 {
		return int(min(int64(width), most))
	}
	return width
}
