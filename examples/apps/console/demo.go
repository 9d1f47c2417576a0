package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const (
	demoTenant = "demo"
	demoToken  = "demo"
	demoTrucks = 32
	demoTime   = 12 * time.Hour
	demoEvery  = 15 * time.Second // in the past; new points come each second
)

// truckState is what a truck of the demo sends.
type truckState struct {
	SpeedKmh float64 `json:"speed_kmh"`
	FuelL    float64 `json:"fuel_l"`
	EngineC  float64 `json:"engine_c"`
	State    string  `json:"state"`
}

var speed = func(s truckState) (float64, bool) { return s.SpeedKmh, true }

var demoMinutes = rollup.MustDefine("minutes", window.Every(time.Minute), []rollup.Measure[truckState]{
	{Name: "speed_kmh", Field: "speed_kmh", Decimals: 1, Max: 1000, Aggregates: window.Basic | window.Ends},
}, rollup.Options{})

var demoSchema = tsdb.MustDefine("trucks", tsdb.Key("depot", "truck"), codec.JSON[truckState](), tsdb.SchemaOptions{
	Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)},
	Precision: tsdb.Milliseconds,
	Rollups:   []tsdb.Rollup{demoMinutes},
})

// demoKnown is what the charts of the demo read from the rollup. For your own datasets, list their schemas here.
var demoKnown = []web.Known{web.Knows(demoSchema, window.Measure[truckState]{Name: "speed_kmh", Of: speed})}

// fill stores twelve hours of made-up data up to now. Values depend only on their time, so storing them again changes
// nothing.
func fill(ctx context.Context, store *tsdb.Store, now time.Time) (int, error) {
	if err := store.Ensure(ctx, demoSchema); err != nil {
		return 0, err
	}
	id := tenant.MustParse(demoTenant)
	repo, stored := demoSchema.For(store, id), 0
	ctx = tenant.NewContext(ctx, id)
	for n := range demoTrucks {
		var points []tsdb.Point[truckState]
		last := now
		if silent(n) {
			last = now.Add(-time.Duration(n) * 7 * time.Minute)
		}
		for t := now.Truncate(demoEvery).Add(-demoTime); t.Before(last); t = t.Add(demoEvery) {
			if n%8 == 3 && t.Unix()%14_400 < 1_500 { // no reception
				continue
			}
			points = append(points, tsdb.Point[truckState]{Entity: truck(n), Time: t, Value: truckAt(n, t)})
		}
		for len(points) > 0 {
			part := points[:min(len(points), 1000)]
			if _, err := repo.PutMany(ctx, part); err != nil {
				return stored, err
			}
			stored += len(part)
			points = points[len(part):]
		}
	}
	return stored, nil
}

func silent(n int) bool { return n%11 == 5 }

func truck(n int) tsdb.Entity {
	return tsdb.NewEntity([]string{"berlin", "hamburg", "leipzig", "münchen"}[n%4], fmt.Sprintf("truck-%02d", n))
}

// drive stores a point of each truck each second, and keeps the rollup, until ctx ends or the folder takes no more
// writes.
func drive(ctx context.Context, store *tsdb.Store, log *slog.Logger) {
	var worker sync.WaitGroup
	defer worker.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, demoSchema)
	if err != nil {
		log.Error("the rollup of the demo is not kept", "error", err)
	} else {
		worker.Go(func() { _ = w.Run(ctx) })
	}
	id := tenant.MustParse(demoTenant)
	repo := demoSchema.For(store, id)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			var points []tsdb.Point[truckState]
			for n := range demoTrucks {
				if !silent(n) {
					points = append(points, tsdb.Point[truckState]{Entity: truck(n), Time: now, Value: truckAt(n, now)})
				}
			}
			_, err := repo.PutMany(tenant.NewContext(ctx, id), points)
			if status.Code(err) == codes.DataLoss { // the disk is full or broken: no write succeeds until the folder is opened again
				log.Error("the demo ends, and the pages stay; free space or repair the disk, then start the program again", "error", err)
				return
			}
			if err != nil && ctx.Err() == nil {
				log.Error("the demo cannot store its points", "error", err)
			}
		}
	}
}

func truckAt(n int, t time.Time) truckState {
	at := float64(t.UnixMilli()) / 1000
	turn, noise := at/1_700+float64(n)*1.7, math.Sin(at/7+float64(n))+math.Sin(at/17.3+float64(2*n))
	s := truckState{
		SpeedKmh: math.Round(10*max(0, 70*math.Sin(turn)+8*noise)) / 10,
		FuelL:    math.Round(10*(320-math.Mod(at+float64(n)*911, 14_400)/60)) / 10,
		EngineC:  math.Round(10*(82+6*math.Sin(turn-.6)+noise)) / 10,
		State:    "driving",
	}
	switch {
	case s.SpeedKmh > 0:
	case math.Sin(turn) < -.7:
		s.State = "loading"
	default:
		s.State = "parked"
	}
	return s
}
