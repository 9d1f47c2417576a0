package limit

// second is how many parts a point or a byte has. With it, a rate per second is a whole number of parts per
// nanosecond: nothing is rounded, and a bucket allows exactly its burst and its rate.
const second = 1_000_000_000

// bucket is the remaining allowance of a tenant for one rate.
type bucket struct {
	level int64 // in parts; below 0 if a point was larger than the burst
	at    int64 // when level was computed
}

// fill makes the bucket full.
func (b *bucket) fill(now, burst int64) { *b = bucket{level: burst * second, at: now} }

// flow adds the allowance since the last call. A clock that goes back adds nothing.
func (b *bucket) flow(now, rate, burst int64) {
	elapsed := now - b.at
	b.at = now
	missing := burst*second - b.level
	switch {
	case elapsed <= 0 && missing >= 0:
	case missing <= 0 || elapsed >= until(missing, rate):
		b.level = burst * second
	default:
		b.level += elapsed * rate
	}
}

// wait returns how long it takes until n can be taken. An n above the burst can be taken when the bucket is full.
func (b *bucket) wait(n, rate, burst int64) (nanoseconds int64) {
	if need := min(n, burst)*second - b.level; need > 0 {
		return until(need, rate)
	}
	return 0
}

func (b *bucket) take(n int64) { b.level -= min(n, maxRate) * second }

// used returns the used part of the burst plus n, rounded up.
func (b *bucket) used(n, burst int64) int64 {
	return (burst*second-b.level+second-1)/second + n
}

// full reports whether the bucket equals a new one.
func (b *bucket) full(burst int64) bool { return b.level >= burst*second }

// until returns the nanoseconds in which a rate adds this number of parts.
func until(parts, rate int64) int64 { return (parts-1)/rate + 1 }
