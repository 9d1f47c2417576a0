package bt

import (
	"context"

	"cloud.google.com/go/bigtable"
)

// Once writes one row in a single attempt, for a mutation that must not be repeated. A client without the guard would
// repeat it, so there Once sends nothing and returns ErrUnguarded.
func (t *Table) Once(ctx context.Context, key string, mut *bigtable.Mutation) Outcome {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	if out := t.refuse(ctx); out.Err != nil {
		return out
	}
	var rec record
	var tr Tracker
	err := t.data.Apply(withRecord(ctx, &rec), key, mut)
	if !rec.seen {
		return unguarded(ended(ctx, err))
	}
	tr.Note(ended(ctx, rec.err), !refused(rec.err))
	return tr.Outcome()
}

// BulkOnce writes each entry in a single attempt, as Once does. No two entries may have the same row. It makes as many
// requests as needed; the timeout of writes bounds each request, the timeout of scans the whole call.
func (t *Table) BulkOnce(ctx context.Context, entries []Entry) []Outcome {
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
		t.bulkOnce(ctx, entries[todo[0]:todo[0]+n], out[todo[0]:])
		todo = todo[n:]
	}
	return out
}

func (t *Table) bulkOnce(ctx context.Context, entries []Entry, out []Outcome) {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	if no := t.refuse(ctx); no.Err != nil {
		for i := range entries {
			out[i] = no
		}
		return
	}
	for i, a := range t.Attempt(ctx, entries) {
		var tr Tracker
		tr.Note(a.Err, a.MaybeApplied)
		out[i] = tr.Outcome()
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
