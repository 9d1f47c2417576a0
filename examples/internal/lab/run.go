package lab

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// Run executes the plan's load for one candidate after the other: first the heavy load as fast as possible, then the
// load, at its own pace times the speed. If ctx ends, Run returns a report of what was done, with an error that matches
// ctx's. Errors of single requests are counted in the report and do not end a run; other errors do, and the report
// holds the candidates that were complete. Arguments that are not allowed match ErrInvalid; there is no report then.
//
// It takes about the time of the heavy load on this machine and the duration divided by the speed, for each candidate.
// It holds samples in memory, some 20 MB, and the table's data in files. The seed decides what is requested, but not
// the order in which requests that are under way at once are executed.
func (p *Plan) Run(ctx context.Context, o RunOptions) (*Report, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	o, chosen, err := o.resolve(p)
	if err != nil {
		return nil, err
	}
	r := p.report(chosen)
	r.Scale, r.Speed, r.Cloud = o.Scale, o.Speed, o.Cloud != nil
	return r, r.run(ctx, chosen, o)
}

func (r *Report) run(ctx context.Context, chosen []*candidate, o RunOptions) error {
	if o.Cloud == nil {
		r.Leftovers = removeFolders(o.Dir)
	}
	for i, c := range chosen {
		m, leftovers, err := r.plan.runOne(ctx, c, o, i == 0)
		r.Leftovers = append(r.Leftovers, leftovers...)
		r.Candidates[i].Measured = m
		if err != nil {
			return fmt.Errorf("candidate %s: %w", c.name, err)
		}
	}
	return nil
}

// runner runs one candidate.
type runner struct {
	o        RunOptions
	c        *candidate
	l        *load
	driver   driver
	meter    meter
	recorder *heatmap.Recorder
	queries  []queryMeter // as the plan's

	points, failed, asked atomic.Int64
	mu                    sync.Mutex
	firstErr              error // of a request that failed
	broken                error // of the storage: no request succeeds after it
	stop                  context.CancelFunc

	heavy    written
	load     written
	behind   time.Duration // how long the load took more than it should
	reported time.Time
}

// written is what a part of the run wrote.
type written struct {
	points, rows, bytes, requests int64
	took                          time.Duration
}

// queryMeter is what was counted of a kind of query.
type queryMeter struct {
	durations                       durations
	asked, failed                   atomic.Int64
	requests, seen, returned, worst atomic.Int64
}

func (p *Plan) runOne(ctx context.Context, c *candidate, o RunOptions, first bool) (_ *Measured, leftovers []string, err error) {
	r := &runner{o: o, c: c, l: p.scaled(o.Scale), queries: make([]queryMeter, len(p.queries))}
	// The recorder keeps the last 64 columns: the load, without the heavy load before it.
	wall := time.Duration(float64(p.duration) / o.Speed)
	if r.recorder, err = heatmap.NewRecorder(heatmap.Options{Keep: max(wall, time.Second), Column: max(wall/60, time.Millisecond)}); err != nil {
		return nil, nil, err
	}
	dial := append(r.meter.dialOptions(), r.recorder.DialOptions()...)
	var be *backend
	if o.Cloud != nil {
		be, err = openCloud(ctx, *o.Cloud, dial)
	} else {
		be, err = openEngine(ctx, o.Dir, dial)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, be.close()) }()
	table := scratchTable(time.Now(), o.MaxTime)
	if o.Cloud != nil {
		if first {
			leftovers = be.removeTables(ctx, time.Now())
		}
		defer func() { err = errors.Join(err, be.remove(ctx, table)) }()
	}
	if c.native() {
		r.driver, err = newSDKDriver(ctx, r.l, c, be, table)
	} else {
		r.driver, err = newRawDriver(ctx, r.l, c, be, table)
	}
	if err != nil {
		return nil, leftovers, err
	}
	defer func() { // needs no time of ctx, because the requests are over
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = errors.Join(err, r.driver.close(closing))
	}()
	limited, cancel := context.WithTimeout(ctx, o.MaxTime)
	defer cancel()
	r.stop = cancel
	r.run(limited)
	m := r.measured()
	if limited.Err() != nil {
		m.Stopped = fmt.Sprintf("the time of %v for a candidate was over", o.MaxTime)
	}
	if r.broken != nil {
		m.Stopped = "the storage failed"
		return m, leftovers, r.broken
	}
	if err := ctxerr.Of(ctx); err != nil {
		m.Stopped = "interrupted"
		return m, leftovers, err
	}
	return m, leftovers, nil
}

// run executes the heavy load and then the load, until they or ctx end.
func (r *runner) run(ctx context.Context) {
	background := newGroup(ctx)
	defer background.end()
	ctx = background.ctx
	began := time.Now()
	r.execute(ctx, "heavy load", -r.l.heavy, 0, r.l.heavyOps())
	r.settle(ctx)
	r.heavy = r.written(time.Since(began))
	if ctx.Err() != nil {
		return
	}
	r.meter.writes.reset()
	began = time.Now()
	background.start(func(ctx context.Context) { // as a worker does
		for ctxerr.Wait(ctx, 500*time.Millisecond) == nil {
			r.settle(ctx)
		}
	})
	r.execute(ctx, "load", 0, r.l.duration, r.l.hourOps())
	r.load = r.written(time.Since(began))
	background.stop()
	background.wait()
}

