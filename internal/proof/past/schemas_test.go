package past_test

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// The schemas that testdata/writer.txt declares, without the settings of the table.

type reading struct {
	TempC float64 `json:"temp_c"`
	Note  string  `json:"note,omitempty"`
}

type trip struct {
	Km float64 `json:"km"`
}

const days = 24 * time.Hour

var (
	d90  = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * days)}
	y2   = gc.Class{Name: "y2", Policy: gc.MaxAge(730 * days)}
	h2   = gc.Class{Name: "h2", Policy: gc.MaxAge(2 * time.Hour)}
	keep = gc.Class{Name: "keep", Policy: gc.Never()}

	temp = []rollup.Measure[reading]{{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 1, Max: 1000}}
	km   = []rollup.Measure[trip]{{Name: "km", Of: func(t trip) (float64, bool) { return t.Km, true }, Decimals: 1, Max: 1000}}
	hour = rollup.MustDefine("hour", window.Every(time.Hour), temp, rollup.Options{Retention: keep})
	day  = rollup.MustDefine("day", window.Days(1), temp, rollup.Options{From: "hour", Retention: keep})
	week = rollup.MustDefine("week", window.Days(7), temp, rollup.Options{From: "day", Retention: keep})

	byStream = rollup.MustDefine("stream", window.Days(1), km, rollup.Options{Mode: rollup.ByStream, Retention: keep})
	// formerStream names what was the default span of its rows.
	formerStream = rollup.MustDefine("stream", window.Days(1), km, rollup.Options{Mode: rollup.ByStream, Retention: keep, Span: 400 * days})

	byMessage = rollup.MustDefine("message", window.Days(1), km, rollup.Options{Mode: rollup.ByMessage, Retention: keep})
	byOnce    = rollup.MustDefine("once", window.Days(1), km, rollup.Options{Mode: rollup.Once, Retention: keep})

	number = func(v float64) (float64, bool) { return v, true }
	load   = rollup.MustDefine("load", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "gauge", Of: number, Decimals: 1, Max: 1000, Aggregates: window.Basic | window.Ends | window.StdDev | window.Integral | window.Quantiles},
		{Name: "counter", Of: number, Decimals: 1, Max: 1000, Kind: window.Counter},
	}, rollup.Options{Retention: keep})

	weather = weatherWith(hour, day)
	wider   = weatherWith(hour, day, week) // a program of today that changes the catalogue
	state   = tsdb.MustDefine("state", tsdb.Key("device"), codec.JSON[reading](),
		tsdb.SchemaOptions{Retention: h2, Precision: tsdb.Milliseconds, Salts: 3, Head: tsdb.Head{Points: 2}})
	orders = tsdb.MustDefine("orders", tsdb.Key("order"), codec.String(), tsdb.SchemaOptions{Retention: d90, FirstWins: true, Precision: tsdb.Microseconds})
	fields = tsdb.MustDefine("fields", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{Retention: y2, Merge: true})
	events = tsdb.MustDefine("events", tsdb.Key("line").Uint("stop", 5).Int("level", 2), codec.Float64(),
		tsdb.SchemaOptions{Retention: d90, Identity: true})
	meters = tsdb.MustDefine("meters", tsdb.Key("meter"), codec.Float64(), tsdb.SchemaOptions{Retention: y2, Rollups: []tsdb.Rollup{load}})
	waits  = tsdb.MustDefine("waits", tsdb.Key("queue"), codec.Proto[*durationpb.Duration](), tsdb.SchemaOptions{Retention: keep})
)

func weatherWith(rollups ...tsdb.Rollup) *tsdb.Schema[reading] {
	return tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[reading](),
		tsdb.SchemaOptions{Retention: d90, Classes: []gc.Class{y2}, Rollups: rollups})
}

func tripsWith(stream tsdb.Rollup) *tsdb.Schema[trip] {
	return tsdb.MustDefine("trips", tsdb.Key("truck"), codec.JSON[trip](),
		tsdb.SchemaOptions{Retention: keep, Rollups: []tsdb.Rollup{stream, byMessage, byOnce}})
}
