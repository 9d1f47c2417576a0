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
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// WorkerOptions are what a worker may decide. The zero value works on all tenants of the table, every half minute.
type WorkerOptions struct {
	// Tenants are those whose rollups the worker keeps, asked for at each pass. Nil is all that the table has: the first pass
	// finds them by a request each, later ones look for new tenants by a request for 1,000 known ones.
	Tenants func(context.Context) iter.Seq2[tenant.ID, error]
	// Every is the pause between passes. Zero is 30 seconds.
	Every time.Duration
	// Settle is how old a mark is when its bucket is computed, so that the point that was written in the same request has
	// landed, or never will. It is more than the store's timeout of writes, by as much as the clocks of the machines may
	// differ. Zero is three times that timeout. The age of a mark counts from the end of its slot of time, and where the slot
	// had ended before, from the end of the minute in which the mark was made.
	Settle time.Duration
	// Concurrency is how many tenants are worked on at once, and how many rows of all of them together are computed at once. Zero is
	// 8; at most 256.
	Concurrency int
	// OnError is told of each row, and each tenant, with which something went wrong. They are tried again by the next pass.
	// It is called by several goroutines. Nil is for nobody: Pass returns the first one.
	OnError func(error)
}

// Job is the derived rollups of one schema, for a Worker: see Of.
type Job interface {
	Name() string

	derived() []string // the names of its derived rollups
	// pass works on one tenant, and reports whether there were any marks.
	pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) (marks bool, err error)
	// ages reports whether tenants' rollups may expire before their families' policies say, and trim deletes what has so.
	ages() bool
	trim(ctx context.Context, store *tsdb.Store, id tenant.ID) (rows int, err error)
}

// Of returns the work of keeping the derived rollups of a schema.
func NewJob[T any](s *tsdb.Schema[T]) Job {
	if s == nil {
		return nil // as NewWorker reports
	}
	return job[T]{s}
}

type job[T any] struct{ *tsdb.Schema[T] }

// Worker computes the buckets that writes and deletions have marked, once they are closed, and replaces what is stored. Any
// number of workers may run, in any processes: they do no harm to each other, and none is needed for reads to be right. Each
// pass begins with another tenant, at random, so that workers that run at once share the computing; each of them reads all
// marks. It is safe for concurrent use.
//
// Once a day it deletes the buckets of tenants that have expired by SchemaOptions.RollupAges, also of rollups that are not
// derived. That makes the service scan the rollups of such tenants, and costs a request for 500 rows that lose something and
// another one that writes to them.
type Worker struct {
	store *tsdb.Store
	in    inside.Store
	opts  WorkerOptions
	jobs  []Job

	mu    sync.Mutex
	known []tenant.ID        // that the table has, in order
	busy  map[tenant.ID]bool // those that had marks in the last pass

	trimAt map[tenant.ID]time.Time // when to look for expired buckets again
}

// NewWorker returns a worker on the derived rollups of schemas. It does nothing by itself: Run does, and Pass.
func NewWorker(store *tsdb.Store, opts WorkerOptions, jobs ...Job) (*Worker, error) {
	in, err := inside.OfStore(store)
	if err != nil {
		return nil, err
	}
	write := in.Table.Timeouts().Write
	switch {
	case len(jobs) == 0:
		return nil, invalid.New(ErrInvalid, "jobs", "none", "at least one, from Of")
	case opts.Every < 0:
		return nil, invalid.New(ErrInvalid, "Every", opts.Every.String(), "0 for the default, or more")
	case opts.Settle != 0 && opts.Settle <= write:
		return nil, invalid.New(ErrInvalid, "Settle", opts.Settle.String(), fmt.Sprintf("0 for the default, or more than the timeout of writes, %v", write))
	case opts.Concurrency < 0 || opts.Concurrency > 256:
		return nil, invalid.New(ErrInvalid, "Concurrency", strconv.Itoa(opts.Concurrency), "0 for the default, or 1 to 256")
	}
	for i, j := range jobs {
		if j == nil || j.Name() == "" {
			return nil, invalid.New(ErrInvalid, "job "+strconv.Itoa(i), "zero", "one from Of, with a schema from Define")
		}
	}
	if opts.Every == 0 {
		opts.Every = 30 * time.Second
	}
	if opts.Settle == 0 {
		opts.Settle = 3 * write
	}
	if opts.Concurrency == 0 {
		opts.Concurrency = 8
	}
	return &Worker{store: store, in: in, opts: opts, jobs: jobs}, nil
}

// Run makes one pass after the other until ctx ends, and returns why it did.
func (w *Worker) Run(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if w == nil || w.store == nil {
		return invalid.New(ErrInvalid, "worker", "zero", "one from NewWorker")
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
		_, _ = w.Pass(ctx) // OnError was told
		timer.Reset(w.opts.Every)
	}
}

// Pass says what one pass over all tenants has done.
type Pass struct {
	// Tenants is how many tenants were looked at.
	Tenants int
	// Buckets is how many buckets were computed and differed from what was stored.
	Buckets int
	// Marks is how many marks were done with, and Waiting how many stay: of buckets that are open, or too young.
	Marks, Waiting int
	// Failed is how many rows, and tenants, could not be done; the next pass tries again.
	Failed int
	// Trimmed is of how many rows expired buckets were deleted, by SchemaOptions.RollupAges.
	Trimmed int
}

// pass is one under way.
type pass struct {
	rows chan struct{} // has a place for each row that may be computed at once

	mu    sync.Mutex
	done  Pass
	first error
	told  func(error)
	lag   lag
	busy  map[tenant.ID]bool
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
	if p.told != nil {
		p.told(err)
	}
}

// Pass goes over all tenants once: it computes what is marked, closed and old enough. The error is the first of those that
// OnError was told of; what could be done is done all the same. While the store's clock is not believed nothing is, and the error
// matches tsdb.ErrClock.
//
// It costs a request for each 1,000 tenants without marks, and for a tenant with marks one a rollup and 500 rows of marks, and
// what computing costs. A tenant that had no marks in the pass before costs one more request.
func (w *Worker) Pass(ctx context.Context) (_ Pass, err error) {
	if w == nil || w.store == nil {
		return Pass{}, invalid.New(ErrInvalid, "worker", "zero", "one from NewWorker")
	}
	watch := inside.Watch(w.store)
	ctx, op := watch.Begin(ctx, telemetry.RollupPass, telemetry.Subject{})
	defer func() { op.End(err) }()
	p := &pass{rows: make(chan struct{}, w.opts.Concurrency), told: w.opts.OnError, lag: newLag(w.in.Clock()), busy: map[tenant.ID]bool{}}
	if _, err := w.in.Confirmed(ctx); err != nil {
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

// tenant does all jobs for one tenant.
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

func (j job[T]) derived() (names []string) {
	d, err := inside.OfDataset(j.Schema)
	if err != nil {
		return nil // as NewWorker reports
	}
	for _, r := range d.Rollups {
		if r.Kind == catalog.Derived {
			names = append(names, r.Name)
		}
	}
	return names
}

// pass works on one tenant: finer rollups first, so that what they change is in those that come from them.
func (j job[T]) pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) (marks bool, err error) {
	_, all, err := levels(ctx, j.For(w.store, id), true)
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
