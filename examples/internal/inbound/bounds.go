package inbound

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// Bounds are the times that an input accepts. A time outside of them is almost always a number in another unit than
// the input was configured for. The zero Bounds are the defaults.
type Bounds struct {
	// NotBefore is the earliest time. Zero is the beginning of the year 2000.
	NotBefore time.Time
	// MaxFuture is how far ahead of the clock a time may be. Zero is a day; below zero means that there is no bound.
	MaxFuture time.Duration
	// Clock returns the current time. Nil is time.Now.
	Clock func() time.Time
}

// year2000 and maxFuture are the defaults.
var year2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const maxFuture = 24 * time.Hour

// Flags defines -not-before and -max-future.
func (b *Bounds) Flags(flags *flag.FlagSet) {
	flags.Func("not-before", "refuse points before this `time`, as 2000-01-01 or 2000-01-01T12:00:00Z: their unit is probably another one (default 2000-01-01)", func(text string) (err error) {
		if b.NotBefore, err = time.Parse(time.DateOnly, text); err != nil {
			b.NotBefore, err = instant.Parse(text)
		}
		if err != nil || b.NotBefore.IsZero() { // zero would be the default
			return errors.New("want a date as 2000-01-01, or a time as 2000-01-01T12:00:00Z, after the beginning of the year 1")
		}
		return nil
	})
	flags.Func("max-future", "refuse points further in the future than this `duration`. 0 accepts all: a device with a wrong clock then keeps its latest point for years (default 24h)", func(text string) (err error) {
		b.MaxFuture, err = time.ParseDuration(text)
		switch {
		case err != nil || b.MaxFuture < 0:
			return errors.New("want a duration of 0 or more")
		case b.MaxFuture == 0:
			b.MaxFuture = -1
		}
		return nil
	})
}

// withDefaults returns the bounds without zero values.
func (b Bounds) withDefaults() Bounds {
	if b.NotBefore.IsZero() {
		b.NotBefore = year2000
	}
	b.MaxFuture = cmp.Or(b.MaxFuture, maxFuture)
	if b.Clock == nil {
		b.Clock = time.Now
	}
	return b
}

// Stamp is the time of a record, and the number that gave it.
type Stamp struct {
	at     time.Time
	number int64
	unit   time.Duration // of the number; 0 if no number gave the time
	field  string        // that has the time, if it has a name
}

// At returns the stamp of a time that no number gave.
func At(t time.Time) Stamp { return Stamp{at: t} }

// Unix returns the stamp of a number of units since 1970. A unit is a whole number of seconds, or a whole part of one;
// 0 is a nanosecond. A time that is more than 2^61 seconds away from 1970 becomes one that is about as far away.
func Unix(number int64, unit time.Duration) Stamp {
	const most = 1 << 61 // seconds
	unit = max(unit, time.Nanosecond)
	s := Stamp{number: number, unit: unit}
	if n := int64(unit / time.Second); n > 0 {
		s.at = time.Unix(min(max(number, -most/n), most/n)*n, 0)
		return s
	}
	n := int64(time.Second / unit)
	s.at = time.Unix(number/n, number%n*int64(unit))
	return s
}

// Time is the time.
func (s Stamp) Time() time.Time { return s.at }

// check refuses a time outside the bounds. The error names the unit that would fit, if there is one.
func (b *Bounds) check(s Stamp) error {
	now := b.Clock()
	if b.fit(s.at, now) {
		return nil
	}
	where, is := "", " is "
	if s.field != "" {
		where = fmt.Sprintf("the field %.64q: ", s.field)
	}
	if s.unit != 0 {
		where, is = fmt.Sprintf("%sthe time %d read as %s is ", where, s.number, unitName(s.unit)), ", "
	} else {
		where += "the time "
	}
	bound := "before " + timeText(b.NotBefore) + ", which is -not-before"
	if !s.at.Before(b.NotBefore) {
		bound = fmt.Sprintf("after %s, which is -max-future ahead of the clock", timeText(now.Add(b.MaxFuture)))
	}
	return badTime("%s%s%s%s%s", where, timeText(s.at), is, bound, b.hint(s, now))
}

// fit reports whether a time is within the bounds.
func (b *Bounds) fit(t, now time.Time) bool {
	return !t.Before(b.NotBefore) && (b.MaxFuture < 0 || !t.After(now.Add(b.MaxFuture)))
}

// hint names the unit in which the number is a time within the bounds. If there are several, it is the one closest to
// now.
func (b *Bounds) hint(s Stamp, now time.Time) string {
	var best Stamp
	for _, unit := range units {
		other := Unix(s.number, unit)
		if s.unit != 0 && b.fit(other.at, now) && (best.unit == 0 || other.at.Sub(now).Abs() < best.at.Sub(now).Abs()) {
			best = other
		}
	}
	if best.unit == 0 {
		return ""
	}
	return fmt.Sprintf("; as %s it is %s", unitName(best.unit), timeText(best.at))
}

// timeText returns the text of a time in UTC. No program writes a later year than 9999.
func timeText(t time.Time) string {
	if t.After(instant.Last) {
		return "after the year 9999"
	}
	return instant.Text(t.UTC())
}

// unitName returns the name of a unit.
func unitName(unit time.Duration) string {
	for name, u := range units {
		if u == unit {
			return name
		}
	}
	return unit.String() // an hour, or a minute
}
