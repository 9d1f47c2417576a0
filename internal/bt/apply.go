package bt

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// Apply writes one row, and retries within the timeout of writes. Repeating the mutation must not change the stored
// result.
func (t *Table) Apply(ctx context.Context, key string, mut *bigtable.Mutation) Outcome {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	var tr Tracker
	var pause pauser
	for {
		if ctx.Err() != nil {
			if tr.attempts == 0 {
				return notSent(ctx)
			}
			return tr.Outcome()
		}
		var rec record
		err := t.data.Apply(withRecord(ctx, &rec), key, mut)
		if !rec.seen {
			return unguarded(ended(ctx, err))
		}
		tr.Note(ended(ctx, rec.err), !refused(rec.err))
		if rec.err == nil || !retryable(rec.err) || !pause.wait(ctx, rec.err) {
			return tr.Outcome()
		}
		reach.Point(reach.RepeatedWrite)
	}
}

// Conditional writes one row under a condition on its contents, in one attempt, and reports whether the condition held.
// It does not retry: a second attempt would check the row as the first one left it.
func (t *Table) Conditional(ctx context.Context, key string, cond bigtable.Filter, then, otherwise *bigtable.Mutation) (matched bool, out Outcome) {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	if ctx.Err() != nil {
		return false, notSent(ctx)
	}
	var rec record
	var tr Tracker
	err := t.cond.Apply(withRecord(ctx, &rec), key, bigtable.NewCondMutation(cond, then, otherwise), bigtable.GetCondMutationResult(&matched))
	if rec.seen { // the client removes the service's retry delay, and never retries these calls
		err = rec.err
	}
	tr.Note(ended(ctx, err), !refused(err))
	return matched, tr.Outcome()
}

// unguarded returns the outcome of a write that did not pass the guard, and that the client may have repeated.
func unguarded(err error) Outcome {
	if err == nil {
		return Outcome{State: Stored, Attempts: 1}
	}
	return Outcome{State: Unknown, Attempts: 1, Err: fmt.Errorf("%w: %w", ErrUnguarded, err)}
}
