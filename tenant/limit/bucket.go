package limit

// second is how many parts a point or a byte is counted in, so that a rate a second is a whole number of parts a
// nanosecond: nothing is rounded, and a bucket lets through exactly its burst and its rate.
const second = 1_000_000_000

// bucket is what a tenant may still write of one rate.
type bucket struct {
	level int64 // in parts; below 0 where it has lent
	at    int64 // when level was reckoned
}

// fill makes the bucket full.
func (b *bucket) fill(now, burst int64) { *b = bucket{level: burst * second, at: now} }

// flow adds what the rate has brought until now. A clock that goes back brings nothing.
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

// wait returns how long it is until n may be taken. What is more than the burst may be when the bucket is full.
func (b *bucket) wait(n, rate, burst int64) (nanoseconds int64) {
	if need := min(n, burst)*second - b.level; need > 0 {
		return until(need, rate)
	}
	return 0
}

func (b *bucket) take(n int64) { b.level -= min(n, maxRate) * second }

// used returns what the rate has not made up for yet, and n, rounded up.
func (b *bucket) used(n, burst int64) int64 {
	return (burst*second-b.level+second-1)/second + n
}

// full reports whether the bucket is as good as a new one.
func (b *bucket) full(burst int64) bool { return b.level >= burst*second }

// until returns the nanoseconds in which a rate brings so many parts.
func until(parts, rate int64) int64 { return (parts-1)/rate + 1 }
