package bt

import (
	"context"

	"cloud.google.com/go/bigtable"
)

// Once writes one row in a single attempt, for a mutation that must not be repeated. On a client without the guard, which
// would repeat it, nothing is sent, and the error is ErrUnguarded.
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

// BulkOnce writes entries, of which no two may have the same row, each in a single attempt, as Once does. It makes as many
// requests as it takes, each bounded by the timeout of writes, all together by that of scans.
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

// refuse returns why nothing may be sent, where nothing may.
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

// passesGuard reports whether calls pass the guard. It asks by a read that the guard answers by itself, and that changes
// nothing where there is none.
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

// guardRow is the row that is asked for: one that no tenant has.
const guardRow = "!guard"
