package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// add puts an event into the writer's journal, for package rollup. It waits for that if told is nil, and else calls told with
// what became of the event.
func (w *Writer) add(ctx context.Context, ev inside.Event, told func(Outcome)) error {
	p, err := w.prepareEvent(ctx, ev, told)
	switch {
	case err != nil:
	case told == nil:
		return w.take(ctx, p, ev.Try)
	default:
		err = w.offer(ctx, p)
	}
	if err == nil {
		return nil
	}
	out := rejected(err)
	if told != nil {
		told(out)
	}
	return out.err()
}

func (w *Writer) prepareEvent(ctx context.Context, ev inside.Event, told func(Outcome)) (*pending, error) {
	if err := w.admitJournal(); err != nil {
		return nil, err
	}
	if w.store.core.Whole != ev.Table {
		return nil, invalid.New(ErrInvalid, "writer", "one of another store", "a writer of the repository's store")
	}
	to, err := w.journal.addedTo(ev)
	if err != nil {
		return nil, err
	}
	p, err := newEvent(ev.Tenant, to, ev.Path, ev.Event, told)
	if err != nil {
		return nil, err
	}
	if admit := w.opts.Admit; admit != nil {
		if err := admit(ctx, ev.Tenant, p.item.Bytes); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// addedTo returns the rollup of an event, once for each description that a program has.
func (j *journal) addedTo(ev inside.Event) (*added, error) {
	j.mu.Lock()
	to := j.adds[ev.Rollup]
	j.mu.Unlock()
	if to != nil && to.Dataset == ev.Dataset && to.Salts == ev.Salts {
		return to, nil
	}
	to, err := describedAdded(addedEntry{Dataset: ev.Dataset, Key: ev.Fields, Salts: ev.Salts, Rollup: *ev.Rollup})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.adds) >= mostNumbers {
		clear(j.adds)
	}
	j.adds[ev.Rollup] = to
	return to, nil
}

// sendEvents adds events to the rows of rollups, each with those that it brings with it.
func (d delivery) sendEvents(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	outs := make([]bt.Outcome, len(items))
	rows.ByRow(ctx, len(items), points.InsertWidth, func(i int) string { return items[i].Key }, func(ctx context.Context, i int) {
		outs[i] = d.sendEvent(ctx, rows, items[i])
	})
	return outs
}

// sendEvent adds an event, and those that it brings with it, to their row. Runs of one description go together.
func (d delivery) sendEvent(ctx context.Context, rows *bt.Table, it *buffer.Item) bt.Outcome {
	if refused := it.Work.(*pending).event.refused; refused != nil {
		return *refused
	}
	var all []*pending
	for c := range it.Covered() {
		all = append(all, c.Work.(*pending))
	}
	all = append(all, it.Work.(*pending))
	s := rollupadd.Streamed{Key: it.Key, Stream: d.journal.spool.Stream(), Doubt: it.Track.Outcome().State == bt.Unknown}
	out := bt.Outcome{State: bt.Stored}
	for len(all) > 0 && out.State == bt.Stored {
		run := 1
		for run < len(all) && all[run].event.to.text == all[0].event.to.text {
			run++
		}
		s.Seqs, s.Events = nil, nil
		for _, p := range all[:run] {
			s.Seqs, s.Events = append(s.Seqs, p.seq), append(s.Events, p.event.event)
		}
		before := out.Attempts
		counted := 0
		counted, out = all[0].event.to.shape.AddStream(ctx, rows, s)
		out.Attempts += before
		for _, p := range all[:counted] {
			p.event.done = true
		}
		all = all[run:]
	}
	return out
}

// lay makes dead letters of an event that was refused and of those that went with it, before their row is free again: once
// the row holds later ones of the stream, they would pass for ones that it holds. It reports whether that is done; where it is not, it may be on disk all the same, and so the event must not be sent again.
func (d delivery) lay(it *buffer.Item, out bt.Outcome) bool {
	it.Work.(*pending).event.refused = &out
	var dead []spool.Dead
	add := func(p *pending) {
		if p.event.done {
			d.journal.spool.Done(p.seq)
			return
		}
		dead = append(dead, spool.Dead{Seq: p.seq, Reason: reason(out), Attempts: out.Attempts})
	}
	for c := range it.Covered() {
		add(c.Work.(*pending))
	}
	add(it.Work.(*pending))
	return len(dead) == 0 || d.journal.spool.Bury(d.journal.ctx, dead...) == nil
}
