package delivery

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// sendAlone sends writes that depend on what their rows hold, one request each. If a request says when to try again,
// that concerns its row only.
func (d Sender) sendAlone(ctx context.Context, rows *bt.Table, items []*buffer.Item) buffer.Report {
	outs := d.sendBoth(ctx, rows, items)
	var r buffer.Report
	served := false
	for i, it := range items {
		out := outs[i]
		switch {
		case errors.Is(out.Err, bt.ErrFaster):
			it.Retry, served = true, true
		case out.Err != nil && (bt.Retryable(out.Err) || d.shouldRetry(out.Err, out.State == bt.Unknown)):
			it.Retry, it.Wait = true, bt.Delay(out.Err)
		case out.Attempts == 0 && (errors.Is(out.Err, context.DeadlineExceeded) || errors.Is(out.Err, context.Canceled)):
			it.Retry = true // the request's deadline passed before this item's turn
		default:
			served = true
		}
		if errors.Is(out.Err, dataset.ErrExists) {
			it.Track.Add(out)
			it.Track.Refuse(out.Err) // the row shows that no attempt was applied
			continue
		}
		out.Err = d.Table.Explain(out.Err)
		it.Track.Add(out)
	}
	if !served && d.judgeRequest(&r, outs[0].Err, 1) {
		for _, it := range items {
			it.Retry = true
		}
	}
	for _, it := range items {
		out := it.Track.Outcome()
		if Of(it).event != nil && !it.Retry && out.State == bt.Rejected && !errors.Is(out.Err, buffer.ErrClosed) {
			it.Retry = !d.rejectEvent(it, out)
		}
	}
	return r
}

// sendBoth makes an attempt at each of several points and events that depend on what their rows hold, in parallel.
func (d Sender) sendBoth(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	events := func(it *buffer.Item) int {
		if Of(it).event != nil {
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

func (d Sender) sendPoints(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	if len(items) == 0 {
		return nil
	}
	writes := make([]*points.Write, len(items))
	for i, it := range items {
		writes[i] = &Of(it).Write
		writes[i].MaybeApplied = it.Track.Outcome().State == bt.Unknown
	}
	outs := d.Table.SendAlone(ctx, rows, writes, true)
	n := d.Table.NewCacheWrite()
	for i, out := range outs {
		n.End(writes[i], out.State)
	}
	return outs
}

// sendEvents adds events to the rows of rollups, each together with the events that it carries along.
func (d Sender) sendEvents(ctx context.Context, rows *bt.Table, items []*buffer.Item) []bt.Outcome {
	outs := make([]bt.Outcome, len(items))
	rows.ByRow(ctx, len(items), points.InsertWidth, func(i int) string { return items[i].Key }, func(ctx context.Context, i int) {
		outs[i] = d.sendEvent(ctx, rows, items[i])
	})
	return outs
}

// sendEvent adds an event, and the events that it carries along, to their row. Consecutive events of one description
// share a request.
func (d Sender) sendEvent(ctx context.Context, rows *bt.Table, it *buffer.Item) bt.Outcome {
	if rejected := Of(it).event.rejected; rejected != nil {
		return *rejected
	}
	var all []*Pending
	for c := range it.Coalesced() {
		all = append(all, Of(c))
	}
	all = append(all, Of(it))
	s := rollupadd.Streamed{Key: it.Key, Stream: d.Journal.Stream(), MaybeApplied: it.Track.Outcome().State == bt.Unknown}
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

// rejectEvent turns a rejected event, and those sent with it, into dead letters before their row is free again: once
// the row holds later events of the stream, these would count as applied. It reports whether that is on disk. If it
// returns false, they may be on disk, so the event must not be sent again.
func (d Sender) rejectEvent(it *buffer.Item, out bt.Outcome) bool {
	Of(it).event.rejected = &out
	var all []*journal.Entry
	for c := range it.Coalesced() {
		all = append(all, &Of(c).Entry)
	}
	return d.Journal.Reject(out, append(all, &Of(it).Entry)...)
}
