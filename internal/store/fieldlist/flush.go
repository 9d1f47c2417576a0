package fieldlist

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Flush writes what is not written yet, and returns the first error. What is not written stays.
func (r *Recorder) Flush(ctx context.Context) (err error) {
	dirty := r.dirty()
	if len(dirty) == 0 {
		return nil
	}
	ctx, op := r.t.Watch.Begin(bt.WithUpkeep(ctx), telemetry.Upkeep, telemetry.Subject{})
	defer func() { op.End(err) }()
	tables := map[*bt.Table][]*change{}
	for _, l := range dirty {
		c := l.take()
		switch to, refused := r.admit(ctx, l.of); {
		case errors.Is(refused, tenancy.ErrErased): // also a deleted dataset
		case refused != nil:
			c.failed()
			err = refused
		default:
			tables[to] = append(tables[to], c)
		}
	}
	for to, changes := range tables {
		if failed := r.send(ctx, to, changes); failed != nil {
			err = failed
		}
	}
	return err
}

// dirty returns the lists that have something to write.
func (r *Recorder) dirty() (out []*list) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, l := range r.lists {
		l.mu.Lock()
		if l.dirty {
			out = append(out, l)
		}
		l.mu.Unlock()
	}
	return out
}

// admit returns the table through which the row of a list is written.
func (r *Recorder) admit(ctx context.Context, of rowkey.ID) (*bt.Table, error) {
	row := of.FieldsRow()
	id, _ := rowkey.TenantOf(row)
	dataset, _, _ := rowkey.KindOf(row)
	if err := r.t.Erased.Admit(ctx, id); err != nil {
		return nil, err
	}
	return r.t.Rows(id), r.t.Erased.AdmitDataset(dataset)
}

// send writes rows through a table.
func (r *Recorder) send(ctx context.Context, to *bt.Table, changes []*change) (err error) {
	entries := make([]bt.Entry, len(changes))
	for i, c := range changes {
		entries[i] = bt.Entry{Key: c.of.FieldsRow(), Mutation: c.mutation, Mutations: c.ops, Bytes: c.ops * 64}
	}
	for i, out := range to.Bulk(ctx, entries) {
		if out.State == bt.Stored {
			changes[i].written()
			continue
		}
		changes[i].failed()
		err = r.t.Explain(out.Err)
	}
	return err
}

// wake says that there is something to write.
func (r *Recorder) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running && !r.closed {
		r.running = true
		r.task.Go(r.run)
	}
}

// run writes until there is nothing to write, or the recorder is closed. Pauses grow while writes fail.
func (r *Recorder) run() {
	timer := time.NewTimer(flushDelay)
	defer timer.Stop()
	for pause := flushDelay; ; timer.Reset(pause) {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		if r.Flush(r.ctx) != nil {
			pause = min(2*pause, maxPause)
		} else if pause = flushDelay; r.rest() {
			return
		}
	}
}

// rest ends the task if there is nothing to write.
func (r *Recorder) rest() bool {
	if len(r.dirty()) > 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	return true
}

// Close writes what is not written yet, within some seconds, and ends the background task.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.task.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = r.Flush(ctx) // telemetry has the error; the next process notes the fields again
}
