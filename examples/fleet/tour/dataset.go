package tour

import (
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// route is how the bridge stores a message: which parts of its topic are what.
const route = "v1/+tenant/+depot/+vehicle/telemetry dataset=telemetry key=depot,vehicle time=ts,ms"

// topic is where a vehicle publishes.
func (v *vehicle) topic() string {
	return "v1/" + v.id.String() + "/" + v.depot.name + "/" + v.name + "/telemetry"
}

func (v *vehicle) entity() tsdb.Entity { return tsdb.NewEntity(v.depot.name, v.name) }

// number reads a field of a stored message.
func number(field string) func(codec.Record) (float64, bool) {
	return func(r codec.Record) (float64, bool) { return r.Number(field) }
}

// measured are the fields that have rollups.
var measured = []struct {
	field string
	most  float64
}{{"speed_kmh", 1e4}, {"battery_pct", 1e4}, {"motor_c", 1e4}}

func measures() (all []rollup.Measure[codec.Record]) {
	for _, m := range measured {
		all = append(all, rollup.Measure[codec.Record]{Name: m.field, Field: m.field, Decimals: 1, Max: m.most})
	}
	return all
}

// shown are the measures for charts.
func shown() (all []window.Measure[codec.Record]) {
	for _, m := range measured {
		all = append(all, window.Measure[codec.Record]{Name: m.field, Of: number(m.field)})
	}
	return all
}

// kept is how long points are kept.
var kept = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}

// telemetry holds the vehicles' messages: a month of points, with rollups by minute and hour, and the newest point of
// each vehicle together in one row, so that a table of all vehicles is one short read.
var (
	minutes = rollup.MustDefine("minute", window.Every(time.Minute), measures(), rollup.Options{Retention: kept})
	hours   = rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{From: "minute"})

	telemetry = tsdb.MustDefine("telemetry", tsdb.Key("depot", "vehicle"), codec.Records(), tsdb.SchemaOptions{
		Retention: kept, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1}, MaxFuture: time.Hour,
		Rollups: []tsdb.Rollup{minutes, hours},
	})
)
