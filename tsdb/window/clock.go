package window

import "time"

// Buckets by the clock: a bucket starts at each instant at which the clock of the zone shows a multiple of the width since
// midnight, and at each at which it is put forward over one, or from one on. Between two changes of the clock that is plain
// arithmetic; the loops below go from one such stretch to its neighbour where a bucket lies across the change.

// clockStart returns the last such instant that is not after t.
func (g Grid) clockStart(t time.Time) time.Time {
	for {
		from, _ := unchanged(t)
		start := t.Add(-g.shown(t))
		if from.IsZero() || !start.Before(from) {
			return start
		}
		if g.startsAtChange(from) {
			return from
		}
		t = from.Add(-1)
	}
}

// clockNext returns the first such instant after t.
func (g Grid) clockNext(t time.Time) time.Time {
	for {
		_, to := unchanged(t)
		next := t.Add(time.Duration(g.n) - g.shown(t))
		if to.IsZero() || next.Before(to) {
			return next
		}
		if g.startsAtChange(to) {
			return to
		}
		t = to
	}
}

// unchanged returns a stretch of time around t in which the clock is not changed, with the zero time for no start or no end.
// It need not be the longest. It is what ZoneBounds returns, but for the last day of a leap year that the zone's table does not
// reach (2040): there Go 1.26 gives an end that is over already (golang.org/issue/81583).
func unchanged(t time.Time) (from, to time.Time) {
	from, to = t.ZoneBounds()
	midnight := t.Truncate(day) // in UTC, as the year ends that the bounds are wrong about
	if from.After(t) {
		from = midnight
	}
	if !to.IsZero() && !to.After(t) {
		to = midnight.Add(day)
	}
	return from, to
}

// shown returns by how much the clock at t is over a multiple of the width.
func (g Grid) shown(t time.Time) time.Duration {
	_, offset := t.Zone()
	wall := t.UTC().Add(time.Duration(offset) * time.Second)
	return wall.Sub(wall.Truncate(time.Duration(g.n))) // Truncate counts from a midnight
}

// startsAtChange reports whether a bucket starts at a change of the clock.
func (g Grid) startsAtChange(t time.Time) bool {
	over := g.shown(t)
	if over == 0 {
		return true
	}
	_, before := t.Add(-1).Zone()
	_, after := t.Zone()
	return over <= time.Duration(after-before)*time.Second
}

// sinceEpoch returns how far t is into its bucket where those are counted from the epoch.
func sinceEpoch(t time.Time, width time.Duration) time.Duration {
	epoch := time.Unix(0, 0)
	past := t.Sub(t.Truncate(width)) - epoch.Sub(epoch.Truncate(width)) // Truncate counts from the year 1
	if past < 0 {
		past += width
	}
	return past
}
