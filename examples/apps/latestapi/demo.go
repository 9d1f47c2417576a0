package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	demoTenant = "demo"
	demoToken  = "demo"
)

// fill stores made-up points up to now, so that the first curl command finds some. Values depend only on their time, so
// storing them again changes nothing.
func fill(ctx context.Context, store *tsdb.Store, now time.Time) (int, error) {
	id, err := tenant.Parse(demoTenant)
	if err != nil {
		return 0, err
	}
	ctx = tenant.NewContext(ctx, id)
	var readings []tsdb.Point[Reading]
	for i, e := range []tsdb.Entity{
		tsdb.NewEntity("berlin", "cellar-1"), tsdb.NewEntity("berlin", "roof-7"), tsdb.NewEntity("hamburg", "roof-1"),
	} {
		for t := now.Truncate(10 * time.Minute); t.After(now.Add(-3 * 24 * time.Hour)); t = t.Add(-10 * time.Minute) {
			hour := float64(t.UTC().Hour()) + float64(t.Minute())/60
			temp := tenth(15 + 3*float64(i) + 5*math.Sin((hour-9)/12*math.Pi))
			r := Reading{TempC: codec.Float(temp)}
			if i > 0 { // the cellar has no sensor for humidity
				r.Humidity = codec.Float(tenth(60 - 2*temp/3))
			}
			readings = append(readings, tsdb.Point[Reading]{Entity: e, Time: t, Value: r})
		}
	}
	var buses []tsdb.Point[Position]
	for i, e := range []tsdb.Entity{
		tsdb.NewEntity("stc", "22", "173"), tsdb.NewEntity("stc", "22", "175"), tsdb.NewEntity("stc", "9", "181"), tsdb.NewEntity("ln", "41", "174"),
	} {
		for t := now.Truncate(time.Minute); t.After(now.Add(-time.Hour)); t = t.Add(-time.Minute) {
			turn := float64(t.Minute())/30*math.Pi + float64(i)
			buses = append(buses, tsdb.Point[Position]{Entity: e, Time: t, Value: Position{
				Lat: codec.Float(rounded(53.4+math.Sin(turn)/100, 1e4)), Long: codec.Float(rounded(-1.3+math.Cos(turn)/100, 1e4)),
				SpeedKmh: codec.Float(tenth(20 + 20*math.Sin(3*turn))),
			}})
		}
	}
	var energy []tsdb.Point[Meter]
	for t := now.Truncate(time.Hour); t.After(now.Add(-40 * 24 * time.Hour)); t = t.Add(-time.Hour) {
		hour := t.UTC().Hour()
		energy = append(energy, tsdb.Point[Meter]{Entity: tsdb.NewEntity("main-street", "m-17"), Time: t, Value: Meter{
			WattHours: codec.Int(10_000*(t.Unix()/86400) + int64(hour)*10_000/24), Volts: codec.Float(tenth(230 + 3*math.Sin(float64(hour)))),
			Switch: codec.Str(map[bool]string{true: "on", false: "off"}[hour >= 6 && hour < 22]),
		}})
	}
	if err := errors.Join(put(ctx, weather.For(store, id), readings), put(ctx, meters.For(store, id), energy)); err != nil {
		return 0, err
	}
	return len(readings) + len(buses) + len(energy), put(ctx, positions.For(store, id), buses)
}

// put stores points, a thousand per call.
func put[T any](ctx context.Context, repo *tsdb.Repository[T], points []tsdb.Point[T]) error {
	for len(points) > 0 {
		n := min(len(points), 1000)
		if _, err := repo.PutMany(ctx, points[:n]); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		points = points[n:]
	}
	return nil
}

func tenth(x float64) float64 { return rounded(x, 10) }

// rounded rounds x to multiples of 1/parts.
func rounded(x, parts float64) float64 { return math.Round(x*parts) / parts }
