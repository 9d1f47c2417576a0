package fieldlist

import (
	"context"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// flush writes the changes of all lists, and returns the first error. What is not written stays.
func (r *Recorder) flush(ctx context.Context) (err error) {
	rows := map[string]*change{}
	for _, l := range r.dirty() {
		if rows[l.row] == nil {
			rows[l.row] = &change{row: l.row, mutation: bigtable.NewMutation()}
		}
		rows[l.row].add(l)
	}
	if len(rows) == 0 {
		return nil
	}
	ctx, op := r.t.Watch.Begin(bt.WithUpkeep(ctx), telemetry.Upkeep, telemetry.Subject{})
	defer func() { op.End(err) }()
	tables := map[*bt.Table][]*change{}
	for _, c := range rows {
		switch to, refused := r.admit(ctx, c.row); {
		case errors.Is(refused, tenancy.ErrErased), errors.Is(refused, tenancy.ErrDatasetDeleted):
		case refused != nil:
			c.undo()
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
	if err == nil && len(r.dirty()) > 0 {
		r.task.wake() // the rest of large lists, and what was noted meanwhile
	}
	return err
}

// admit returns the table through which a row is written.
func (r *Recorder) admit(ctx context.Context, row string) (*bt.Table, error) {
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
		entries[i] = bt.Entry{Key: c.row, Mutation: c.mutation, Mutations: c.ops, Bytes: c.ops * 64}
	}
	for i, out := range to.Bulk(ctx, entries) {
		if out.State != bt.Stored {
			changes[i].undo()
			err = r.t.Explain(out.Err)
		}
	}
	return err
}

// change is what is written to one row.
type change struct {
	row      string
	mutation *bigtable.Mutation
	ops      int
	parts    []written
}

// add adds what is not written yet of a list.
func (c *change) add(l *list) {
	if c.ops >= mostOps {
		return // with the next flush
	}
	w := l.take(c.mutation)
	c.parts, c.ops = append(c.parts, w), c.ops+w.ops
}

func (c *change) undo() {
	for i := range c.parts {
		c.parts[i].undo()
	}
}

// task runs a flush in the background, some time after the first call of wake, and again while flushes fail.
type task struct {
	flush func(context.Context) error
	ctx   context.Context
	stop  context.CancelFunc
	soon  chan struct{} // a flush is needed now
	wg    sync.WaitGroup

	mu      sync.Mutex
	needed  bool // since the last flush began
	running bool
	closed  bool
}

func (t *task) open(flush func(context.Context) error) {
	t.flush, t.soon = flush, make(chan struct{}, 1)
	t.ctx, t.stop = context.WithCancel(context.Background())
}

// wake says that there is something to write.
func (t *task) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.needed = true
	if !t.running && !t.closed {
		t.running = true
		t.wg.Go(t.run)
	}
}

// hurry ends the delay of a flush.
func (t *task) hurry() {
	select {
	case t.soon <- struct{}{}:
	default:
	}
}

func (t *task) run() {
	pause := flushDelay
	for t.pause(pause) && t.begin() {
		if t.flush(t.ctx) == nil {
			pause = flushDelay
			continue
		}
		pause = min(2*pause, maxPause)
		t.mu.Lock()
		t.needed = true
		t.mu.Unlock()
	}
}

// pause waits. It returns false when the task is closed.
func (t *task) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.ctx.Done():
		return false
	case <-t.soon:
	case <-timer.C:
	}
	return true
}

// begin reports whether a flush is needed. If not, the task ends.
func (t *task) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = t.needed
	t.needed = false
	return t.running
}

// close ends the task, and flushes a last time.
func (t *task) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = t.flush(ctx) // telemetry has the error; the next process notes the fields again
}