// written returns what was written since the heavy load.
func (r *runner) written(took time.Duration) written {
	return written{
		points: r.points.Load() - r.heavy.points, rows: r.meter.rowsWritten.Load() - r.heavy.rows,
		bytes: r.meter.bytes.Load() - r.heavy.bytes, requests: r.meter.requests.Load() - r.heavy.requests, took: took,
	}
}

// settle maintains rollups. An error is counted, because the next time repeats the work.
func (r *runner) settle(ctx context.Context) {
	if d, ok := r.driver.(*sdkDriver); ok {
		if err := d.settle(ctx); err != nil && ctx.Err() == nil {
			r.failure(err)
		}
	}
}

// failure keeps the first error, and ends the run at an error of the storage: a full disk fails all that follows.
func (r *runner) failure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstErr == nil {
		r.firstErr = err
	}
	if r.broken == nil && status.Code(err) == codes.DataLoss {
		r.broken = fmt.Errorf("the storage failed, so the run ended: %w", err)
		r.stop()
	}
}

// execute executes operations until they or ctx end. Those of the load wait until they are due.
func (r *runner) execute(ctx context.Context, part string, from, to time.Duration, ops iter.Seq[op]) {
	workers := newGroup(ctx)
	defer workers.end()
	jobs := make(chan []op, r.o.Concurrency)
	for range r.o.Concurrency {
		workers.start(func(ctx context.Context) {
			for job := range receive(ctx, jobs) {
				r.do(ctx, job)
			}
		})
	}
	done := r.send(workers.ctx, part, from, to, ops, jobs)
	close(jobs)
	workers.running.Wait()
	if workers.ctx.Err() != nil {
		done = min(done, 0.999) // some of what was sent was not executed
	}
	workers.wait()
	r.report(part, done, true)
}

// receive returns what arrives until the channel is closed or ctx ends.
func receive[T any](ctx context.Context, from <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			select {
			case v, ok := <-from:
				if !ok || !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// send sends operations to workers, points several at a time. It returns which part of the operations was sent.
func (r *runner) send(ctx context.Context, part string, from, to time.Duration, ops iter.Seq[op], jobs chan<- []op) (done float64) {
	began, paced := time.Now(), from >= 0
	var writes []op
	most := r.l.batch()
	give := func(job []op) bool {
		select {
		case jobs <- job:
			return true
		case <-ctx.Done():
			return false
		}
	}
	flush := func() bool {
		job := writes
		writes = nil
		return len(job) == 0 || give(job)
	}
	for o := range ops {
		if ctx.Err() != nil {
			return done
		}
		done = float64(o.at-from) / float64(to-from)
		r.report(part, done, false)
		if paced {
			due := time.Duration(float64(o.at) / r.o.Speed)
			if early := due - time.Since(began); early > 5*time.Millisecond { // timers are not finer on all systems
				if !flush() || ctxerr.Wait(ctx, early) != nil {
					return done
				}
			}
			r.behind = max(time.Since(began)-due, 0)
		}
		if d, ok := r.driver.(*sdkDriver); ok {
			d.advance(o.at)
		}
		if o.query != nil {
			if !flush() || !give([]op{o}) {
				return done
			}
			continue
		}
		if writes = append(writes, o); len(writes) == most && !flush() {
			return done
		}
	}
	if !flush() {
		return done
	}
	return 1
}

// report calls Progress, about twice a second and at the end of a part.
func (r *runner) report(part string, done float64, end bool) {
	if r.o.Progress == nil || !end && time.Since(r.reported) < 500*time.Millisecond {
		return
	}
	r.reported = time.Now()
	r.o.Progress(Progress{Candidate: r.c.name, Part: part, Done: done, Points: r.points.Load(), Queries: r.asked.Load()})
}

// do executes points, or one query.
func (r *runner) do(ctx context.Context, job []op) {
	if ctx.Err() != nil {
		return
	}
	if job[0].query == nil {
		failed, err := r.driver.write(ctx, job)
		r.points.Add(int64(len(job) - failed))
		if failed > 0 && ctx.Err() == nil { // what was interrupted did not fail
			r.failed.Add(int64(failed))
			r.failure(err)
		}
		return
	}
	o := job[0]
	m := &r.queries[slices.Index(r.l.Plan.queries, o.query)]
	ctx, t := counted(ctx)
	began := time.Now()
	err := r.driver.query(ctx, o)
	if ctx.Err() != nil {
		return
	}
	m.asked.Add(1)
	r.asked.Add(1)
	m.requests.Add(t.requests.Load())
	m.returned.Add(t.returned.Load())
	seen := t.seen.Load()
	m.seen.Add(seen)
	for worst := m.worst.Load(); seen > worst && !m.worst.CompareAndSwap(worst, seen); worst = m.worst.Load() {
	}
	if err != nil {
		m.failed.Add(1)
		r.failure(err)
		return
	}
	m.durations.add(time.Since(began))
}
