package window_test

import (
	"errors"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// changes are days on which clocks were changed, or might have been.
var changes = []struct{ zone, date, what string }{
	{"UTC", "2026-03-29", "never"},
	{"Europe/Berlin", "2026-03-29", "forward at 2"},
	{"Europe/Berlin", "2026-10-25", "back at 3"},
	{"America/New_York", "2026-03-08", "forward at 2"},
	{"America/New_York", "2026-11-01", "back at 2"},
	{"Australia/Lord_Howe", "2026-04-05", "back by 30 minutes"},
	{"Australia/Lord_Howe", "2026-10-04", "forward by 30 minutes"},
	{"Asia/Kolkata", "2026-03-29", "never, 5:30 ahead"},
	{"Asia/Kathmandu", "2026-03-29", "never, 5:45 ahead"},
	{"Asia/Kathmandu", "1986-01-01", "forward by 15 minutes at midnight"},
	{"America/Sao_Paulo", "2018-11-04", "forward at midnight, so that it is not"},
	{"America/Sao_Paulo", "2018-02-18", "back at midnight, so that the day before has 25 hours"},
	{"America/St_Johns", "2010-11-07", "back over midnight at 0:01, so that it is twice"},
	{"America/St_Johns", "1988-04-03", "forward by 2 hours at 0:01"},
	{"Antarctica/Troll", "2025-10-26", "back by 2 hours"},
	{"Pacific/Apia", "2011-12-30", "forward by a day, so that there is no 30th"},
	{"Pacific/Kwajalein", "1969-10-01", "back by 23 hours"},
	{"America/Juneau", "1867-10-19", "back by a day, from the other side of the date line"},
	{"Africa/Monrovia", "1972-01-07", "forward by 44 minutes and 30 seconds"},
	{"Europe/Berlin", "2040-12-31", "never, but the standard library says so"},
	{"Australia/Lord_Howe", "2044-12-31", "never, but the standard library says so"},
	{"America/New_York", "2041-01-01", "never, but the standard library says so"},
	{"America/New_York", "2045-11-05", "back at 2, by rule"},
	{"Africa/Casablanca", "2026-02-15", "back for Ramadan"},
}

var grids = map[string]window.Grid{
	"1m":             window.Every(time.Minute),
	"15m":            window.Every(15 * time.Minute),
	"1h":             window.Every(time.Hour),
	"90m":            window.Every(90 * time.Minute),
	"2h":             window.Every(2 * time.Hour),
	"6h":             window.Every(6 * time.Hour),
	"12h":            window.Every(12 * time.Hour),
	"24h":            window.Every(24 * time.Hour),
	"1d":             window.Days(1),
	"3d":             window.Days(3),
	"1w":             window.Weeks(1, time.Monday),
	"2w from Sunday": window.Weeks(2, time.Sunday),
	"1mo":            window.Months(1),
	"3mo":            window.Months(3),
}

// clockFace is what the clock of a zone shows, every minute or half minute for months around a change. This model uses
// no other information.
type clockFace struct {
	from  time.Time
	tick  time.Duration
	shown []int64 // seconds since 1970-01-01 00:00 on the clock
}

// cached, because two tests use them.
var faces = map[string]clockFace{}

func watch(z *time.Location, date string) clockFace {
	if c, ok := faces[z.String()+date]; ok {
		return c
	}
	tick := time.Minute
	if z.String() == "Africa/Monrovia" {
		tick /= 2 // the zone's clock was half a minute off
	}
	change, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	const around = 100 * 24 * time.Hour
	c := clockFace{from: change.Add(-around).In(z), tick: tick}
	_, offset := c.from.Zone()
	c.from = c.from.Add(-time.Duration(offset) * time.Second % tick) // so that the clock is read at full minutes
	for d := time.Duration(0); d < 2*around; d += tick {
		t := c.from.Add(d)
		_, offset := t.Zone()
		c.shown = append(c.shown, t.Unix()+int64(offset))
	}
	faces[z.String()+date] = c
	return c
}

// starts returns the times at which a bucket starts, by the documentation of the constructors.
func (c clockFace) starts(name string) []time.Time {
	var out []time.Time
	note := func(i int) { out = append(out, c.from.Add(time.Duration(i)*c.tick)) }
	if d, err := time.ParseDuration(name); err == nil && name != "24h" {
		width := int64(d / time.Second)
		for i := 1; i < len(c.shown); i++ {
			now, before := c.shown[i], c.shown[i-1]
			forward := now > before && floor(now, width) > floor(before, width)
			if forward || floor(now, width) == now {
				note(i)
			}
		}
		return out
	}
	newest := c.shown[0]
	for i, now := range c.shown {
		if floor(now, 86400) > floor(newest, 86400) {
			if bucketOfDate(name, now) != bucketOfDate(name, newest) {
				note(i)
			}
			newest = now
		}
	}
	return out
}

func floor(x, width int64) int64 { return x - ((x%width)+width)%width }

// bucketOfDate returns the number of a date's bucket.
func bucketOfDate(name string, shown int64) int64 {
	t := time.Unix(shown, 0).UTC()
	number := floor(shown, 86400) / 86400
	switch name {
	case "24h", "1d":
		return number
	case "3d":
		return floor(number, 3)
	case "1w":
		year, week := t.ISOWeek()
		return int64(year*100 + week)
	case "2w from Sunday":
		return floor(number-3, 14) // 1970-01-04 is a Sunday
	case "1mo":
		return int64(t.Year()*100 + int(t.Month()))
	case "3mo":
		return int64(t.Year()*100 + (int(t.Month())+2)/3)
	}
	panic(name)
}

// Hours, days, weeks and months start where people in the zone expect it, at every change of the clock.
func TestGridIsThatOfTheClock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, change := range changes {
		t.Run(change.zone+" "+change.what, func(t *testing.T) {
			z := zone(t, change.zone)
			face := watch(z, change.date)
			for name, g := range grids {
				g = g.In(z)
				starts := face.starts(name)
				if len(starts) < 2 {
					t.Fatalf("%s: the model has %d starts", name, len(starts))
				}
				check := func(at time.Time) {
					i := sort.Search(len(starts), func(i int) bool { return starts[i].After(at) })
					if i == 0 || i == len(starts) {
						return
					}
					if got := g.Start(at); !got.Equal(starts[i-1]) {
						t.Fatalf("%s: %v is in the bucket from %v, want %v", name, at, got, starts[i-1])
					}
					if got := g.Next(at); !got.Equal(starts[i]) {
						t.Fatalf("%s: the bucket with %v ends at %v, want %v", name, at, got, starts[i])
					}
					if i < 2 {
						return
					}
					if got := g.Prev(at); !got.Equal(starts[i-2]) {
						t.Fatalf("%s: the bucket before that of %v starts at %v, want %v", name, at, got, starts[i-2])
					}
				}
				for i, s := range starts {
					if len(starts) < 1200 || i > len(starts)/2-600 && i < len(starts)/2+600 {
						check(s)
						check(s.Add(-1))
					}
				}
				span := starts[len(starts)-1].Sub(starts[0])
				for range 200 {
					check(starts[0].Add(rand.N(span)))
					check(starts[len(starts)/2].Add(time.Duration(rnd.NormFloat64() * float64(3*24*time.Hour))))
				}
			}
		})
	}
}

