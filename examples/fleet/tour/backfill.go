package tour

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// The number of points that a back-fill stores is about backfillPoints, or backfillEach of each vehicle if that is
// more, and at most backfillMost: some 80,000 are stored in a second.
const (
	backfillPoints = 150_000
	backfillEach   = 50
	backfillMost   = 1_000_000
)

// backfill stores the history up to now, from the newest point that the folder has, at most so long. It returns the
// number of points and the beginning of what it stored.
func backfill(ctx context.Context, store *tsdb.Store, f *fleet, seed uint64, length time.Duration, now time.Time) (points int, from time.Time, err error) {
	from = now.Add(-length)
	newest, err := newestPoint(ctx, store)
	if err != nil {
		return 0, from, err
	}
	if newest.After(from) {
		from = newest
	}
	vehicles := len(f.vehicles)
	most := min(max(backfillPoints, backfillEach*vehicles), backfillMost)
	every := max(f.every(), now.Sub(from)/time.Duration(most)*time.Duration(vehicles))
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: time.Millisecond})
	if err != nil {
		return 0, from, err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, w.Close(bounded))
	}()
	sinks := map[string]*tsdb.Sink[codec.Record]{}
	for _, c := range companies {
		sinks[c.id.String()] = telemetry.For(store, c.id).Via(w)
	}
	coarse := newFleet(seed, vehicles, every)
	for m := range coarse.sent(from, now) {
		if err := sinks[m.vehicle.id.String()].Enqueue(ctx, m.vehicle.entity(), m.time, m.vehicle.measure(m.time).record()); err != nil {
			return points, from, fmt.Errorf("store the history: %w", err)
		}
		points++
	}
	return points, from, nil
}

// newestPoint returns the time of the newest point of all vehicles, or the zero time. It reads one row for each
// vehicle.
func newestPoint(ctx context.Context, store *tsdb.Store) (newest time.Time, err error) {
	for _, c := range companies {
		for p, err := range telemetry.For(store, c.id).Under(tsdb.AllEntities()).Latest(ctx) {
			if err != nil {
				return newest, fmt.Errorf("find the newest point: %w", err)
			}
			if p.Time.After(newest) {
				newest = p.Time
			}
		}
	}
	return newest, nil
}
