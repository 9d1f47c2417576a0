package heatview

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestPlaces(t *testing.T) {
	for key, want := range map[string]place{
		"acme#readings#berlin#roof-7#7443056836731319018":         {"acme", "readings", "acme#readings#", "acme#readings#berlin#roof-7#"},
		"acme#readings#berlin#roof-7#7443056836731319018#event-1": {"acme", "readings", "acme#readings#", "acme#readings#berlin#roof-7#"},
		"acme#readings!head#berlin#roof-7#":                       {"acme", "readings!head", "acme#readings!head#", "acme#readings!head#berlin#roof-7#"},
		"acme#readings!rollup.hourly#berlin#7443056836731319018":  {"acme", "readings!rollup.hourly", "acme#readings!rollup.hourly#", "acme#readings!rollup.hourly#berlin#"},
		"!tenant#acme":              {entity: "!tenant#acme"},
		"1780315200#device-7":       {entity: "1780315200#device-7"},
		"device-7#1780315200":       {entity: "device-7"},
		"device-7#17#1780315200000": {entity: "device-7#17"},
		"":                          {},
		"#":                         {entity: "#"},
		"##":                        {entity: "##"},
	} {
		if got := placeOf(key); got != want {
			t.Errorf("%q: %+v, want %+v", key, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, field := range []string{
		fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMicro()), fmt.Sprint(at.UnixNano()), fmt.Sprintf("%020d", at.UnixNano()),
		fmt.Sprint(math.MaxInt64 - at.UnixNano()), fmt.Sprint(math.MaxInt64 - at.UnixMilli()), "20260601", "202606011159", "2026-06-01", "2026-06-01T11:59:58Z",
	} {
		if !isTime(field, at) {
			t.Errorf("%q is not taken for a time", field)
		}
		if isTime(field, at.Add(100*time.Hour)) {
			t.Errorf("%q is taken for a time four days later", field)
		}
	}
	for _, field := range []string{"", "7", "00000007", "12345678", "device-2026-06-01", "490154203237518", "99999999999999999999", "20261301"} {
		if isTime(field, at) {
			t.Errorf("%q is taken for a time", field)
		}
	}
}
