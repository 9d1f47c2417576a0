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

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// Run executes the plan's load for one candidate after the other: first the heavy load as fast as possible, then the load, at
// its own pace times the speed. If ctx ends, Run returns a report of what was done, with an error that matches ctx's.
// Errors of single requests are counted in the report and do not end a run; other errors do, and the report holds the
// candidates that were complete. Arguments that are not allowed match ErrInvalid; there is no report then.
//
// It takes about the time of the heavy load on this machine and the duration divided by the speed, for each candidate. It holds
// samples in memory, some 20 MB, and the table's data in files. The seed decides what is requested, but not the order in which requests that are under way at once
// are executed.
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
	for i, c := range chosen {
		m, err := p.runOne(ctx, c, o)
		r.Candidates[i].Measured = m
		if err != nil {
			return r, fmt.Errorf("candidate %s: %w", c.name, err)
		}
	}
	return r, nil
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

func (p *Plan) runOne(ctx context.Context, c *candidate, o RunOptions) (_ *Measured, err error) {
	r := &runner{o: o, c: c, l: p.scaled(o.Scale), queries: make([]queryMeter, len(p.queries))}
	// The recorder keeps the last 64 columns: the load, without the heavy load before it.
	wall := time.Duration(float64(p.duration) / o.Speed)
	if r.recorder, err = heatmap.NewRecorder(heatmap.Options{Keep: max(wall, time.Second), Column: max(wall/60, time.Millisecond)}); err != nil {
		return nil, err
	}
	dial := append(r.meter.dialOptions(), r.recorder.DialOptions()...)
	var be *backend
	if o.Cloud != nil {
		be, err = openCloud(ctx, *o.Cloud, dial)
	} else {
		be, err = openEngine(ctx, o.Dir, dial)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, be.close()) }()
	table := scratchTable()
	if o.Cloud != nil {
		defer func() { err = errors.Join(err, be.remove(ctx, table)) }()
	}
	if c.native() {
		r.driver, err = newSDKDriver(ctx, r.l, c, be, table)
	} else {
		r.driver, err = newRawDriver(ctx, r.l, c, be, table)
	}
	if err != nil {
		return nil, err
	}
	defer func() { // needs no time of ctx, because the requests are over
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = errors.Join(err, r.driver.close(closing))
	}()
	limited, cancel := context.WithTimeout(ctx, o.MaxTime)
	defer cancel()
	r.run(limited)
	m := r.measured()
	if limited.Err() != nil {
		m.Stopped = fmt.Sprintf("the time of %v for a candidate was over", o.MaxTime)
	}
	if err := ctxerr.Of(ctx); err != nil {
		m.Stopped = "interrupted"
		return m, err
	}
	return m, nil
}

// run executes the heavy load and then the load, until they or ctx end.
func (r *runner) run(ctx context.Context) {
	began := time.Now()
	r.execute(ctx, "heavy load", -r.l.heavy, 0, r.l.heavyOps())
	r.settle(ctx)
	r.heavy = r.written(time.Since(began))
	if ctx.Err() != nil {
		return
	}
	r.meter.writes.reset()
	began = time.Now()
	done := make(chan struct{})
	settling := make(chan struct{})
	go func() { // as a worker does in the background
		defer close(settling)
		for {
			select {
			case <-done:
				return
			case <-time.After(500 * time.Millisecond):
				r.settle(ctx)
			}
		}
	}()
	r.execute(ctx, "load", 0, r.l.duration, r.l.hourOps())
	r.load = r.written(time.Since(began))
	close(done)
	<-settling
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

func (r *runner) failure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstErr == nil {
		r.firstErr = err
	}
}

// execute executes operations until they or ctx end. Those of the load wait until they are due.
func (r *runner) execute(ctx context.Context, part string, from, to time.Duration, ops iter.Seq[op]) {
	jobs := make(chan []op, r.o.Concurrency)
	var workers sync.WaitGroup
	for range r.o.Concurrency {
		workers.Go(func() {
			for job := range jobs {
				r.do(ctx, job)
			}
		})
	}
	began, paced := time.Now(), from >= 0
	var writes []op
	most := r.l.batch()
	send := func(job []op) bool {
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
		return len(job) == 0 || send(job)
	}
	for o := range ops {
		if ctx.Err() != nil {
			break
		}
		r.report(part, float64(o.at-from)/float64(to-from))
		if paced {
			due := time.Duration(float64(o.at) / r.o.Speed)
			if early := due - time.Since(began); early > 5*time.Millisecond { // timers are not finer on all systems
				if !flush() || !wait(ctx, early) {
					break
				}
			}
			r.behind = max(time.Since(began)-due, 0)
		}
		if d, ok := r.driver.(*sdkDriver); ok {
			d.advance(o.at)
		}
		if o.query != nil {
			if !flush() || !send([]op{o}) {
				break
			}
			continue
		}
		if writes = append(writes, o); len(writes) == most && !flush() {
			break
		}
	}
	flush()
	close(jobs)
	workers.Wait()
	r.report(part, 1)
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// report calls Progress, about twice a second.
func (r *runner) report(part string, done float64) {
	if r.o.Progress == nil || done < 1 && time.Since(r.reported) < 500*time.Millisecond {
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
		if ctx.Err() != nil && failed > 0 {
			r.points.Add(int64(len(job) - failed))
			return // what was interrupted did not fail
		}
		r.points.Add(int64(len(job)))
		if failed > 0 {
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
	m.durations.add(time.Since(began))
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
	}
}
