package tsdb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// delivery sends a writer's batches.
type delivery struct {
	store *Store
	// keep says that points outlive the process, so that all is waited for that is not the fault of a point (bt.OfRow).
	keep    bool
	journal *journal.Journal // nil for none
}

// Send implements buffer.Sender.
func (d delivery) Send(ctx context.Context, items []*buffer.Item) buffer.Report {
	ctx, op := d.store.core.Watch.Begin(ctx, telemetry.Deliver, subjectOf(items))
	r := d.send(ctx, items)
	if op != nil {
		endDelivery(op, items)
	}
	return r
}

func (d delivery) send(ctx context.Context, items []*buffer.Item) buffer.Report {
	if err := d.store.admit(); err != nil { // closed before its writer
		return reject(items, fmt.Errorf("%w: %w", ErrWriterClosed, err))
	}
	items, r, ok := d.unerased(ctx, items)
	if !ok || !d.classed(ctx, items, &r) {
		return r
	}
	if items = d.unexpired(items); len(items) == 0 {
		return r
	}
	rows, err := d.rowsOf(items)
	if err != nil {
		return reject(items, err)
	}
	if items[0].Alone {
		return d.sendAlone(ctx, rows, items)
	}
	n := d.store.core.NewCacheWrite()
	writes := make([]*points.Write, len(items))
	for i, it := range items {
		writes[i] = &of(it).write
		n.Begin(writes[i])
	}
	b := points.NewBatch(writes, d.store.core.Clock)
	answers := rows.Attempt(ctx, b.Entries)
	served := false
	for i := range answers {
		a := &answers[i]
		if a.Whole {
			d.read(&r, a.Err)
		}
		served = served || !a.Whole
	}
	again := !served && d.judge(&r, answers[0].Err, len(items))
	for i, it := range items {
		a := b.Answer(i, answers)
		n.End(writes[i], points.Attempted(a))
		it.Track.Note(d.store.core.Explain(a.Err), a.Doubt)
		it.Again = a.Again || again || d.waits(a.Err, a.Doubt)
		if a.Err != nil && !a.Whole {
			it.Wait = bt.Delay(a.Err)
		}
	}
	return r
}

func reject(items []*buffer.Item, err error) buffer.Report {
	for _, it := range items {
		it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
	}
	return buffer.Report{}
}

// waits reports whether a point that outlives the process is sent again after an attempt that ended so. What a client without
// the interceptors reports may be in doubt for ever, so a rejection by it counts.
func (d delivery) waits(err error, doubt bool) bool {
	return d.keep && err != nil && (!bt.OfRow(err) || doubt && !errors.Is(err, bt.ErrUnguarded))
}

// alone makes an attempt at each of several writes that depend on what their rows hold: points and events side by side.
func (d delivery) alone(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	events := func(it *buffer.Item) int {
		if of(it).event != nil {
			return 1
		}
		return 0
	}
	var parts [2][]*buffer.Item
	for _, it := range items {
		parts[events(it)] = append(parts[events(it)], it)
	}
	var outs [2][]bt.Outcome
	var both sync.WaitGroup
	both.Go(func() { outs[0] = d.sendPoints(ctx, rows, parts[0]) })
	outs[1] = d.sendEvents(ctx, rows, parts[1])
	both.Wait()
	all := make([]bt.Outcome, len(items))
	for i, it := range items {
		of := &outs[events(it)]
		all[i], *of = (*of)[0], (*of)[1:]
	}
	return all
}

func (d delivery) sendPoints(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	if len(items) == 0 {
		return nil
	}
	writes := make([]*points.Write, len(items))
	for i, it := range items {
		writes[i] = &of(it).write
		writes[i].MaybeApplied = it.Track.Outcome().State == bt.Unknown
	}
	outs := d.store.core.SendAlone(ctx, rows, writes, true)
	n := d.store.core.NewCacheWrite()
	for i, out := range outs {
		n.End(writes[i], out.State)
	}
	return outs
}

// sendAlone sends writes that depend on what their rows hold, one request each. What a request for one row says of when to
// try again is about that row.
func (d delivery) sendAlone(ctx context.Context, rows *bt.Table, items []*buffer.Item) buffer.Report {
	outs := d.alone(ctx, rows, items)
	var r buffer.Report
	served := false
	for i, it := range items {
		out := outs[i]
		switch {
		case errors.Is(out.Err, bt.ErrFaster):
			it.Again, served = true, true
		case out.Err != nil && (bt.Retryable(out.Err) || d.waits(out.Err, out.State == bt.Unknown)):
			it.Again, it.Wait = true, bt.Delay(out.Err)
		case out.Attempts == 0 && (errors.Is(out.Err, context.DeadlineExceeded) || errors.Is(out.Err, context.Canceled)):
			it.Again = true // the request's time was over before its turn came
		default:
			served = true
		}
		if errors.Is(out.Err, ErrExists) {
			it.Track.Add(out)
			it.Track.Refuse(out.Err) // what is there shows that no attempt was applied
			continue
		}
		out.Err = d.store.core.Explain(out.Err)
		it.Track.Add(out)
	}
	if !served && d.judge(&r, outs[0].Err, 1) {
		for _, it := range items {
			it.Again = true
		}
	}
	for _, it := range items {
		out := it.Track.Outcome()
		if of(it).event != nil && !it.Again && out.State == bt.Rejected && !errors.Is(out.Err, ErrWriterClosed) {
			it.Again = !d.rejectEvent(it, out)
		}
	}
	return r
}

// read takes from how a request ended what the service says of itself.
func (d delivery) read(r *buffer.Report, err error) {
	r.Wait = max(r.Wait, bt.Delay(err))
	r.Overload = r.Overload || status.Code(err) == codes.ResourceExhausted
}

// judge decides what it means that a request of n items was not served at all, and reports whether to send them again for
// that.
func (d delivery) judge(r *buffer.Report, err error, n int) (again bool) {
	switch {
	case status.Code(err) == codes.ResourceExhausted:
		return false
	case d.store.core.Views != nil && d.keep && tenancy.OfView(err): // the other tenants go on
		return true
	case bt.Retryable(err), d.keep && !bt.OfRow(err):
		r.Down, r.Err = true, err
		return true
	case n > 1 && bt.OfRow(err):
		r.Suspect = true
		return true
	}
	return false
}
