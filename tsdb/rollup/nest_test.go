package rollup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestFromMustNest: a rollup can only be computed from another one if each bucket of that one is inside one of its own.
func TestFromMustNest(t *testing.T) {
	hours, days := window.Every(time.Hour), window.Days(1)
	kolkata, lordHowe, caracas := mustZone("Asia/Kolkata"), mustZone("Australia/Lord_Howe"), mustZone("America/Caracas")
	for _, tc := range []struct {
		fine, coarse window.Grid
		ok           bool
	}{
		{hours, days, true},
		{hours, days.In(berlin), true},
		{hours.In(berlin), days, true},
		{hours.In(kolkata), days.In(kolkata), true},
		{hours, days.In(kolkata), false},
		{hours.In(kolkata), days, false},
		{window.Every(30 * time.Minute), days.In(kolkata), true},
		{hours, days.In(lordHowe), false},
		{hours.In(lordHowe), days.In(lordHowe), true},
		{hours, days.In(caracas), false}, // half an hour off from 2007 to 2016
		{window.Every(2 * time.Hour), days.In(berlin), false},
		{window.Every(2 * time.Hour).In(berlin), days.In(berlin), true},
		{window.Every(6 * time.Hour).In(berlin), days.In(berlin), true},
		{window.Every(7 * time.Minute), hours, false},
		{window.Every(7 * time.Second), window.Every(14 * time.Second), true},
		{window.Every(14 * time.Second), window.Every(7 * time.Second), false},
		{days, hours, false},
		{days, window.Weeks(1, time.Monday), true},
		{window.Weeks(1, time.Monday), window.Weeks(1, time.Sunday), false},
		{window.Weeks(1, time.Monday), window.Months(1), false},
		{days.In(berlin), window.Months(3).In(berlin), true},
		{days, window.Months(1).In(berlin), false},
		{window.Months(1), window.Months(12), true},
		{window.Months(5), window.Months(12), false},
	} {
		fine, err := rollup.Define("fine", tc.fine, measures(), rollup.Options{})
		if err != nil {
			t.Fatalf("%v: %v", tc.fine, err)
		}
		coarse, err := rollup.Define("coarse", tc.coarse, measures(), rollup.Options{From: "fine"})
		if err != nil {
			t.Fatalf("%v: %v", tc.coarse, err)
		}
		_, err = tsdb.Define("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{fine, coarse}})
		if (err == nil) != tc.ok || err != nil && (!errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "inside one bucket of")) {
			t.Errorf("%v from %v: %v", tc.coarse, tc.fine, err)
		}
	}
}

// TestSourceMustOutliveABucket: points that expire before their bucket is closed would never be in it.
func TestSourceMustOutliveABucket(t *testing.T) {
	class := func(age time.Duration) gc.Class { return gc.Class{Name: "short", Policy: gc.MaxAge(age)} }
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		points, hours gc.Class
		from          string
		refused       bool
	}{
		"points for ever":              {},
		"points for half a day":        {points: class(day / 2), refused: true},
		"points for a day of 25 hours": {points: class(25*time.Hour + time.Minute), refused: true},
		"points for a moment longer":   {points: class(25*time.Hour + time.Minute + time.Second)},
		"hours for half a day":         {hours: class(day / 2), from: "hour", refused: true},
		"points for half a day, hours": {points: class(day / 2), from: "hour"},
	} {
		hour := rollup.MustDefine("hour", window.Every(time.Hour).In(berlin), measures(), rollup.Options{Retention: tc.hours})
		days := rollup.MustDefine("day", window.Days(1).In(berlin), measures(), rollup.Options{From: tc.from})
		_, err := tsdb.Define("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: tc.points, Rollups: []tsdb.Rollup{hour, days}})
		if (err != nil) != tc.refused || err != nil && !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want an error: %v", name, err, tc.refused)
		}
	}
}
