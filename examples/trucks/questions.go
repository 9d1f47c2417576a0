package main

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// whereIs returns the last location of one truck: one row. The error is tsdb.ErrNotFound for a truck without a location.
func (d *data) whereIs(ctx context.Context, truck tsdb.Entity) (tsdb.Point[Location], error) {
	return d.locations.Latest(ctx, truck)
}

// whereAre returns the last location of each truck of a fleet. The caller need not know the trucks, and their older points
// cost nothing.
func (d *data) whereAre(ctx context.Context, fleet string) (found []tsdb.Point[Location], err error) {
	for p, err := range d.locations.Under(tsdb.NewPrefix(fleet)).Latest(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

// lowOnFuel returns the trucks whose newest level is below a share of the tank.
func (d *data) lowOnFuel(ctx context.Context, below float64) (found []tsdb.Point[float64], err error) {
	for p, err := range d.fuel.Under(tsdb.AllEntities()).Latest(ctx) {
		if err != nil {
			return nil, err
		}
		if p.Value < below {
			found = append(found, p)
		}
	}
	return found, nil
}

// mean is the mean of a truck's numbers.
type mean struct {
	truck tsdb.Entity
	of    int64 // points
	value float64
}

// stoodStill returns the trucks whose mean velocity in the time up to now, now included, is below a limit, since receivers
// report a small velocity for a standing truck. It leaves out trucks without a velocity in that time. It reads only that time of
// each truck.
func (d *data) stoodStill(ctx context.Context, now time.Time, span time.Duration, below float64) (found []mean, err error) {
	recent := tsdb.Between(now.Add(-span), now).OpenStart().ClosedEnd()
	for truck, err := range d.velocities.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()) {
		if err != nil {
			return nil, err
		}
		m, err := d.meanOf(ctx, d.velocities, truck, recent)
		if err != nil {
			return nil, err
		}
		if m.of > 0 && m.value < below {
			found = append(found, m)
		}
	}
	return found, nil
}

// fleetLoad is the mean load of a fleet's trucks, as a share of their capacity.
type fleetLoad struct {
	fleet  string
	trucks int
	of     int64 // points
	value  float64
}

// averageLoads returns the mean of all loads of the trucks of each fleet.
func (d *data) averageLoads(ctx context.Context, in tsdb.Interval) (fleets []fleetLoad, err error) {
	for truck, err := range d.loads.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()) {
		if err != nil {
			return nil, err
		}
		m, err := d.meanOf(ctx, d.loads, truck, in)
		if err != nil {
			return nil, err
		}
		name := truck.Parts()[0]
		if len(fleets) == 0 || fleets[len(fleets)-1].fleet != name { // entities are in order
			fleets = append(fleets, fleetLoad{fleet: name})
		}
		f := &fleets[len(fleets)-1]
		f.trucks++
		if m.of > 0 {
			f.value = (f.value*float64(f.of) + m.value*float64(m.of)) / float64(f.of+m.of)
			f.of += m.of
		}
	}
	return fleets, nil
}

// meanOf returns the mean of a truck's numbers in an interval. It keeps none of them, however long that is.
func (d *data) meanOf(ctx context.Context, repo *tsdb.Repository[float64], truck tsdb.Entity, in tsdb.Interval) (mean, error) {
	m, sum := mean{truck: truck}, 0.0
	for b, err := range d.byHour.Read(ctx, repo, truck, in, tsdb.NewestFirst) {
		if err != nil {
			return m, err
		}
		sum += b.Values[0].Sum
		m.of += b.Values[0].Count
	}
	if m.of > 0 {
		m.value = sum / float64(m.of)
	}
	return m, nil
}
