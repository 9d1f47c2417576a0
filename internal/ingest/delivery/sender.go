// Package delivery turns the batches of a writer into requests. It defines the type of the points and events that pass
// through the buffer and the journal, and their records.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Sender sends a writer's batches.
type Sender struct {
	Table *points.Table
	// Journal is the journal that the writes come from; nil means none. Its writes outlive the process, so they wait
	// out every error that is not the fault of a write (bt.OfRow).
	Journal *journal.Journal
	// FlowControl asks the service for advice on the rate of bulk requests.
	FlowControl bool
}

func (d Sender) durable() bool { return d.Journal != nil }

// Send implements buffer.Sender.
func (d Sender) Send(ctx context.Context, items []*buffer.Item) buffer.Report {
	ctx, op := d.Table.Watch.Begin(ctx, telemetry.Deliver, subjectOf(items))
	r := d.send(ctx, items)
	if op != nil {
		endDelivery(op, items)
	}
	return r
}

func (d Sender) send(ctx context.Context, items []*buffer.Item) buffer.Report {
	if err := d.Table.AdmitOpen(); err != nil { // the store was closed before its writer
		return reject(items, fmt.Errorf("%w: %w", buffer.ErrClosed, err))
	}
	items, r, ok := d.dropErased(ctx, items)
	if !ok || !d.setClasses(ctx, items, &r) {
		return r
	}
	if items = d.dropExpired(items); len(items) == 0 {
		return r
	}
	id, err := tenant.Parse(items[0].Tenant)
	if err != nil {
		return reject(items, err)
	}
	rows := d.Table.Rows(id)
	if items[0].Alone {
		return d.sendAlone(ctx, rows, items)
	}
	n := d.Table.NewCacheWrite()
	writes := make([]*points.Write, len(items))
	for i, it := range items {
		writes[i] = &Of(it).Write
		n.Begin(writes[i])
	}
	b := points.NewBatch(writes, d.Table.Clock)
	var limit *bt.RateLimit
	if d.FlowControl {
		limit = new(bt.RateLimit)
	}
	answers := rows.Attempt(ctx, b.Entries, limit)
	if limit != nil {
		r.Limit = *limit
	}
	served := false
	for i := range answers {
		a := &answers[i]
		if a.Whole {
			readLoad(&r, a.Err)
		}
		served = served || !a.Whole
	}
	again := !served && d.judgeRequest(&r, answers[0].Err, len(items))
	for i, it := range items {
		a := b.Answer(i, answers)
		n.End(writes[i], points.Attempted(a))
		it.Track.Note(d.Table.Explain(a.Err), a.MaybeApplied)
		it.Retry = a.Again || again || d.shouldRetry(a.Err, a.MaybeApplied)
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

// shouldRetry reports whether a point that outlives the process is sent again after an attempt that ended with err. A
// client without the interceptors may report every attempt as maybe applied, so a rejection that it reports counts.
func (d Sender) shouldRetry(err error, maybeApplied bool) bool {
	return d.durable() && err != nil && (!bt.OfRow(err) || maybeApplied && !errors.Is(err, bt.ErrUnguarded))
}

// readLoad sets the report's load signals from a request's error.
func readLoad(r *buffer.Report, err error) {
	r.Wait = max(r.Wait, bt.Delay(err))
	r.Overload = r.Overload || status.Code(err) == codes.ResourceExhausted
}

// judgeRequest sets the report for a request of n items that was not served at all, and reports whether to send the
// items again.
func (d Sender) judgeRequest(r *buffer.Report, err error, n int) (again bool) {
	switch {
	case status.Code(err) == codes.ResourceExhausted:
		return false
	case d.Table.Views != nil && d.durable() && tenancy.OfView(err): // other tenants go on
		return true
	case bt.Retryable(err), d.durable() && !bt.OfRow(err):
		r.Down, r.Err = true, err
		return true
	case n > 1 && bt.OfRow(err):
		r.Suspect = true
		return true
	}
	return false
}

// subjectOf returns the tenant and the dataset of a batch, each only if all items share it. The items are sorted by
// row, and so by tenant and dataset.
func subjectOf(items []*buffer.Item) telemetry.Subject {
	s := telemetry.Subject{Batch: len(items), Batched: true}
	first, last := items[0], items[len(items)-1]
	if first.Tenant == last.Tenant {
		s.Tenant = first.Tenant
		if d := Of(first).Dataset(); d == Of(last).Dataset() {
			s.Dataset = d
		}
	}
	return s
}

// endDelivery ends a delivery's operation, with the first error of its writes.
func endDelivery(op *telemetry.Op, items []*buffer.Item) {
	var first error
	failed := 0
	for _, it := range items {
		if out := it.Track.Outcome(); out.State != bt.Stored {
			failed++
			if first == nil {
				first = out.Err
			}
		}
	}
	op.Unstored(failed)
	op.End(first)
}

// dropErased ends the items that write to erased tenants or entities, and returns the others. It returns false if
// nothing can be sent because the marks cannot be read; the report then holds the reason.
func (d Sender) dropErased(ctx context.Context, items []*buffer.Item) (rest []*buffer.Item, r buffer.Report, ok bool) {
	m, err := d.Table.Erased.Marks(ctx)
	if err != nil {
		d.retryUnsent(items, err, &r)
		return nil, r, false
	}
	if len(m.Tenants) == 0 {
		return items, r, true
	}
	now := d.Table.Erased.Clock()
	for _, it := range items {
		if p := Of(it); m.CoversWrite(p, p.Taken, now) {
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: m.Refusal(p, now)})
			continue
		}
		rest = append(rest, it)
	}
	return rest, r, true
}

// setClasses gives each item the class that its tenant is in now. It returns false if nothing can be sent because the
// classes cannot be read; the report then holds the reason.
func (d Sender) setClasses(ctx context.Context, items []*buffer.Item, r *buffer.Report) bool {
	if !slices.ContainsFunc(items, hasClassChoice) {
		return true
	}
	a, err := d.Table.Classes.Get(ctx)
	if err != nil {
		d.retryUnsent(items, err, r)
		return false
	}
	for _, it := range items {
		if hasClassChoice(it) {
			w := &Of(it).Write
			w.D = a.DatasetFor(it.Tenant, w.D)
		}
	}
	return true
}

// hasClassChoice reports whether an item is a point of a dataset that lets tenants choose a class.
func hasClassChoice(it *buffer.Item) bool {
	p := Of(it)
	return p.event == nil && p.Write.D.Choices != nil
}

// dropExpired ends the points that expired while they waited, by the class that they are about to be written in, and
// returns the others: a point that no read can return must not be reported as stored.
func (d Sender) dropExpired(items []*buffer.Item) []*buffer.Item {
	now := d.Table.Time.Earliest() // points reported as expired are not delivered later
	expired := func(it *buffer.Item) error {
		p := Of(it)
		if p.event != nil {
			return nil
		}
		return p.Write.D.CheckExpired(p.Write.Cell, now)
	}
	if !slices.ContainsFunc(items, func(it *buffer.Item) bool { return expired(it) != nil }) {
		return items // the usual case
	}
	var rest []*buffer.Item
	for _, it := range items {
		if err := expired(it); err != nil {
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
			continue
		}
		rest = append(rest, it)
	}
	return rest
}

// retryUnsent ends an attempt before anything is sent, because a required read failed. Items that may wait are sent
// again.
func (d Sender) retryUnsent(items []*buffer.Item, err error, r *buffer.Report) {
	again := d.judgeRequest(r, err, 1) || d.durable() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	for _, it := range items {
		it.Retry = again
		it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
	}
}
