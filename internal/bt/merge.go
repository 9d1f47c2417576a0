package bt

import (
	"context"
	"errors"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// Merging is a write that is merged into its row. It must be safe to repeat: if the row already holds the write,
// merging it again changes nothing.
type Merging struct {
	Key   string
	Fresh *bigtable.Mutation // applied if the row has nothing to merge into
	// At is called before each attempt. It returns the filter that passes the existing row, and the function that
	// merges the write into that row.
	At func() (exists bigtable.Filter, into func(*Row) Merge)
	// Once makes no second attempt after a failed one, for a caller that retries itself.
	Once bool
	// MaybeApplied means that such a caller has lost the response to an attempt. Merge then reads the row first.
	MaybeApplied bool
}

// Merge is the change of an existing row. Without Mutation and Err, the row already holds the whole write.
type Merge struct {
	Same     bigtable.Filter // passes something only if the row has not changed since it was read
	Mutation *bigtable.Mutation
	Err      error // if not nil, nothing must be written
	// Never means that the row proves that no earlier attempt was applied.
	Never bool
}

// Merge makes the write within the timeout of writes. If the row is empty, it inserts. Otherwise it reads the row and
// replaces it on the condition that it has not changed, and repeats both if it has. If a response was lost, it reads
// the row before it tries again and before it gives up. If the row holds the whole write, the write is stored.
//
// A response that the row has changed also makes the write maybe applied, until the row is read again: a proxy may have
// sent the request twice and returned the second response, and the first request may have made the change.
func (t *Table) Merge(ctx context.Context, m Merging) Outcome {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	mg := merger{Table: t, Merging: m, look: m.MaybeApplied}
	for {
		if mg.try(ctx) {
			return mg.tracker.Outcome()
		}
		if mg.found {
			continue // the row exists: read it without a pause
		}
		if m.Once && mg.tracker.err != ErrFaster {
			return mg.tracker.Outcome()
		}
		if !mg.pause.wait(ctx, mg.tracker.err) {
			mg.tracker.err = ended(ctx, mg.tracker.err)
			mg.resolve(ctx)
			return mg.tracker.Outcome()
		}
	}
}

// merger is one merge under way.
type merger struct {
	*Table
	Merging
	tracker Tracker
	pause   pauser
	look    bool // read the row before the next attempt
	found   bool // the last attempt was the first one to find that the row exists
	changed bool // the write is maybe applied only because a response said that the row has changed
}

// try makes one attempt and reports whether it was the last.
func (m *merger) try(ctx context.Context) (done bool) {
	exists, into := m.At()
	cond, then, otherwise := exists, (*bigtable.Mutation)(nil), m.Fresh
	if m.look {
		row, err := m.RowAsJudged(ctx, m.Key, exists)
		if err != nil {
			return m.fail(err)
		}
		m.seen()
		if row != nil {
			merge := into(row)
			if done := m.judge(merge); done {
				return true
			}
			cond, then, otherwise = merge.Same, merge.Mutation, nil
		}
	}
	matched, out := m.Conditional(ctx, m.Key, cond, then, otherwise)
	if out.Attempts == 0 {
		if m.tracker.attempts == 0 || m.tracker.err == nil {
			m.tracker.err = out.Err
		}
		return true
	}
	m.tracker.Note(out.Err, out.State == Unknown)
	m.changed = m.changed && out.State != Unknown
	m.found, m.look = out.Err == nil && !m.look, true
	switch {
	case out.Err == nil && matched == (then != nil):
		return true
	case out.Err == nil:
		reach.Point(reach.OutrunMerge)
		m.tracker.stored, m.tracker.err = false, ErrFaster
		m.changed = m.changed || !m.tracker.maybeApplied
		m.tracker.maybeApplied = true
		return false
	case retryable(out.Err):
		return false
	}
	m.resolve(ctx)
	return true
}

// seen is called after the row was read: a response that the row has changed no longer makes the write maybe applied.
func (m *merger) seen() {
	m.tracker.maybeApplied = m.tracker.maybeApplied && !m.changed
	m.changed = false
}

// judge ends the merge if the row needs no write or must not get one.
func (m *merger) judge(merge Merge) (done bool) {
	switch {
	case merge.Err != nil:
		m.tracker.maybeApplied = m.tracker.maybeApplied && !merge.Never
		return m.fail(merge.Err)
	case merge.Mutation == nil:
		reach.Point(reach.OwnMerge)
		m.tracker.stored = true
		return true
	}
	return false
}

// resolve reads the row before a merge that is maybe applied is given up.
func (m *merger) resolve(ctx context.Context) {
	if !m.tracker.maybeApplied {
		return
	}
	exists, into := m.At()
	row, err := m.RowAsJudged(ctx, m.Key, exists)
	if err != nil {
		return
	}
	m.seen()
	if row == nil {
		return
	}
	if merge := into(row); merge.Err == nil || merge.Never {
		m.judge(merge)
	}
}

func (m *merger) fail(err error) (done bool) {
	m.tracker.stored, m.tracker.err = false, err
	return true
}

// ErrFaster is wrapped by the error of a merge before which other writers have changed the row each time.
var ErrFaster = errors.New("tsdb: other writers changed the point before each attempt to merge into it, and no time is left")
