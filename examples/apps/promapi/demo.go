package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const (
	demoTenant = "demo"
	demoToken  = "demo"
)

// truckState is what a truck of the demo sends.
type truckState struct {
	SpeedKmh   float64 `json:"speed_kmh"`
	OdometerKm float64 `json:"odometer_km"`
	FuelL      float64 `json:"fuel_l"`
	Moving     bool    `json:"moving"`
	Driver     string  `json:"driver"`
	Load       struct {
		Kg float64 `json:"kg"`
	} `json:"load"`
}

var demoTrucks = tsdb.MustDefine("trucks", tsdb.Key("fleet", "truck"), codec.JSON[truckState](), tsdb.SchemaOptions{
	Retention: gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)},
	Precision: tsdb.Milliseconds,
	Rollups:   []tsdb.Rollup{demoHours},
})

var everyHour = window.Every(time.Hour)

var demoHours = rollup.MustDefine("hours", everyHour, []rollup.Measure[truckState]{
	{Name: "speed_kmh", Field: "speed_kmh", Decimals: 1, Max: 1000},
	{Name: "fuel_l", Field: "fuel_l", Decimals: 1, Max: 100_000},
}, rollup.Options{})

// fill stores two hours of made-up data of twelve trucks up to now, a point every ten seconds. Values depend only on
// their time, so storing them again changes nothing.
func fill(ctx context.Context, store *tsdb.Store, now time.Time) (int, error) {
	if err := store.Ensure(ctx, demoTrucks); err != nil {
		return 0, err
	}
	id, err := tenant.Parse(demoTenant)
	if err != nil {
		return 0, err
	}
	repo, stored := demoTrucks.For(store, id), 0
	ctx = tenant.NewContext(ctx, id)
	for n := range 12 {
		e := tsdb.NewEntity([]string{"East", "North", "South", "West"}[n%4], fmt.Sprintf("truck_%02d", n))
		var points []tsdb.Point[truckState]
		for t := now.Truncate(10 * time.Second); t.After(now.Add(-2 * time.Hour)); t = t.Add(-10 * time.Second) {
			points = append(points, tsdb.Point[truckState]{Entity: e, Time: t, Value: truckAt(n, t)})
		}
		if _, err := repo.PutMany(ctx, points); err != nil {
			return stored, err
		}
		stored += len(points)
	}
	return stored, nil
}

// rollUp stores the finished hours, about a minute after the start, and again as points arrive. stop waits for its end.
func rollUp(ctx context.Context, store *tsdb.Store, log *slog.Logger) (stop func(), err error) {
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{
		Tenants: func(context.Context) iter.Seq2[tenant.ID, error] {
			return func(yield func(tenant.ID, error) bool) { yield(tenant.Parse(demoTenant)) }
		},
		OnError: func(err error) { log.Warn("a rollup of the demo is not stored", "error", err) },
	}, demoTrucks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx) // the error is that of ctx
	}()
	return func() { cancel(); <-ended }, nil
}

func truckAt(n int, t time.Time) truckState {
	turn := float64(t.Unix()%86_400)/900 + float64(n)
	s := truckState{
		SpeedKmh:   max(0, math.Round(600*math.Sin(turn))/10),
		OdometerKm: float64(10_000*n) + float64(t.Unix()%100_000_000)/180,
		FuelL:      300 - float64(t.Unix()%14_400)/60,
		Driver:     []string{"Andy", "Bea", "Carl", "Dora"}[(n+int(t.Unix()/28_800))%4],
	}
	s.Moving = s.SpeedKmh > 1
	s.Load.Kg = float64(500 * (n%5 + 1))
	return s
}
