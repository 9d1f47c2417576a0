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

// DeadLetter is a point, or an event for a rollup, that is in a writer's journal, and that was rejected for what it holds. It stays there, and counts towards
// JournalOptions.MaxBytes, until it is retried or dropped.
type DeadLetter struct {
	// ID names the letter in its journal. It is never given again.
	ID uint64
	// Tenant, Dataset, Entity, Time, and in a schema with Identity PointID, are the point's; zero where the record could not be read.
	Tenant  tenant.ID
	Dataset string
	Entity  Entity
	Time    time.Time
	PointID string
	// Rollup is the rollup that an event was to be added to, of which Time is the start of the bucket; empty for a point.
	Rollup string
	// Payload is the point's value as it would be stored; nil for an event.
	Payload []byte
	// FailedAt is when it was given up, Reason what the service said, and Attempts how often it was sent.
	FailedAt time.Time
	Reason   string
	Attempts int
}

// DeadLetters returns the dead letters of the writer's journal, oldest first. It reads them page by page: letters that are
// retried or dropped while it runs may or may not show. An error is the last pair; without a journal it is ErrInvalid.
func (w *Writer) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	ctx = ctxerr.Given(ctx)
	return func(yield func(DeadLetter, error) bool) {
		if err := w.admitJournal(); err != nil {
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

// RetryDeadLetters puts dead letters back into the journal, to be delivered as if they had just come, and returns how many
// of the IDs there were. They do not wait for room.
func (w *Writer) RetryDeadLetters(ctx context.Context, ids ...uint64) (int, error) {
	if ctx == nil {
		return 0, ctxerr.Of(ctx)
	}
	if err := w.admitJournal(); err != nil {
		return 0, err
	}
	return w.journal.Retry(ctx, ids...)
}

// ScrubJournal writes the journal's file anew, so that it holds nothing of points that were delivered, or dropped, before the
// call. A new file takes the place of the old one, whose blocks on the disk the file system may use again later. It costs a copy of
// what is left in the journal, up to JournalOptions.MaxBytes, and as much space on the disk; meanwhile no point is taken. Where it
// fails, the journal is as it was.
//
// A journal does it by itself about 10 seconds after the last point came, once a quarter of what it holds is delivered; within a
// minute after something of it was erased; and when it is closed with at most 8 MiB left.
func (w *Writer) ScrubJournal(ctx context.Context) error {
	if ctx == nil {
		return ctxerr.Of(ctx)
	}
	if err := w.admitJournal(); err != nil {
		return err
	}
	return w.journal.Scrub(ctx)
}

// DropDeadLetters removes dead letters for good, and returns how many of the IDs there were.
func (w *Writer) DropDeadLetters(ctx context.Context, ids ...uint64) (int, error) {
	if ctx == nil {
		return 0, ctxerr.Of(ctx)
	}
	if err := w.admitJournal(); err != nil {
		return 0, err
	}
	return w.journal.Drop(ctx, ids...)
}

func (w *Writer) admitJournal() error {
	if err := w.admit(); err != nil {
		return err
	}
	if w.journal == nil {
		return invalid.New(ErrInvalid, "Journal.Dir", "empty", "a writer with a journal")
	}
	return nil
}
