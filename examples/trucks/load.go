package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// summary counts the lines by their outcome.
type summary struct {
	lines, nameless, points int
	unread                  int       // values that are no numbers
	now                     time.Time // the newest time in the data
}

// line holds the fields of a line that this program uses.
type line struct {
	truck, fleet string
	fields       map[string]float64 // the numbers
	unread       int                // fields that ought to be numbers
	time         time.Time
}

// The fields that this program uses. It ignores others.
const (
	latitude, longitude = "latitude", "longitude"
	velocity            = "velocity"
	fuelState           = "fuel_state"
	currentLoad         = "current_load"
	loadCapacity        = "load_capacity"
)

// load stores the lines, and remembers which fleet each truck belongs to.
func (d *data) load(ctx context.Context, r io.Reader) (sum summary, err error) {
	b := batches{batch[Location]{repo: d.locations}, batch[float64]{repo: d.velocities}, batch[float64]{repo: d.fuel}, batch[float64]{repo: d.loads}}
	in := lineprotocol.NewDecoder(r)
	for in.Next() {
		l, err := parseLine(in)
		if err != nil {
			return sum, fmt.Errorf("line %d: %w", sum.lines+1, err)
		}
		sum.unread += l.unread
		if sum.lines++; l.time.After(sum.now) {
			sum.now = l.time
		}
		if l.fleet != "" && l.truck != "" {
			d.fleets[l.truck] = l.fleet
		}
		e, ok := d.truck(l.truck) // whose fleet an earlier line named, if this one does not
		if !ok {
			sum.nameless++
			continue
		}
		n, err := b.add(ctx, e, l)
		if err != nil {
			return sum, err
		}
		sum.points += n
	}
	return sum, errors.Join(b.locations.flush(ctx), b.velocities.flush(ctx), b.fuel.flush(ctx), b.loads.flush(ctx))
}

func parseLine(in *lineprotocol.Decoder) (l line, err error) {
	if _, err := in.Measurement(); err != nil {
		return l, err
	}
	for {
		name, value, err := in.NextTag()
		if err != nil {
			return l, err
		}
		if name == nil {
			break
		}
		switch string(name) {
		case "name":
			l.truck = string(value)
		case "fleet":
			l.fleet = string(value)
		}
	}
	l.fields = map[string]float64{}
	for {
		name, value, err := in.NextField()
		if err != nil {
			return l, err
		}
		if name == nil {
			break
		}
		switch string(name) {
		case latitude, longitude, velocity, fuelState, currentLoad, loadCapacity:
			x, ok := codec.ValueOf(value.Interface()).AsNumber().Number() // senders write 50 as a float, an integer or a text
			if !ok {
				l.unread++
				continue
			}
			l.fields[string(name)] = x
		}
	}
	l.time, err = in.Time(lineprotocol.Nanosecond, time.Time{})
	return l, err
}

// batches are the points that are to be stored.
type batches struct {
	locations               batch[Location]
	velocities, fuel, loads batch[float64]
}

// add makes a point of each field of a line, and returns how many.
func (b *batches) add(ctx context.Context, e tsdb.Entity, l line) (n int, err error) {
	lat, hasLat := l.fields[latitude]
	long, hasLong := l.fields[longitude]
	if hasLat && hasLong {
		n++
		err = b.locations.add(ctx, e, l.time, Location{lat, long})
	}
	if v, ok := l.fields[velocity]; ok {
		n++
		err = errors.Join(err, b.velocities.add(ctx, e, l.time, v))
	}
	if v, ok := l.fields[fuelState]; ok {
		n++
		err = errors.Join(err, b.fuel.add(ctx, e, l.time, v))
	}
	load, hasLoad := l.fields[currentLoad]
	if capacity := l.fields[loadCapacity]; hasLoad && capacity > 0 {
		n++
		err = errors.Join(err, b.loads.add(ctx, e, l.time, load/capacity))
	}
	return n, err
}

// batch stores points a thousand at a time.
type batch[T any] struct {
	repo   *tsdb.Repository[T]
	points []tsdb.Point[T]
}

func (b *batch[T]) add(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	b.points = append(b.points, tsdb.Point[T]{Entity: e, Time: t, Value: v})
	if len(b.points) < 1000 {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch[T]) flush(ctx context.Context) error {
	_, err := b.repo.PutMany(ctx, b.points)
	b.points = b.points[:0]
	return err
}
