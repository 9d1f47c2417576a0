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

	"github.com/tidemark-go/tidemark/internal/cause"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// WorkerOptions are what a worker may decide. The zero value works on all tenants of the table, every half minute.
type WorkerOptions struct {
	// Tenants are those whose rollups the worker keeps, asked for at each pass. Nil is all that the table has, which costs a
	// request a tenant and pass.
	Tenants func(context.Context) iter.Seq2[tenant.ID, error]
	// Every is the pause between passes. Zero is 30 seconds.
	Every time.Duration
	// Settle is how old a mark is when its bucket is computed, so that the point that was written in the same request has
	// landed, or never will. It is more than the store's timeout of writes, by as much as the clocks of the machines may
	// differ. Zero is three times that timeout. The age of a mark counts from the end of its slot of time, and where the slot
	// had ended before, from the end of the minute in which the mark was made.
	Settle time.Duration
	// Width is how many rows are computed at once. Zero is 8; at most 256.
	Width int
	// OnError is told of each row, and each tenant, with which something went wrong. They are tried again by the next pass.
	// It is called by several goroutines. Nil is for nobody: Pass returns the first one.
	OnError func(error)
}

// Job is the derived rollups of one schema, for a Worker: see Of.
type Job interface {
	Name() string

	pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) error
}

// Of returns the work of keeping the derived rollups of a schema.
func Of[T any](s *tsdb.Schema[T]) Job {
	if s == nil {
		return nil // as NewWorker reports
	}
	return job[T]{s}
}

type job[T any] struct{ *tsdb.Schema[T] }

// Worker computes the buckets that writes and deletions have marked, once they are closed, and replaces what is stored. Any
// number of workers may run, in any processes: they do no harm to each other, and none is needed for reads to be right. It is
// safe for concurrent use.
type Worker struct {
	store *tsdb.Store
	in    inside.Store
	opts  WorkerOptions
	jobs  []Job
}

// NewWorker returns a worker on the derived rollups of schemas. It does nothing by itself: Run does, and Pass.
func NewWorker(store *tsdb.Store, opts WorkerOptions, jobs ...Job) (*Worker, error) {
	in, err := store.Inside(inside.Key{})
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
	case opts.Width < 0 || opts.Width > 256:
		return nil, invalid.New(ErrInvalid, "Width", strconv.Itoa(opts.Width), "0 for the default, or 1 to 256")
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
	if opts.Width == 0 {
		opts.Width = 8
	}
	return &Worker{store: store, in: in, opts: opts, jobs: jobs}, nil
}

// Run makes one pass after the other until ctx ends, and returns why it did.
func (w *Worker) Run(ctx context.Context) error {
	ctx = cause.Given(ctx)
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
			return cause.Of(ctx)
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
}

// pass is one under way.
type pass struct {
	mu    sync.Mutex
	done  Pass
	first error
	told  func(error)
	lag   lag
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
// matches tsdb.ErrClock. It costs two requests a tenant and rollup where nothing is marked.
func (w *Worker) Pass(ctx context.Context) (_ Pass, err error) {
	if w == nil || w.store == nil {
		return Pass{}, invalid.New(ErrInvalid, "worker", "zero", "one from NewWorker")
	}
	watch := w.store.Watch(inside.Key{})
	ctx, op := watch.Begin(ctx, telemetry.RollupPass, telemetry.Subject{})
	defer func() { op.End(err) }()
	p := &pass{told: w.opts.OnError, lag: newLag(w.in.Clock())}
	if _, err := w.in.Confirmed(ctx); err != nil {
		p.fail(err)
		return p.done, cmp.Or(cause.Of(ctx), err)
	}
	for id, err := range w.tenants(ctx) {
		if err != nil {
			p.fail(err)
			p.lag.unknown(w.jobs...)
			break
		}
		p.done.Tenants++
		for _, j := range w.jobs {
			err := j.pass(tenant.NewContext(ctx, id), w, id, p)
			if err != nil && ctx.Err() == nil && !errors.Is(err, tsdb.ErrErased) {
				p.lag.unknown(j)
				p.fail(fmt.Errorf("rollup: tenant %s, dataset %s: %w", id, j.Name(), err))
			}
			if ctx.Err() != nil {
				return p.done, cause.Of(ctx)
			}
		}
	}
	p.lag.tell(watch, w.in.Clock())
	return p.done, p.first
}

// pass works on one tenant: finer rollups first, so that what they change is in those that come from them.
func (j job[T]) pass(ctx context.Context, w *Worker, id tenant.ID, p *pass) error {
	in, all, err := levels(ctx, j.For(w.store, id), true)
	if err != nil {
		return err
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
		p.seen(in.Dataset, l.name)
		s := sweep[T]{level: l, coarser: coarser, worker: w, pass: p}
		errs = append(errs, s.all(ctx))
	}
	return errors.Join(errs...)
}
