package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

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
	if rejected := of(it).event.rejected; rejected != nil {
		return *rejected
	}
	var all []*pending
	for c := range it.Covered() {
		all = append(all, of(c))
	}
	all = append(all, of(it))
	s := rollupadd.Streamed{Key: it.Key, Stream: d.journal.Stream(), Doubt: it.Track.Outcome().State == bt.Unknown}
	out := bt.Outcome{State: bt.Stored}
	for len(all) > 0 && out.State == bt.Stored {
		run := 1
		for run < len(all) && all[run].event.to.text == all[0].event.to.text {
			run++
		}
		s.Seqs, s.Events = nil, nil
		for _, p := range all[:run] {
			s.Seqs, s.Events = append(s.Seqs, p.Seq()), append(s.Events, p.event.event)
		}
		before := out.Attempts
		counted := 0
		counted, out = all[0].event.to.shape.AddStream(ctx, rows, s)
		out.Attempts += before
		for _, p := range all[:counted] {
			p.Applied = true
		}
		all = all[run:]
	}
	return out
}

// rejectEvent makes dead letters of an event that was rejected and of those that were sent with it, before their row is free
// again: once the row holds later events of the stream, these would count as applied. It reports whether that is on disk. Where
// it is not, it may be all the same, and so the event must not be sent again.
func (d delivery) rejectEvent(it *buffer.Item, out bt.Outcome) bool {
	of(it).event.rejected = &out
	var all []*journal.Entry
	for c := range it.Covered() {
		all = append(all, &of(c).Entry)
	}
	return d.journal.Reject(out, append(all, &of(it).Entry)...)
}
