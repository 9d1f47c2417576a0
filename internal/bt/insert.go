package bt

import (
	"context"
	"errors"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// Insertion is a write that is applied only if its row has nothing that the filter of Exists passes.
type Insertion struct {
	Key      string
	Exists   func() bigtable.Filter // called before each attempt
	Mutation *bigtable.Mutation
	// IsOwn reports whether an existing row, as Exists passes it, is what Mutation writes.
	IsOwn func(*Row) bool
	// Look reads the row before the first attempt. If the row did not exist then and IsOwn accepts it later, the result
	// is Fresh. Without Look, or if that read fails, the result is Same, unless a response was lost.
	Look bool
	// Final means that all writers of the row insert, so an existing row never changes. If Final is not set, a response
	// was lost and the row then holds something else, that may have replaced this insertion: the outcome is Unknown.
	Final bool
	// Once makes a single attempt, for a caller that retries itself.
	Once bool
}

// Inserted is the result of an insertion whose outcome is Stored.
type Inserted uint8

// The results of an insertion.
const (
	Fresh Inserted = iota + 1 // the row did not exist, and is written
	Same                      // the row existed, with the same content
	Other                     // the row existed with other content, and is unchanged
)

// Insert makes the insertion, within the timeout of writes. If a response is lost it tries again. If the row then
// exists and IsOwn accepts it, an earlier attempt has written it, and the result is Fresh.
//
// A response that the row exists does not show who wrote it: a proxy may have sent the request twice and returned the
// second response. So Insert then reads the row, and the outcome is Unknown if that fails.
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
			tr.stored, tr.err = false, errRowGone // the request succeeded, but wrote nothing
		case !retryable(out.Err):
			return 0, tr.Outcome()
		}
		if in.Once || !pause.wait(ctx, tr.err) {
			return 0, tr.Outcome()
		}
	}
}

// found returns the result of an insertion whose row exists. before is the row before the first attempt, or nil. It
// reports false if the row has disappeared since.
func (t *Table) found(ctx context.Context, in Insertion, exists bigtable.Filter, before *Row, tr *Tracker) (Inserted, Outcome, bool) {
	row, err := before, error(nil)
	if row == nil || tr.maybeApplied {
		row, err = t.RowAsJudged(ctx, in.Key, exists)
	}
	switch {
	case err != nil:
		return 0, Outcome{State: Unknown, Attempts: int(tr.attempts), Err: err}, true
	case row == nil:
		reach.Point(reach.VanishedRow)
		return 0, Outcome{}, false
	case in.IsOwn(row) && (tr.maybeApplied || in.Look && before == nil):
		reach.Point(reach.OwnInsertion)
		return Fresh, tr.Outcome(), true
	case in.IsOwn(row):
		return Same, tr.Outcome(), true
	case tr.maybeApplied && !in.Final:
		reach.Point(reach.ReplacedInsertion)
		return 0, Outcome{State: Unknown, Attempts: int(tr.attempts), Err: errReplaced}, true
	}
	return Other, tr.Outcome(), true
}

var errRowGone = errors.New("tsdb: the row existed and then disappeared, and no time is left to write it")

var errReplaced = errors.New("tsdb: a response was lost, and the row now holds what another writer has written")
