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
	ctx, cancel := within(ctx, t.timeouts.Scan)
	defer cancel()
	out := make([]Outcome, len(entries))
	b := bulk{t: t, entries: entries}
	todo := make([]int, len(entries))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 {
		n := b.fit(todo)
		t.bulkOnce(ctx, entries[todo[0]:todo[0]+n], out[todo[0]:], replays)
		todo = todo[n:]
	}
	return out
}

func (t *Table) bulkOnce(ctx context.Context, entries []Entry, out []Outcome, replays Replays) {
	ctx, cancel := within(ctx, min(t.timeouts.Write, tokenLife))
	defer cancel()
	if no := t.refuse(ctx); no.Err != nil {
		for i := range entries {
			out[i] = no
		}
		return
	}
	type sent struct { // an entry and its index
		Entry
		i     int
		token *btpb.Idempotency
	}
	todo := make([]sent, len(entries))
	for i, e := range entries {
		todo[i] = sent{e, i, newToken(replays.Start)}
	}
	tracks := make([]Tracker, len(entries))
	var pause pauser
	for {
		part, tokens := make([]Entry, len(todo)), make([]*btpb.Idempotency, len(todo))
		for n, s := range todo {
			part[n], tokens[n] = s.Entry, s.token
		}
		var again []sent
		var cause error
		for n, a := range t.attempt(ctx, t.cond, part, record{tokens: tokens}) {
			s := todo[n]
			tr := &tracks[s.i]
			tr.Note(a.Err, a.MaybeApplied)
			out[s.i] = tr.Outcome()
			if a.Again && (!tr.maybeApplied || replays.recognized(ctx)) {
				again, cause = append(again, s), longer(cause, a.Err)
			}
		}
		if len(again) == 0 || !pause.wait(ctx, cause) {
			return
		}
		todo = again
	}
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
