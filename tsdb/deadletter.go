package tsdb

import (
	"context"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// DeadLetter is a point or a rollup event that the service rejected because of its content. It stays in the writer's
// journal, and counts towards JournalOptions.MaxBytes, until it is retried or dropped.
type DeadLetter struct {
	// ID identifies the dead letter in its journal. An ID is never reused.
	ID uint64
	// Tenant, Dataset, Entity, Time and, in a schema with Identity, PointID are those of the point. They are zero if
	// the record could not be read.
	Tenant  tenant.ID
	Dataset string
	Entity  Entity
	Time    time.Time
	PointID string
	// Rollup is the rollup of an event; Time is then the start of the bucket. It is empty for a point.
	Rollup string
	// Payload is the point's encoded value; nil for an event.
	Payload []byte
	// FailedAt is when delivery ended, Reason the text of the error, and Attempts how many times it was sent.
	FailedAt time.Time
	Reason   string
	Attempts int
}

// DeadLetters returns the dead letters of the writer's journal, oldest first. It reads them page by page. Dead letters
// that are retried or dropped during the sequence may or may not appear. An error is the last pair; without a journal
// it matches ErrInvalid.
func (w *Writer) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	ctx = ctxerr.Given(ctx)
	return func(yield func(DeadLetter, error) bool) {
		if err := w.admitJournal(ctx); err != nil {
			yield(DeadLetter{}, err)
			return
		}
		for d, err := range w.journal.DeadLetters(ctx) {
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			l := DeadLetter{ID: d.ID, Payload: d.Data, FailedAt: d.Time, Reason: d.Reason, Attempts: d.Attempts}
			if d.Entry != nil {
				p := delivery.Of(&d.Entry.Item)
				t := p.Target()
				l.Tenant, l.Dataset, l.Rollup, l.Entity, l.Time, l.PointID = t.Tenant, t.Dataset, t.Rollup, Entity{path: t.Path}, t.Time, t.ID
				l.Payload = p.Write.Payload
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// RetryDeadLetters puts dead letters back into the journal for delivery, like new points, and returns how many of the
// IDs it found. It does not wait for free space. Without a journal the error matches ErrInvalid.
func (w *Writer) RetryDeadLetters(ctx context.Context, ids ...uint64) (int, error) {
	if err := w.admitJournal(ctx); err != nil {
		return 0, err
	}
	return w.journal.Retry(ctx, ids...)
}

// ScrubJournal rewrites the journal's file without the points that were delivered or dropped before the call, and
// replaces the old file. The file system decides when it overwrites the old file's blocks. It costs a copy of the
// remaining journal, up to JournalOptions.MaxBytes, and as much free disk space. Meanwhile the writer takes no points.
// Without a journal the error matches ErrInvalid.
//
// If it fails, no point is lost, and normally the old file stays in use. If the folder cannot be synced after the new
// file took the old one's place, or the new file cannot be opened, the journal stops: the writer takes no more points,
// and the next writer delivers the rest.
//
// A journal also does this by itself: about 10 seconds after the last point arrived, if what was delivered or dropped
// is at least a quarter of what remains; within a minute after an erasure dropped something of it; and on close, if at
// most 8 MiB remain. It does nothing if nothing was delivered or dropped since the last time.
func (w *Writer) ScrubJournal(ctx context.Context) error {
	if err := w.admitJournal(ctx); err != nil {
		return err
	}
	return w.journal.Scrub(ctx)
}

// DropDeadLetters deletes dead letters and returns how many of the IDs it found. Without a journal the error matches
// ErrInvalid.
func (w *Writer) DropDeadLetters(ctx context.Context, ids ...uint64) (int, error) {
	if err := w.admitJournal(ctx); err != nil {
		return 0, err
	}
	return w.journal.Drop(ctx, ids...)
}

func (w *Writer) admitJournal(ctx context.Context) error {
	if ctx == nil {
		return ctxerr.Of(ctx)
	}
	if err := w.admit(); err != nil {
		return err
	}
	if w.journal == nil {
		return invalid.New(ErrInvalid, "Journal.Dir", "empty", "a writer with a journal")
	}
	return nil
}
