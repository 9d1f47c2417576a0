package bt

import (
	"context"
	"errors"
	"sync"

	"cloud.google.com/go/bigtable"
)

// Insertion is a row that is written only where nothing that Exists passes is there yet.
type Insertion struct {
	Key      string
	Exists   func() bigtable.Filter // asked before each attempt
	Mutation *bigtable.Mutation
	// IsOwn reports whether a row that Exists passed is the one that Mutation writes.
	IsOwn func(*Row) bool
	// Look reads the row before the first attempt. A row that IsOwn accepts and that was not there then is Fresh. Without
	// Look, or if that read fails, the row is Same, unless a response was lost.
	Look bool
	// Final says that a row which is there stays as it is, as all its writers insert. Without it, a row that is found to be
	// another's after an answer was lost may have replaced this insertion's, and the outcome is unknown.
	Final bool
	// Once asks for a single attempt, for a caller that makes its own.
	Once bool
}

// Inserted says how an insertion whose outcome is Stored found the row.
type Inserted uint8

// What an insertion found.
const (
	Fresh Inserted = iota + 1 // nothing: it is written
	Same                      // what it would have written
	Other                     // something else, which was left as it is
)

// Insert makes the insertion, within the timeout of writes. Where an answer was lost it tries again, and reports a row that
// it then finds and that IsOwn accepts as Fresh: its own earlier attempt. An attempt that finds the row may have written it too: a
// proxy may send a call twice and return the second answer. So the row is always read then, and the outcome is Unknown where
// that fails.
func (t *Table) Insert(ctx context.Context, in Insertion) (Inserted, Outcome) {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	var tr Tracker
	var pause pauser
	var before *Row
	if in.Look && ctx.Err() == nil {
		var err error
		before, err = t.RowAsJudged(ctx, in.Key, in.Exists())
		in.Look = err == nil
	}
	for {
		exists := in.Exists()
		matched, out := t.Conditional(ctx, in.Key, exists, nil, in.Mutation)
		if out.Attempts == 0 {
			if tr.attempts == 0 {
				return 0, out
			}
			return 0, tr.Outcome()
		}
		tr.Note(out.Err, out.State == Unknown)
		switch {
		case out.Err == nil && !matched:
			return Fresh, tr.Outcome()
		case out.Err == nil:
			if found, out, ok := t.found(ctx, in, exists, before, &tr); ok {
				return found, out
			}
			tr.stored, tr.err = false, errRowGone // the answer was true, but no write came of it
		case !retryable(out.Err):
			return 0, tr.Outcome()
		}
		if in.Once || !pause.wait(ctx, tr.err) {
			return 0, tr.Outcome()
		}
	}
}

// found tells a row that is there from the insertion's own; before is what was there before the first attempt. It reports false where the row is gone again.
func (t *Table) found(ctx context.Context, in Insertion, exists bigtable.Filter, before *Row, tr *Tracker) (Inserted, Outcome, bool) {
	row, err := before, error(nil)
	if row == nil || tr.maybeApplied {
		row, err = t.RowAsJudged(ctx, in.Key, exists)
	}
	switch {
	case err != nil:
		return 0, Outcome{State: Unknown, Attempts: int(tr.attempts), Err: err}, true
	case row == nil:
		return 0, Outcome{}, false
	case in.IsOwn(row) && (tr.maybeApplied || in.Look && before == nil):
		return Fresh, tr.Outcome(), true
	case in.IsOwn(row):
		return Same, tr.Outcome(), true
	case tr.maybeApplied && !in.Final:
		return 0, Outcome{State: Unknown, Attempts: int(tr.attempts), Err: errReplaced}, true
	}
	return Other, tr.Outcome(), true
}

var errRowGone = errors.New("tsdb: a row that was in the way is gone again, and no time is left to write")

var errReplaced = errors.New("tsdb: an answer was lost, and the row now holds what another has written")

// ByRow calls do for each of n writes, at most width at a time, and those of one row in their order. All together are
// bounded by the timeout of scans.
func (t *Table) ByRow(ctx context.Context, n, width int, key func(int) string, do func(ctx context.Context, i int)) {
	ctx, cancel := within(ctx, t.timeouts.Scan)
	defer cancel()
	order := make(map[string][]int, n)
	var keys []string
	for i := range n {
		k := key(i)
		if order[k] == nil {
			keys = append(keys, k)
		}
		order[k] = append(order[k], i)
	}
	next := make(chan string)
	var workers sync.WaitGroup
	for range min(width, len(keys)) {
		workers.Go(func() {
			for key := range next {
				for _, i := range order[key] {
					do(ctx, i)
				}
			}
		})
	}
	for _, key := range keys {
		next <- key
	}
	close(next)
	workers.Wait()
}
