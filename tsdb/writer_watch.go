package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// figures returns the function from which the writer's metrics are read.
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

// sends reports a request.
func (w *Writer) sends(s buffer.Sending) {
	w.watch.Sends(context.Background(), telemetry.Batch{Points: s.Items, Wait: s.Wait, Reason: string(s.Reason)})
}
