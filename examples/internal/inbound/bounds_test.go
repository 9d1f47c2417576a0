package inbound

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// now is what the tests' clock shows: a day after 2025-10-20T22:40:00Z, which is 1761000000 s.
var now = time.Unix(1761086400, 0).UTC()

// bounded opens the datasets of a route, with a clock that stands.
func bounded(t *testing.T, line string, b Bounds) (*Route, *Datasets) {
	t.Helper()
	rs, err := ParseRoutes(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b.Clock = func() time.Time { return now }
	ds, err := NewDatasets(t.Context(), store, rs.Keys(), Options{Times: b})
	if err != nil {
		t.Fatal(err)
	}
	return rs.all[0], ds
}

// TestWrongUnit: a time in another unit than the route says is refused, and the error names the unit that would fit.
// Otherwise the point is stored in 1970, or it is the newest one for thousands of years.
func TestWrongUnit(t *testing.T) {
	fits := func(unit string) string { return "; as " + unit + " it is 2025-10-20T22:40:00Z" }
	const early, late = ", before 2000-01-01T00:00:00Z, which is -not-before", ", after 2025-10-22T22:40:00Z, which is -max-future ahead of the clock"
	digits := map[string]string{"s": "1761000000", "ms": "1761000000000", "us": "1761000000000000", "ns": "1761000000000000000"}
	for unit := range digits {
		json, ds := bounded(t, "+tenant/# dataset=d key=k merge time=ts,"+unit, Bounds{})
		lines, lineDatasets := bounded(t, "+tenant/# format=line key=k time="+unit, Bounds{})
		for sent, number := range digits {
			bound := early
			if len(number) > len(digits[unit]) {
				bound = late
			}
			for _, form := range []string{number, `"` + number + `"`, number[:4] + "." + number[4:] + fmt.Sprintf("e%d", len(number)-4)} {
				e, err := json.one(t, ds, "acme/x", `{"k":"a","v":1,"ts":`+form+`}`)
				want := `the field "ts": the time ` + number + " read as " + unit + " is "
				checkUnit(t, unit+", JSON "+form, e, err, sent == unit, want, bound, fits(sent))
			}
			e, err := lines.one(t, lineDatasets, "acme/x", "d,k=a v=1 "+number)
			checkUnit(t, unit+", line "+number, e, err, sent == unit, "line 1: the time "+number+" read as "+unit+" is ", bound, fits(sent))
		}
	}
}

func checkUnit(t *testing.T, name string, e Event, err error, right bool, want ...string) {
	t.Helper()
	if right {
		if err != nil || e.Time.Unix() != 1761000000 {
			t.Errorf("%s: the right unit is refused or misread: %v, %v", name, e.Time, err)
		}
		return
	}
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Reason != ReasonTime {
		t.Errorf("%s: a wrong unit is stored at %v, error %v", name, e.Time, err)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error is %q; want %q in it", name, err, part)
		}
	}
}

// TestBounds: the bounds are inclusive, hold for every form of a time, and both can be set.
func TestBounds(t *testing.T) {
	open := Bounds{NotBefore: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), MaxFuture: -1}
	for _, tt := range []struct {
		bounds Bounds
		ts     string
		want   string // in the error; empty if the time is accepted
	}{
		{Bounds{}, `946684800000`, ""},
		{Bounds{}, `946684799999.999999`, "is 1999-12-31T23:59:59.999999999Z, before 2000-01-01T00:00:00Z"},
		{Bounds{}, `0`, "is 1970-01-01T00:00:00Z, before"},
		{Bounds{}, `-1`, "is 1969-12-31T23:59:59.999Z, before"},
		{Bounds{}, `1761172800000`, ""},
		{Bounds{}, `1761172800000.000001`, "is 2025-10-22T22:40:00.000000001Z, after 2025-10-22T22:40:00Z"},
		{Bounds{}, `9223372036854775807`, "after the year 9999, after 2025-10-22T22:40:00Z"},
		{Bounds{}, `"1970-01-21T09:10:00Z"`, `the field "ts": the time 1970-01-21T09:10:00Z is before 2000-01-01T00:00:00Z, which is -not-before`},
		{Bounds{}, `"2025-10-22T22:40:01Z"`, `the field "ts": the time 2025-10-22T22:40:01Z is after 2025-10-22T22:40:00Z`},
		{Bounds{}, `"2025-10-23T00:40:00+02:00"`, ""},
		{Bounds{NotBefore: time.Unix(0, 0)}, `0`, ""},
		{Bounds{NotBefore: time.Unix(0, 0)}, `-1`, "before 1970-01-01T00:00:00Z"},
		{Bounds{NotBefore: now}, `1761086399999`, "before 2025-10-21T22:40:00Z"},
		{Bounds{MaxFuture: time.Hour}, `1761090000000`, ""},
		{Bounds{MaxFuture: time.Hour}, `1761090000001`, "after 2025-10-21T23:40:00Z"},
		{open, `1`, ""},
		{open, `253402300799999`, ""},
		{open, `-62135596799999`, ""},
	} {
		r, ds := bounded(t, "+tenant/# dataset=d key=k merge time=ts,ms", tt.bounds)
		_, err := r.one(t, ds, "acme/x", `{"k":"a","v":1,"ts":`+tt.ts+`}`)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %+v: error %v, want %q", tt.ts, tt.bounds, err, tt.want)
		}
	}
}

// TestNumbersOfAnySize: no number of any unit overflows into a time that is accepted.
func TestNumbersOfAnySize(t *testing.T) {
	b := Bounds{Clock: func() time.Time { return now }}.withDefaults()
	for _, unit := range []time.Duration{0, time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour} {
		for shift := range 63 {
			for _, n := range []int64{1<<shift + 1, -1 << shift, 1<<62 - 1 + 1<<shift} {
				s := Unix(n, unit)
				exact := float64(n) * max(unit, 1).Seconds()
				fits := exact >= float64(year2000.Unix()) && exact <= float64(now.Add(maxFuture).Unix())
				if err := b.check(s); (err == nil) != fits {
					t.Errorf("%d in %v is %v, error %v; fits is %v", n, unit, s.Time(), err, fits)
				}
			}
		}
	}
}

func TestBoundsFlags(t *testing.T) {
	for args, want := range map[string]Bounds{
		"":                                     {},
		"-not-before=1990-06-01":               {NotBefore: time.Date(1990, 6, 1, 0, 0, 0, 0, time.UTC)},
		"-not-before=1990-06-01T12:00:00Z":     {NotBefore: time.Date(1990, 6, 1, 12, 0, 0, 0, time.UTC)},
		"-max-future=0 -not-before=0001-01-02": {NotBefore: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), MaxFuture: -1},
		"-max-future=1h":                       {MaxFuture: time.Hour},
		"-max-future=-1h":                      {MaxFuture: 1},
		"-max-future=soon":                     {MaxFuture: 1},
		"-not-before=1990":                     {MaxFuture: 1},
		"-not-before=0001-01-01":               {MaxFuture: 1},
	} {
		var got Bounds
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		got.Flags(flags)
		err := flags.Parse(strings.Fields(args))
		refused := want.MaxFuture == 1
		if (err != nil) != refused || err == nil && (!got.NotBefore.Equal(want.NotBefore) || got.MaxFuture != want.MaxFuture) {
			t.Errorf("%q: %+v, %v; want %+v", args, got, err, want)
		}
	}
}
