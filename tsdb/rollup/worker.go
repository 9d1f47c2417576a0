package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// WorkerOptions configure a worker. The zero value works on all tenants of the table, every 30 seconds.
type WorkerOptions struct {
	// Tenants lists the tenants whose rollups the worker maintains. It is called at each pass. If it is nil, the
	// worker finds all tenants of the table: the first pass sends one request per tenant, later passes one per 1,000
	// known tenants.
	Tenants func(context.Context) iter.Seq2[tenant.ID, error]
	// Every is the pause between passes. Zero is 30 seconds.
	Every time.Duration
	// Settle is the least age of a mark before its bucket is computed. By then the point that was written in the same
	// request is stored, or never will be. It must exceed the store's write timeout by the largest difference between
	// the machines' clocks. Zero is three times that timeout. The age of a mark counts from the end of its time slot.
	// If the slot had ended before the mark was made, the age counts from the end of the minute in which it was made.
	Settle time.Duration
	// Concurrency is how many tenants are processed at once, and how many rows of all tenants together are computed
	// at once. Zero is 8; at most 256.
	Concurrency int
	// OnError is called with the error of each row and each tenant that failed. The next pass tries them again.
	// Several goroutines call it. Nil disables it; Pass returns the first error in any case.
	OnError func(error)
}

// job is the derived rollups of one schema.
type job interface {
	Name() string

	derived() []string // the names of its derived rollups
	// pass processes one tenant, and reports whether there were any marks.
	pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) (marks bool, err error)
	// ages reports whether rollups of tenants may expire before their families' policies remove them. trim deletes
	// those.
	ages() bool
	trim(ctx context.Context, store *tsdb.Store, id tenant.ID) (rows int, err error)
}

// newJob returns the job of maintaining the rollups of a schema, or nil for a schema without rollups.
func newJob(d tsdb.Dataset) (job, error) {
	shape, err := inside.Of(d).Shape()
	if err != nil || len(shape.Rollups) == 0 {
		return nil, err
	}
	var of job
	for _, r := range inside.Of(d).Listed() {
		if r == nil { // its definition is not known
			continue
		}
		of = nil
		if r, ok := r.(interface {
			job(tsdb.Dataset, *dataset.Dataset) job
		}); ok {
			of = r.job(d, shape)
		}
		if of == nil {
			return nil, invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(d.Name())+" with the rollup "+r.Name()+" of another type", "rollups of the type of its values")
		}
	}
	if of == nil {
		return nil, invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(d.Name())+" without definitions of its rollups", "a schema from Define")
	}
	return of, nil
}

// job returns nil if the schema has values of another type.
func (r *Rollup[T]) job(d tsdb.Dataset, shape *dataset.Dataset) job {
	if s, ok := d.(*tsdb.Schema[T]); ok {
		return jobOf[T]{s, shape}
	}
	return nil
}

type jobOf[T any] struct {
	*tsdb.Schema[T]
	shape *dataset.Dataset
}

// Worker computes marked buckets after they close, and replaces the stored ones. Any number of workers may run, in
// any processes, without harm. Reads are correct without a worker. Each pass starts at a random tenant, so that
// concurrent workers share the computing; each of them reads all marks. A Worker is safe for concurrent use.
//
// Once a day it deletes buckets of tenants that have expired by SchemaOptions.RollupAges, also of rollups that are
// not derived. The service then scans the rollups of these tenants. For each 500 rows that lose buckets, it costs one
// request that reads and one that writes.
type Worker struct {
	store *tsdb.Store
	in    inside.Store
	opts  WorkerOptions
	jobs  []job

	mu    sync.Mutex
	known []tenant.ID        // the table's tenants, sorted
	busy  map[tenant.ID]bool // tenants that had marks in the last pass

	trimAt map[tenant.ID]time.Time // when to look for expired buckets again
}

// NewWorker returns a worker for the derived rollups of schemas, at least one. Schemas without rollups cost nothing.
// Call Run or Pass to start it.
func NewWorker(store *tsdb.Store, opts WorkerOptions, schemas ...tsdb.Dataset) (*Worker, error) {
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, err
	}
	write := in.Whole.Timeouts().Write
	switch {
	case len(schemas) == 0:
		return nil, invalid.New(tsdb.ErrInvalid, "schemas", "none", "at least one")
	case opts.Every < 0:
		return nil, invalid.New(tsdb.ErrInvalid, "Every", opts.Every.String(), "0 for the default, or more")
	case opts.Settle != 0 && opts.Settle <= write:
		return nil, invalid.New(tsdb.ErrInvalid, "Settle", opts.Settle.String(), fmt.Sprintf("0 for the default, or more than the timeout of writes, %v", write))
	case opts.Concurrency < 0 || opts.Concurrency > 256:
		return nil, invalid.New(tsdb.ErrInvalid, "Concurrency", strconv.Itoa(opts.Concurrency), "0 for the default, or 1 to 256")
	}
	var jobs []job
	for i, d := range schemas {
		j, err := newJob(d)
		if err != nil {
			return nil, fmt.Errorf("schema %d: %w", i, err)
		}
		if j != nil {
			jobs = append(jobs, j)
		}
	}
	opts.Every = cmp.Or(opts.Every, 30*time.Second)
	opts.Settle = cmp.Or(opts.Settle, 3*write)
	opts.Concurrency = cmp.Or(opts.Concurrency, 8)
	return &Worker{store: store, in: in, opts: opts, jobs: jobs}, nil
}