func TestGridByHand(t *testing.T) {
	berlin, howe := zone(t, "Europe/Berlin"), zone(t, "Australia/Lord_Howe")
	for _, c := range []struct {
		grid            window.Grid
		at, start, next string
	}{
		{window.Every(7 * time.Hour), "1970-01-01T08:00:00Z", "1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z"},
		{window.Every(7 * time.Hour), "1969-12-31T23:00:00Z", "1969-12-31T17:00:00Z", "1970-01-01T00:00:00Z"},
		{window.Every(48 * time.Hour), "1970-01-04T08:00:00Z", "1970-01-03T00:00:00Z", "1970-01-05T00:00:00Z"},
		{window.Every(7), "1970-01-01T00:00:00.000000008Z", "1970-01-01T00:00:00.000000007Z", "1970-01-01T00:00:00.000000014Z"},
		{window.Days(1).In(berlin), "2026-03-29T10:00:00Z", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{window.Days(1).In(berlin), "2026-10-25T10:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{window.Days(2), "1970-01-02T08:00:00Z", "1970-01-01T00:00:00Z", "1970-01-03T00:00:00Z"},
		{window.Weeks(1, time.Monday), "2026-01-01T00:00:00Z", "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"},
		{window.Weeks(2, time.Monday), "1970-01-05T00:00:00Z", "1970-01-05T00:00:00Z", "1970-01-19T00:00:00Z"},
		{window.Months(3), "2024-02-29T00:00:00Z", "2024-01-01T00:00:00Z", "2024-04-01T00:00:00Z"},
		{window.Months(12), "1969-02-28T00:00:00Z", "1969-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{window.Every(6 * time.Hour).In(berlin), "2026-03-29T04:30:00+02:00", "2026-03-29T00:00:00+01:00", "2026-03-29T06:00:00+02:00"},
		{window.Every(time.Hour).In(berlin), "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"},
		{window.Every(time.Hour).In(berlin), "2026-10-25T02:30:00+01:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		{window.Every(time.Hour).In(howe), "2026-04-05T01:45:00+10:30", "2026-04-05T01:00:00+11:00", "2026-04-05T02:00:00+10:30"},
		{window.Every(time.Hour).In(howe), "2026-10-04T02:45:00+11:00", "2026-10-04T02:30:00+11:00", "2026-10-04T03:00:00+11:00"},
		{window.Days(1).In(time.FixedZone("far", 90*3600)), "2026-01-01T00:00:00Z", "2025-12-31T06:00:00Z", "2026-01-01T06:00:00Z"},
		{window.Days(1), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"},
		{window.Months(1), "9999-12-31T00:00:00Z", "9999-12-01T00:00:00Z", ""},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.grid.Start(at); !sameInstant(got, c.start) {
			t.Errorf("%v: the bucket of %s starts at %v, want %s", c.grid, c.at, got, c.start)
		}
		if got := c.grid.Next(at); c.next != "" && !sameInstant(got, c.next) {
			t.Errorf("%v: the bucket of %s ends at %v, want %s", c.grid, c.at, got, c.next)
		}
	}
}

func sameInstant(t time.Time, s string) bool {
	want, err := time.Parse(time.RFC3339Nano, s)
	return err == nil && want.Equal(t)
}

func TestGridRefusals(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, g := range map[string]window.Grid{
		"zero":                   {},
		"no width":               window.Every(0),
		"negative":               window.Every(-time.Hour),
		"7 hours in Berlin":      window.Every(7 * time.Hour).In(berlin),
		"two days by the hour":   window.Every(48 * time.Hour).In(berlin),
		"no days":                window.Days(0),
		"many days":              window.Days(10_001),
		"weeks from no weekday":  window.Weeks(1, 7),
		"weeks from before that": window.Weeks(1, -1),
		"negative months":        window.Months(-1),
	} {
		if err := g.Check(); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: Check is %v", name, err)
		}
		if got := g.Start(now); !got.Equal(now) {
			t.Errorf("%s: Start moved to %v", name, got)
		}
		_ = g.String()
	}
	for _, g := range grids {
		if err := g.In(berlin).Check(); err != nil {
			t.Errorf("Check of %v: %v", g, err)
		}
	}
	if window.Days(1).In(time.UTC) != window.Days(1) || window.Every(24*time.Hour) != window.Days(1) {
		t.Error("the same grid is not equal to itself")
	}
	if s := window.Every(time.Hour).Start(time.Now()); s != s.Round(0) {
		t.Error("the start of this hour's bucket has a monotonic reading, so == with the same start is false")
	}
	for _, far := range []time.Time{time.Unix(1<<62, 0), time.Unix(-1<<62, 0), {}} {
		for _, g := range grids {
			g = g.In(berlin)
			if s, n := g.Start(far), g.Next(far); s.After(far) || n.Before(far) {
				t.Errorf("%v: the bucket of %v is %v to %v", g, far, s, n)
			}
			_ = g.Prev(far)
		}
	}
}

// With any grid, each time is in exactly one bucket, and all times of a bucket are in it.
func FuzzGrid(f *testing.F) {
	for i := range changes {
		f.Add(int64(1_770_000_000), int64(5), uint8(i), uint8(i), int64(time.Hour))
	}
	f.Fuzz(func(t *testing.T, sec, nano int64, kind, where uint8, width int64) {
		at := time.Unix(sec, nano%1e9)
		if y := at.UTC().Year(); y < 2 || y > 9997 {
			return
		}
		var g window.Grid
		switch n := int(uint64(width)%10_000) + 1; kind % 4 {
		case 0:
			g = window.Every(time.Duration(width))
		case 1:
			g = window.Days(n)
		case 2:
			g = window.Weeks(n, time.Weekday(n%7))
		case 3:
			g = window.Months(n)
		}
		g = g.In(zone(t, changes[int(where)%len(changes)].zone))
		if g.Check() != nil {
			return
		}
		start, next := g.Start(at), g.Next(at)
		if start.After(at) || !next.After(at) {
			t.Fatalf("%v: the bucket of %v is %v to %v", g, at, start, next)
		}
		if start.UTC().Year() < 2 || next.UTC().Year() > 9998 {
			return
		}
		for _, inside := range []time.Time{start, next.Add(-1), start.Add(next.Sub(start) / 2)} {
			if s, n := g.Start(inside), g.Next(inside); !s.Equal(start) || !n.Equal(next) {
				t.Fatalf("%v: %v is in %v to %v, but %v in %v to %v", g, at, start, next, inside, s, n)
			}
		}
		if s := g.Start(next); !s.Equal(next) {
			t.Fatalf("%v: a bucket ends at %v, and the next one starts at %v", g, next, s)
		}
		if p := g.Prev(next); !p.Equal(start) {
			t.Fatalf("%v: the bucket before %v starts at %v, want %v", g, next, p, start)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"15m", "1h30m", "1d", "2w", "3mo", "", "d", "-1d", "+1d", "1e3d", "99999999999999999999w", "mo", "1 d", "7h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := window.Parse(s)
		if (err == nil) != (g.Check() == nil) || err != nil && !errors.Is(err, tsdb.ErrInvalid) {
			t.Fatalf("Parse(%q): %v, but Check returns %v", s, err, g.Check())
		}
		if err != nil {
			return
		}
		if again, err := window.Parse(g.String()); err != nil || again != g {
			t.Fatalf("Parse(%q) = %v, which is read back as %v, %v", s, g, again, err)
		}
	})
}
