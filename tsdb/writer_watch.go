package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// figures returns what the writer's metrics are read from.
func (w *Writer) figures(o buffer.Options) func() telemetry.WriterFigures {
	return func() telemetry.WriterFigures {
		s := w.Stats()
		return telemetry.WriterFigures{
			Points: int64(s.BufferedPoints), Bytes: s.BufferedBytes,
			CapacityPoints: int64(o.BufferEntries), CapacityBytes: o.BufferBytes,
			Oldest: s.OldestAge, InFlight: int64(s.InFlight), Slots: int64(s.Slots), Down: s.Down != nil,
			Stored: int64(s.Stored), Rejected: int64(s.Rejected), Unknown: int64(s.Unknown),
			Requests: int64(s.Requests), Retries: int64(s.Retries), Blocked: s.Blocked,
			Journal: w.journal != nil, JournalPoints: int64(s.Journal.Points), JournalBytes: s.Journal.Bytes,
			JournalLimit: s.Journal.Limit, Dead: int64(s.Journal.DeadLetters),
		}
	}
}

// sends tells of a request.
func (w *Writer) sends(s buffer.Sending) {
	w.watch.Sends(context.Background(), telemetry.Batch{Points: s.Items, Wait: s.Wait, Reason: string(s.Reason)})
}

// subjectOf returns what a batch is about: its tenant and its dataset where there is one of each. The items are in the order
// of their rows, and so of both.
func subjectOf(items []*buffer.Item) telemetry.Subject {
	s := telemetry.Subject{Batch: len(items), Batched: true}
	first, last := items[0], items[len(items)-1]
	if first.Tenant == last.Tenant {
		s.Tenant = first.Tenant
		if d := of(first).Dataset(); d == of(last).Dataset() {
			s.Dataset = d
		}
	}
	return s
}

// endDelivery ends what a writer has sent, with the first error of its writes.
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
