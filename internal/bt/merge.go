package bt

import (
	"context"
	"errors"

	"cloud.google.com/go/bigtable"
)

// Merging is a write that goes into what its row holds already. It must be safe to repeat: merged into what it has made
// before, it changes nothing.
type Merging struct {
	Key   string
	Fresh *bigtable.Mutation // where nothing is there to merge into
	// At is asked before each attempt. It returns the filter that passes what is there, and how to merge into that.
	At func() (exists bigtable.Filter, into func(*Row) Merge)
	// Once asks for no second attempt after one that failed, for a caller that makes its own.
	Once bool
	// MaybeApplied says that the response to an attempt of such a caller was lost, so Merge reads the row first.
	MaybeApplied bool
}

// Merge is how to write into a row that holds something. One with neither Mutation nor Err says that the row holds all that
// was to be written.
type Merge struct {
	Same     bigtable.Filter // passes something only while the row is what was read
	Mutation *bigtable.Mutation
	Err      error // why nothing must be written
	// Never says that the row shows that no earlier attempt was applied.
	Never bool
}

// Merge makes the write within the timeout of writes: by an insertion where nothing is there, and else by replacing what
// was read only while it is still the same, again and again where others are faster. Where an answer was lost it looks at
// the row before it tries again and before it gives up: if all that was to be written is there, the write is stored.
//
// An answer that the row was another one leaves a doubt too, until the row is read: a proxy may send a call twice and return
// the second answer, which is about the row that the first one wrote.
func (t *Table) Merge(ctx context.Context, m Merging) Outcome {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	mg := merger{Table: t, Merging: m, look: m.MaybeApplied}
	for {
		if mg.try(ctx) {
			return mg.tracker.Outcome()
		}
		if mg.found {
			continue // the row is there: read it at once
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
	look    bool // at the row before the next attempt
	found   bool // the attempt before was the first to find the row
	changed bool // an answer that the row was another one is all that leaves a doubt
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

// seen ends the doubt that an answer has left, as the row was read since.
func (m *merger) seen() {
	m.tracker.maybeApplied = m.tracker.maybeApplied && !m.changed
	m.changed = false
}

// judge ends the merge where the row needs no write or must not get one.
func (m *merger) judge(merge Merge) (done bool) {
	switch {
	case merge.Err != nil:
		m.tracker.maybeApplied = m.tracker.maybeApplied && !merge.Never
		return m.fail(merge.Err)
	case merge.Mutation == nil:
		m.tracker.stored = true
		return true
	}
	return false
}

// resolve looks at the row before a merge whose answer was lost is given up.
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

// ErrFaster is wrapped by the error of a merge for which others were faster each time.
var ErrFaster = errors.New("tsdb: others changed the point each time that it was to be merged into, and no time is left")
