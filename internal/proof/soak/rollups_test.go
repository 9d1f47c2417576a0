package soak

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sums are the expected values of a bucket.
type sums struct {
	least, most    int64 // points
	sum, min, max  int64 // in hundredths; valid only if exact
	exact, touched bool
}

// sumsOf returns the expected values of the points of some slots.
func (s *series) sumsOf(d int, from, to int, certain *marks) sums {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := sums{exact: true, min: math.MaxInt64, max: math.MinInt64}
	for i := max(from, 0); i < min(to, len(s.pending)*64); i++ {
		sure := certain[0].has(i) || certain[1].has(i)
		if sure {
			out.least++
		}
		if !s.tried[0].has(i) {
			continue
		}
		out.touched = true
		out.most++
		version := 0
		if s.tried[1].has(i) {
			version = 1
		}
		if !sure || s.dead.has(i) || version == 1 && !certain[1].has(i) {
			out.exact = false
			continue
		}
		x := hundredths(d, i, version)
		out.sum, out.min, out.max = out.sum+x, min(out.min, x), max(out.max, x)
	}
	return out
}

// slotsOf returns the slots of a device in the bucket that starts at a time.
func (w *world) slotsOf(d *device, start time.Time, width time.Duration) (from, to int) {
	first := func(t time.Time) int {
		since := t.Sub(w.base) - d.offset
		n := int(since / slotWidth)
		if since > 0 && since%slotWidth != 0 {
			n++
		}
		return max(0, n)
	}
	return first(start), first(start.Add(width))
}

// checkBucket compares a bucket with its expected values.
func (w *world) checkBucket(what string, d *device, start time.Time, b window.Bucket, want sums) {
	if b.Points < want.least || b.Points > want.most || b.Bad != 0 {
		w.fail("%s of tenant %s, device %s (%d), bucket %v: got %d points and %d bad, want %d to %d points", what, d.tenant.id, d.entity, d.n, start, b.Points, b.Bad, want.least, want.most)
		return
	}
	if !want.exact || b.Points == 0 {
		return
	}
	got := b.Values[0]
	round := func(x float64) int64 { return int64(math.Round(x * 100)) }
	if got.Count != b.Points || round(got.Sum) != want.sum || round(got.Min) != want.min || round(got.Max) != want.max {
		w.fail("%s of tenant %s, device %s (%d), bucket %v: got count %d, sum %v, min %v, max %v, want %d points with %d, %d, %d hundredths",
			what, d.tenant.id, d.entity, d.n, start, got.Count, got.Sum, got.Min, got.Max, want.least, want.sum, want.min, want.max)
	}
}

// askRollup reads buckets of either width while points are written and the worker runs.
func (w *world) askRollup(rnd *rand.Rand, d *device) error {
	r, width := w.fineRollup, w.fine
	if rnd.IntN(2) == 0 {
		r, width = w.coarse, coarseBy*w.fine
	}
	first := rnd.IntN(int(time.Since(w.base)/width) + 1)
	start, n := w.base.Add(time.Duration(first)*width), 1+rnd.IntN(10)
	d.plain.mu.Lock()
	before := marks{d.plain.arrived[0].clone(), d.plain.arrived[1].clone()}
	d.plain.mu.Unlock()
	found := map[int64]window.Bucket{}
	in := tsdb.Between(start, start.Add(time.Duration(n)*width))
	for b, err := range rollup.For(r, w.repo(d)).Buckets(d.tenant.ctx(w.ctx), d.entity, in, tsdb.OldestFirst) {
		if err != nil {
			return err
		}
		if _, twice := found[b.Start.UnixMilli()]; twice || !in.Contains(b.Start) {
			w.fail("rollup %s of tenant %s, device %s: got bucket %v twice, or outside the interval", r.Name(), d.tenant.id, d.entity, b.Start)
		}
		found[b.Start.UnixMilli()] = b
	}
	if d.tenant.erased.Load() {
		return nil
	}
	for i := range n {
		at := start.Add(time.Duration(i) * width)
		from, to := w.slotsOf(d, at, width)
		w.checkBucket("rollup "+r.Name(), d, at, found[at.UnixMilli()], d.plain.sumsOf(d.n, from, to, &before))
		delete(found, at.UnixMilli())
	}
	for _, b := range found {
		w.fail("rollup %s of tenant %s, device %s: got a bucket at %v, where none begins", r.Name(), d.tenant.id, d.entity, b.Start)
	}
	return nil
}

// work runs a worker until the load ends.
func (w *world) work() {
	worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{Settle: requestTimeout + time.Second}, w.plain)
	if err != nil {
		w.fail("creating the worker: %v", err)
		return
	}
	for pause(w.ctx, time.Second) {
		pass, err := worker.Pass(w.ctx)
		w.stats.passes.Add(1)
		w.stats.buckets.Add(int64(pass.Buckets))
		if err != nil && !byFaults(err, codes.InvalidArgument) && !errors.Is(err, tsdb.ErrErased) {
			w.fail("running the worker: %v", err)
		}
	}
}

// checkRollups lets the worker finish, so that reads use stored buckets only, and compares all buckets with the
// expected values.
func (w *world) checkRollups(ctx context.Context, store *tsdb.Store) {
	worker := must(rollup.NewWorker(store, rollup.WorkerOptions{Settle: time.Minute}, w.plain))
	for i := 0; ; i++ {
		pass, err := worker.Pass(ctx)
		if err != nil {
			w.fail("running the worker without faults: %v", err)
			return
		}
		if pass.Marks == 0 && pass.Waiting == 0 {
			break
		}
		if i == 5 {
			w.fail("the worker does not finish: %+v", pass)
			return
		}
		w.clock.forward(2 * time.Minute) // marks of coarse buckets become due
	}
	buckets, exact := 0, 0
	for _, d := range w.devices {
		if d.tenant == w.victim {
			continue
		}
		certain := d.plain.snapshot()
		for _, level := range []struct {
			r     *rollup.Rollup[reading]
			width time.Duration
		}{{w.fineRollup, w.fine}, {w.coarse, coarseBy * w.fine}} {
			found := map[int64]window.Bucket{}
			for b, err := range rollup.For(level.r, w.plain.For(store, d.tenant.id)).Buckets(d.tenant.ctx(ctx), d.entity, tsdb.AllTime(), tsdb.OldestFirst) {
				if err != nil {
					w.fail("rollup %s of tenant %s, device %s : reading: %v", level.r.Name(), d.tenant.id, d.entity, err)
					return
				}
				found[b.Start.UnixMilli()] = b
			}
			for at := w.base; at.Before(w.base.Add(time.Duration(w.slots()) * slotWidth)); at = at.Add(level.width) {
				from, to := w.slotsOf(d, at, level.width)
				want := d.plain.sumsOf(d.n, from, to, &certain)
				w.checkBucket("rollup "+level.r.Name(), d, at, found[at.UnixMilli()], want)
				delete(found, at.UnixMilli())
				if want.touched {
					if buckets++; want.exact {
						exact++
					}
				}
			}
			for _, b := range found {
				w.fail("rollup %s of tenant %s, device %s has a bucket at %v without points", level.r.Name(), d.tenant.id, d.entity, b.Start)
			}
		}
	}
	w.t.Logf("rollups: %d buckets, %d of them with exactly known values", buckets, exact)
}
