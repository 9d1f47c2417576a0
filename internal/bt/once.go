package bt

import (
	"context"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// Once writes one row with a mutation that must not be applied twice, such as an addition. It repeats the mutation only
// as Replays allows. A client without the guard would repeat it, so there Once sends nothing and returns ErrUnguarded.
// It uses the app profile of conditional writes, because another cluster may not know a token.
func (t *Table) Once(ctx context.Context, key string, mut *bigtable.Mutation, replays Replays) Outcome {
	ctx, cancel := within(ctx, min(t.timeouts.Write, tokenLife))
	defer cancel()
	if out := t.refuse(ctx); out.Err != nil {
		return out
	}
	var tr Tracker
	var pause pauser
	token := newToken(replays.Start)
	for {
		var rec record
		rec.token = token
		err := t.cond.Apply(withRecord(ctx, &rec), key, mut)
		if !rec.seen {
			return unguarded(ended(ctx, err))
		}
		tr.Note(ended(ctx, rec.err), !refused(rec.err))
		if rec.err == nil || !retryable(rec.err) || tr.maybeApplied && !replays.recognized(ctx) || !pause.wait(ctx, rec.err) {
			return tr.Outcome()
		}
		reach.Point(reach.RepeatedToken)
	}
}

// BulkOnce writes each entry as Once does. No two entries may have the same row. It makes as many requests as needed;
// the timeout of writes bounds each request with its repetitions, the timeout of scans the whole call.
func (t *Table) BulkOnce(ctx context.Context, entries []Entry, replays Replays) []Outcome {
	b := bulk{t: t, client: t.cond, entries: entries, timeout: min(t.timeouts.Write, tokenLife), replays: replays}
	todo := make([]int, len(entries))
	b.tokens = make([]*btpb.Idempotency, len(entries))
	for i := range todo {
		todo[i], b.tokens[i] = i, newToken(replays.Start)
	}
	b.run(ctx, todo)
	return b.out
}

// refuse returns a rejected outcome if nothing may be sent, and the zero Outcome otherwise.
func (t *Table) refuse(ctx context.Context) Outcome {
	switch {
	case ctx.Err() != nil:
		return notSent(ctx)
	case t.passesGuard(ctx):
		return Outcome{}
	case ctx.Err() != nil:
		return notSent(ctx)
	}
	return Outcome{State: Rejected, Err: ErrUnguarded}
}

// passesGuard reports whether calls pass the guard. It makes a read that the guard answers itself, and that changes
// nothing if there is no guard.
func (t *Table) passesGuard(ctx context.Context) bool {
	if t.guarded.Load() {
		return true
	}
	rec := record{asks: true}
	_, _ = t.data.ReadRow(withRecord(ctx, &rec), guardRow, bigtable.RowFilter(bigtable.StripValueFilter()))
	if rec.seen {
		t.guarded.Store(true)
	}
	return rec.seen
}

// guardRow is the row of that read. No tenant has it.
const guardRow = "!guard"
