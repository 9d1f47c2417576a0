package window

import "time"

// Buckets by the clock start when the zone's clock shows a multiple of the width since midnight, and when the clock
// is put forward over or from such a multiple. Between two clock changes, arithmetic is enough. The loops below step
// over a clock change that falls within a bucket.

// clockStart returns the last start of a bucket that is not after t.
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

// clockNext returns the first start of a bucket after t.
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

// unchanged returns a span of time around t in which the clock is not changed. The zero time means no start or no
// end. The span need not be the longest. It is the result of ZoneBounds, except on the last day of a leap year after
// the zone's table ends (2040): there Go 1.26 returns an end before t (golang.org/issue/81583).
func unchanged(t time.Time) (from, to time.Time) {
	from, to = t.ZoneBounds()
	midnight := t.Truncate(day) // in UTC, like the years for which ZoneBounds is wrong
	if from.After(t) {
		from = midnight
	}
	if !to.IsZero() && !to.After(t) {
		to = midnight.Add(day)
	}
	return from, to
}

// shown returns how far the clock at t is past a multiple of the width.
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

// sinceEpoch returns how far t is into its bucket, if buckets are counted from the epoch.
func sinceEpoch(t time.Time, width time.Duration) time.Duration {
	epoch := time.Unix(0, 0)
	past := t.Sub(t.Truncate(width)) - epoch.Sub(epoch.Truncate(width)) // Truncate counts from the year 1
	if past < 0 {
		past += width
	}
	return past
}
