package window

import "time"

const (
	daySeconds = 24 * 60 * 60
	// thursday is the weekday of day 0, 1970-01-01.
	thursday = 4
	// beyond is more than any zone is ahead of UTC.
	beyond = 2 * day
)

// dates returns the bucket of days, weeks or months that contains t.
func (g Grid) dates(t time.Time) (start, next time.Time) {
	i := g.index(t)
	start = g.reached(g.firstDay(i))
	for {
		next = g.reached(g.firstDay(i + 1))
		if t.Before(next) {
			return start, next
		}
		// The clock was put back over midnight, so t shows a date for the second time.
		start = next
		i++
	}
}

// index returns the number of the bucket, counted from 1970, of the calendar date at t.
func (g Grid) index(t time.Time) int64 {
	year, month, date := t.Date()
	number := time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Unix() / daySeconds // whole days: exact before 1970 too
	switch g.unit {
	case weeks:
		return floorDiv(number-g.firstWeekday(), 7*g.n)
	case months:
		return floorDiv(int64(year-1970)*12+int64(month-time.January), g.n)
	}
	return floorDiv(number, g.n)
}

// firstDay returns the first day of a bucket, as a number of days from 1970-01-01.
func (g Grid) firstDay(index int64) int64 {
	switch g.unit {
	case weeks:
		return index*7*g.n + g.firstWeekday()
	case months:
		return time.Date(1970, time.January+time.Month(index*g.n), 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	}
	return index * g.n
}

// firstWeekday returns the first day of 1970 on which a week starts.
func (g Grid) firstWeekday() int64 {
	return (int64(g.first) - thursday + 7) % 7
}

// reached returns the first instant at which the zone's calendar shows a day or a later one. time.Date does not
// guarantee that: if midnight occurs twice or not at all, it may return either instant.
func (g Grid) reached(number int64) time.Time {
	midnight := time.Unix(number*daySeconds, 0).In(g.location())
	t := midnight.Add(-beyond)
	for changed := false; ; changed = true {
		_, offset := t.Zone()
		_, to := unchanged(t)
		at := midnight.Add(-time.Duration(offset) * time.Second)
		if changed && at.Before(t) {
			at = t // the clock was put forward over midnight
		}
		if to.IsZero() || at.Before(to) {
			return at
		}
		t = to
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