// Run makes one pass after the other until ctx ends, and returns ctx's error.
func (w *Worker) Run(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if w == nil || w.store == nil {
		return invalid.New(tsdb.ErrInvalid, "worker", "the zero value", "a worker from NewWorker")
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer w.leave()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		_, _ = w.Pass(ctx) // OnError gets the errors
		timer.Reset(w.opts.Every)
	}
}

// Pass reports one pass over all tenants.
type Pass struct {
	// Tenants is how many tenants the pass visited.
	Tenants int
	// Buckets is how many buckets were computed and differed from the stored ones.
	Buckets int
	// Marks is how many marks were processed. Waiting is how many stay, because their bucket is open or they are too
	// young.
	Marks, Waiting int
	// Failed is how many rows and tenants failed. The next pass tries them again.
	Failed int
	// Trimmed is how many rows lost buckets that had expired by SchemaOptions.RollupAges.
	Trimmed int
}

// pass is a pass in progress.
type pass struct {
	rows chan struct{} // bounds the rows computed at once

	mu      sync.Mutex
	done    Pass
	first   error
	onError func(error)
	lag     lag
	busy    map[tenant.ID]bool
}

func (p *pass) count(f func(*Pass)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.done)
}

func (p *pass) fail(err error) {
	p.mu.Lock()
	if p.done.Failed++; p.first == nil {
		p.first = err
	}
	p.mu.Unlock()
	if p.onError != nil {
		p.onError(err)
	}
}

// Pass visits all tenants once. It computes the buckets that are marked, closed and older than WorkerOptions.Settle.
// It continues after an error, and returns the first error that OnError received. While the store does not trust its
// clock, Pass does nothing, and returns an error.
//
// It costs one request for each 1,000 tenants without marks. A tenant with marks costs one request for each rollup
// and 500 rows of marks, and the computing. A tenant that had no marks in the pass before costs one more request.
func (w *Worker) Pass(ctx context.Context) (_ Pass, err error) {
	if w == nil || w.store == nil {
		return Pass{}, invalid.New(tsdb.ErrInvalid, "worker", "the zero value", "a worker from NewWorker")
	}
	watch := inside.Of(w.store).Watch()
	ctx, op := watch.Begin(ctx, telemetry.RollupPass, telemetry.Subject{})
	defer func() { op.End(err) }()
	p := &pass{rows: make(chan struct{}, w.opts.Concurrency), onError: w.opts.OnError, lag: newLag(w.in.Clock()), busy: map[tenant.ID]bool{}}
	if _, err := w.in.Service.Confirmed(ctx); err != nil {
		p.fail(err)
		return p.done, cmp.Or(ctxerr.Of(ctx), err)
	}
	ids, err := w.list(ctx)
	if err != nil {
		p.fail(err)
		p.unknown(w.jobs...)
	}
	p.done.Tenants = len(ids)
	if len(ids) > 0 {
		for _, j := range w.jobs {
			for _, rollup := range j.derived() {
				p.waits(j.Name(), rollup, 0)
			}
		}
	}
	places := make(chan struct{}, w.opts.Concurrency)
	var working sync.WaitGroup
	for id, err := range w.marked(ctx, ids) {
		if err != nil {
			p.fail(err)
			p.unknown(w.jobs...)
			break
		}
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			w.tenant(ctx, id, p)
		})
	}
	working.Wait()
	w.trims(ctx, ids, p)
	if ctx.Err() != nil {
		return p.done, ctxerr.Of(ctx)
	}
	w.mu.Lock()
	w.busy = p.busy
	w.mu.Unlock()
	p.lag.tell(watch, w.in.Clock())
	return p.done, p.first
}

// tenant runs all jobs for one tenant.
func (w *Worker) tenant(ctx context.Context, id tenant.ID, p *pass) {
	for _, j := range w.jobs {
		if ctx.Err() != nil {
			return
		}
		marks, err := j.pass(tenant.NewContext(ctx, id), w, id, p)
		if marks {
			p.mu.Lock()
			p.busy[id] = true
			p.mu.Unlock()
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, tsdb.ErrErased) {
			p.unknown(j)
			p.fail(fmt.Errorf("rollup: tenant %s, dataset %s: %w", id, j.Name(), err))
		}
	}
}

func (j jobOf[T]) derived() (names []string) {
	for _, r := range j.shape.Rollups {
		if r.Kind == catalog.Derived {
			names = append(names, r.Name)
		}
	}
	return names
}

// pass processes one tenant: finer rollups first, so that coarser ones include their changes.
func (j jobOf[T]) pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) (marks bool, err error) {
	all, err := levels(ctx, j.For(w.store, id), true)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, l := range all {
		if l.opts.Mode != Derived {
			continue
		}
		var coarser []*level[T]
		for _, c := range all {
			if c.source == l {
				coarser = append(coarser, c)
			}
		}
		s := sweep[T]{level: l, coarser: coarser, worker: w, pass: p}
		some, err := s.all(ctx)
		marks = marks || some
		errs = append(errs, err)
	}
	return marks, errors.Join(errs...)
}
