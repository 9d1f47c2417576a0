package instant

import "time"

// Cutoff returns the oldest timestamp that a visible cell may have at the time now, if cells live for age. A cell has
// expired if its timestamp is before the cutoff.
//
// Cells have timestamps in whole milliseconds. The cutoff is now-age, rounded up to a millisecond. That is exact: the
// service may remove the cells before it, and no others. It is also exact for a point with a more precise time,
// because its cell's timestamp is rounded down. The result is in UTC. Cutoff does not allocate.
func Cutoff(now time.Time, age time.Duration) time.Time {
	exact := now.UTC().Add(-age)
	cutoff := exact.Truncate(time.Millisecond)
	if cutoff.Before(exact) {
		cutoff = cutoff.Add(time.Millisecond)
	}
	return cutoff
}
