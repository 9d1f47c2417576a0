package lab

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// driver executes the operations of a candidate. It is safe for concurrent use.
type driver interface {
	// write stores points of one dataset and returns how many failed.
	write(ctx context.Context, ops []op) (failed int, err error)
	// query asks a query and reads all of its answer.
	query(ctx context.Context, o op) error
	close(ctx context.Context) error
}

// sdkDriver uses a schema, repositories and a writer.
type sdkDriver struct {
	l       *load
	store   *tsdb.Store
	writer  *tsdb.Writer
	schemas []*tsdb.Schema[[]byte]
	rollup  *rollup.Rollup[[]byte] // nil for none
	worker  *rollup.Worker
	now     atomic.Int64 // the time of the load, in nanoseconds since 1970
}

// measured is the number in a payload.
var measured = rollup.Measure[[]byte]{Name: "v", Of: func(b []byte) (float64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	return float64(b[0]), true
}, Max: 255}

func newSDKDriver(ctx context.Context, l *load, c *candidate, be *backend, table string) (_ *sdkDriver, err error) {
	d := &sdkDriver{l: l}
	d.advance(-l.heavy)
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: c.heads}}
	if c.rollup > 0 {
		if d.rollup, err = rollup.Define("lab", window.Every(c.rollup), []rollup.Measure[[]byte]{measured}, rollup.Options{}); err != nil {
			return nil, err
		}
		opts.Rollups = []tsdb.Rollup{d.rollup}
	}
	var datasets []tsdb.Dataset
	for i, of := range l.datasets {
		var key tsdb.KeyFields
		for _, f := range of.fields {
			key = key.Text(f.name)
		}
		opts.Salts = c.keys[i].salts
		schema, err := tsdb.Define(of.name, key, codec.Bytes(), opts)
		if err != nil {
			return nil, err
		}
		d.schemas = append(d.schemas, schema)
		datasets = append(datasets, schema)
	}
	d.store, err = tsdb.New(be.client, table, tsdb.Options{
		Admin: be.admin, StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return time.Unix(0, d.now.Load()) }},
	})
	if err != nil {
		return nil, err
	}
	if err := d.store.Ensure(ctx, datasets...); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	if d.writer, err = d.store.NewWriter(tsdb.WriterOptions{}); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	if d.rollup != nil {
		var schemas []tsdb.Dataset
		for _, s := range d.schemas {
			schemas = append(schemas, s)
		}
		if d.worker, err = rollup.NewWorker(d.store, rollup.WorkerOptions{}, schemas...); err != nil {
			return nil, errors.Join(err, d.close(ctx))
		}
	}
	return d, nil
}

// advance sets the time of the load.
func (d *sdkDriver) advance(at time.Duration) {
	d.now.Store(epoch.Add(d.l.starts + at).UnixNano())
}

func (d *sdkDriver) repo(of, entity int) *tsdb.Repository[[]byte] {
	return d.schemas[of].For(d.store, tenant.MustParse(d.l.tenantName(d.l.datasets[of].tenant(entity))))
}

func (d *sdkDriver) entity(of, entity int) tsdb.Entity {
	return tsdb.NewEntity(d.l.datasets[of].parts(entity)...)
}

func (d *sdkDriver) write(ctx context.Context, ops []op) (failed int, err error) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for _, o := range ops {
		payload := d.l.datasets[o.of].payload(o)
		wait.Add(1)
		_ = d.repo(o.of, o.entity).Via(d.writer).EnqueueFunc(ctx, d.entity(o.of, o.entity), o.time, payload, func(out tsdb.Outcome) {
			if out.State != tsdb.Stored {
				mu.Lock()
				failed++
				err = out.Err
				mu.Unlock()
			}
			wait.Done()
		}) // the callback gets the error
	}
	wait.Wait()
	return failed, err
}

func (d *sdkDriver) query(ctx context.Context, o op) error {
	repo, e, of := d.repo(o.of, o.entity), d.entity(o.of, o.entity), d.l.datasets[o.of]
	switch o.query.kind {
	case latest:
		_, err := repo.Latest(ctx, e)
		return found(err)
	case latestMany:
		var entities []tsdb.Entity
		for _, i := range d.l.many(o) {
			entities = append(entities, d.entity(o.of, i))
		}
		_, err := repo.LatestMany(ctx, entities, 1)
		return err
	case ranged:
		return drain(repo.Range(ctx, e, tsdb.Between(o.time.Add(-o.query.last), o.time)))
	case under:
		prefix := tsdb.AllEntities()
		if n := o.query.fields; n > 0 {
			prefix = tsdb.NewPrefix(of.parts(o.entity)[:n]...)
		}
		return drain(repo.Under(prefix).Latest(ctx))
	}
	from := o.time.Add(-o.query.last).Truncate(o.query.every)
	if d.rollup != nil {
		return drain(rollup.For(d.rollup, repo).Buckets(ctx, e, tsdb.Between(from, o.time)))
	}
	return drain(repo.Range(ctx, e, tsdb.Between(from, o.time)))
}

// found ignores that there is no point.
func found(err error) error {
	if errors.Is(err, tsdb.ErrNotFound) {
		return nil
	}
	return err
}

// drain reads a sequence to its end and returns the first error.
func drain[T any](all iter.Seq2[T, error]) (first error) {
	for _, err := range all {
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}

// settle computes the buckets that are closed, as a worker in the background does.
func (d *sdkDriver) settle(ctx context.Context) error {
	if d.worker == nil {
		return nil
	}
	_, err := d.worker.Pass(ctx)
	return err
}

func (d *sdkDriver) close(ctx context.Context) error {
	return errors.Join(d.writer.Close(ctx), d.store.Close())
}
