package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"
	_ "time/tzdata" // so that the zone is known on every machine

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Reading is a temperature.
type Reading struct {
	TempC float64 `json:"temp_c"`
}

var (
	berlin = zone("Europe/Berlin")
	// from and to are the month: one with a day of 23 hours, the 29th.
	from = time.Date(2026, time.March, 1, 0, 0, 0, 0, berlin)
	to   = time.Date(2026, time.April, 1, 0, 0, 0, 0, berlin)

	tempC = []rollup.Measure[Reading]{
		{Name: "temp_c", Field: "temp_c", Decimals: 2, Max: 100},
	}
	// hours are computed from the points, days from hours: 24 buckets are cheaper to read than 1,440 points.
	hours = rollup.MustDefine("hour", window.Every(time.Hour), tempC, rollup.Options{})
	days  = rollup.MustDefine("day", window.Days(1).In(berlin), tempC, rollup.Options{From: "hour"})

	temperatures = tsdb.MustDefine("temperatures", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
		Rollups: []tsdb.Rollup{hours, days}, // the finer one first
	})
)

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err) // tzdata is linked in
	}
	return z
}

var devices = []tsdb.Entity{tsdb.NewEntity("berlin", "roof-7"), tsdb.NewEntity("berlin", "roof-8"), tsdb.NewEntity("berlin", "cellar-1")}

// temperature returns a made-up value: a cold night, a warm afternoon, and a month that gets warmer.
func temperature(device int, t time.Time) Reading {
	day := t.Sub(from).Hours() / 24
	return Reading{TempC: math.Round(100*(4+0.2*day-5*math.Cos(2*math.Pi*(day-0.125))-float64(device))) / 100}
}

// month writes a month of readings by the minute, computes its rollups, and then changes old points.
func month(ctx context.Context, stdout io.Writer, store *tsdb.Store, id tenant.ID) error {
	repo := temperatures.For(store, id)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, rollup.NewJob(temperatures))
	if err != nil {
		return err
	}
	if err := write(ctx, stdout, store, repo); err != nil {
		return fmt.Errorf("write the readings: %w", err)
	}
	// A server runs worker.Run in a goroutine. The pass that changes hours marks their days, and the next pass computes these. A
	// mark has the time of the end of its minute, and is processed Settle later.
	pass := func() error {
		for marks, buckets, passes := 0, 0, 1; ; passes++ {
			ahead.Add(int64(2 * time.Minute))
			p, err := worker.Pass(ctx)
			if err != nil {
				return fmt.Errorf("pass of the worker: %w", err)
			}
			if marks, buckets = marks+p.Marks, buckets+p.Buckets; p.Waiting == 0 {
				fmt.Fprintf(stdout, "Worker    %d marks in %d passes, %d buckets replaced\n", marks, passes, buckets)
				return nil
			}
		}
	}
	if err := pass(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nDays of Berlin, as stored; daylight saving time starts on the 29th\n")
	if err := table(ctx, stdout, rollup.For(days, repo), tsdb.Between(to.AddDate(0, 0, -4), to)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nHours of the 31st\n")
	if err := table(ctx, stdout, rollup.For(hours, repo), tsdb.Between(to.Add(-10*time.Hour), to.Add(-6*time.Hour))); err != nil {
		return err
	}

	late := time.Date(2026, time.March, 30, 14, 0, 30, 0, berlin)
	day := tsdb.Between(late.Add(-24*time.Hour), late)
	fmt.Fprintf(stdout, "\nThe 30th: a late point, read before and after the worker's pass; then the point is deleted\n")
	for _, change := range []func() error{
		func() error { return repo.Put(ctx, devices[0], late, Reading{TempC: 45}) },
		func() error { return repo.Delete(ctx, devices[0], late) },
	} {
		if err := change(); err != nil {
			return err
		}
		if err := table(ctx, stdout, rollup.For(days, repo), day); err != nil {
			return err
		}
		if err := pass(); err != nil {
			return err
		}
		if err := table(ctx, stdout, rollup.For(days, repo), day); err != nil {
			return err
		}
	}
	return nil
}

// write sends the readings through a writer, which marks their hours in the same requests.
func write(ctx context.Context, stdout io.Writer, store *tsdb.Store, repo *tsdb.Repository[Reading]) error {
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		return err
	}
	in, n := repo.Via(w), 0
	for t := from; t.Before(to) && err == nil; t = t.Add(time.Minute) {
		for i, device := range devices {
			if err == nil {
				err = in.Enqueue(ctx, device, t, temperature(i, t))
				n++
			}
		}
	}
	if closed := w.Close(ctx); err == nil {
		err = closed // nil: everything is stored
	}
	if err == nil {
		fmt.Fprintf(stdout, "Readings  %d of %d devices, one a minute, from %s to %s\n", n, len(devices), from.Format(time.DateOnly), to.Format(time.DateOnly))
	}
	return err
}

func table(ctx context.Context, stdout io.Writer, r *rollup.Reader[Reading], in tsdb.Interval) error {
	for b, err := range r.Buckets(ctx, devices[0], in, tsdb.OldestFirst) {
		if err != nil {
			return fmt.Errorf("read the buckets: %w", err)
		}
		v := b.Values[0]
		fmt.Fprintf(stdout, "  %s  %4d points   min %6.2f   mean %6.2f   max %6.2f\n", b.Start.In(berlin).Format("2006-01-02 15:04"), b.Points, v.Min, v.Mean, v.Max)
	}
	return nil
}
