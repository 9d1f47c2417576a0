package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// openWriter opens the writer on the run's journal.
func (w *world) openWriter() {
	writer, err := w.store.NewWriter(tsdb.WriterOptions{
		BufferBytes: w.bufferBytes, OnFailure: w.deadLetter,
		Journal: tsdb.JournalOptions{Dir: w.dir + "/journal", MaxBytes: w.journalBytes},
	})
	if err != nil {
		w.fail("opening the writer: %v", err)
		return
	}
	w.writer.Store(writer)
}

// rotate flushes the writer now and then. It also closes and reopens it: with enough time to deliver, or at once with
// points in the journal. Producers continue meanwhile.
func (w *world) rotate() {
	rnd := rand.New(rand.NewPCG(w.seed, 2))
	every := max(2*time.Second, min(w.duration/20, 10*time.Second))
	for n := 0; pause(w.ctx, every/2+rand.N(every)); n++ {
		switch n % 2 {
		case 0:
			_ = w.flush(w.ctx) // a later flush delivers the rest
		case 1:
			patience := []time.Duration{0, 10 * time.Millisecond, 20 * time.Second}[rnd.IntN(3)]
			w.reopen(patience)
		}
	}
}

// reopen closes the writer with a time limit, and opens the next one.
func (w *world) reopen(patience time.Duration) {
	w.stats.rotations.Add(1)
	snap := w.snapshot()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	err := w.writer.Load().Close(ctx)
	cancel()
	switch {
	case err == nil:
		w.delivered(snap)
	case errors.Is(err, tsdb.ErrUndelivered):
		w.stats.kept.Add(1)
	default:
		w.fail("closing the writer: %v", err)
	}
	w.openWriter()
}

// flush waits until the writer has delivered everything acknowledged before.
func (w *world) flush(ctx context.Context) error {
	snap := w.snapshot()
	err := w.writer.Load().Flush(ctx)
	if err == nil {
		w.stats.flushes.Add(1)
		w.delivered(snap)
	}
	return err
}

// snap holds the points that were acknowledged at one time.
type snap struct{ plain, short []marks }

func (w *world) snapshot() snap {
	s := snap{plain: make([]marks, len(w.devices)), short: make([]marks, len(w.shortOnes))}
	for i, d := range w.devices {
		s.plain[i] = d.plain.snapshot()
	}
	for i, d := range w.shortOnes {
		s.short[i] = d.short.snapshot()
	}
	return s
}

func (w *world) delivered(s snap) {
	for i, d := range w.devices {
		d.plain.recordDelivered(s.plain[i])
	}
	for i, d := range w.shortOnes {
		d.short.recordDelivered(s.short[i])
	}
}
