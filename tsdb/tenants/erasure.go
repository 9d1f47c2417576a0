package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// erasure is one call that continues an erasure from its current state.
type erasure struct {
	room
	id      tenant.ID
	opts    EraseOptions
	all     rowkey.Range // of the tenant; empty for an entity
	fit     []fitting    // of an entity
	fields  map[string]string
	dataset string

	mark mark
	name string // of an entity's mark
}

func (e *erasure) run(ctx context.Context) (Report, error) {
	var err error
	if e.opts, err = e.opts.check(e.room); err != nil {
		return Report{}, err
	}
	if e.opts.DryRun {
		return e.dryRun(ctx)
	}
	if e.opts.Range && e.fit == nil {
		_, end, err := e.Admin(ctx) // fail before the mark is written
		if err != nil {
			return Report{}, err
		}
		end()
	}
	err = e.steps(ctx)
	return e.report(), err
}

// report returns the current report.
func (e *erasure) report() Report {
	rep := e.mark.rec.Report
	rep.Fields = e.fields
	return rep
}

func (e *erasure) steps(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	if e.mark.rec.State == Marked {
		if err := e.settle(ctx); err != nil {
			return err
		}
	}
	if err := e.quit(ctx); err != nil {
		return err
	}
	if e.mark.rec.State == Counting {
		if err := e.countAll(ctx); err != nil {
			return err
		}
		if err := e.next(ctx, Deleting); err != nil {
			return err
		}
	}
	if e.mark.rec.State == Deleting {
		if err := e.deleteAll(ctx); err != nil {
			return err
		}
		if err := e.next(ctx, Verifying); err != nil {
			return err
		}
	}
	return e.finish(ctx)
}

// begin writes the mark, or takes over an existing one.
func (e *erasure) begin(ctx context.Context) (err error) {
	if e.fit != nil {
		e.name = entityName(e.hashes())
	}
	if e.mark, err = e.room.mark(ctx, e.id, e.name); err != nil {
		return err
	}
	m := &e.mark
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	anew := !m.inForce(e.Time.Earliest())
	if anew {
		if err := e.roomForMark(ctx); err != nil {
			return err
		}
		m.rec = record{Report: e.fresh(), Settle: e.defaultSettle(), Keep: e.opts.Keep}
		m.rec.State, m.rec.Started = Marked, e.now()
	}
	switch {
	case e.opts.Settle == 0 || e.opts.Settle == m.rec.Settle:
	case m.rec.State == Marked:
		m.rec.Settle = e.opts.Settle
	case e.opts.Settle > m.rec.Settle:
		return invalid.New(tsdb.ErrInvalid, "Settle", e.opts.Settle.String(), fmt.Sprintf("0 or at most %v, which this erasure has waited", m.rec.Settle))
	}
	if m.rec.State == Erased {
		m.rec.State = Verifying // again
	}
	m.rec.Run, m.rec.Method = rand.Text(), e.method()
	set := func(mut *bigtable.Mutation) {
		catalog.SetMark(mut, catalog.Mark{Until: m.rec.Until, Entities: e.hashes()})
	}
	if err := e.save(ctx, m, set); err != nil {
		return err
	}
	e.tell(0)
	return e.announce(ctx, *m)
}

// checkClock fails if the store does not trust its clock and a mark's end depends on it.
func (e *erasure) checkClock(ctx context.Context) error {
	if e.opts.Keep == 0 && e.mark.rec.Keep == 0 && e.mark.rec.Until.IsZero() {
		return nil
	}
	_, err := e.Service.Confirmed(ctx)
	return err
}

// defaultSettle is the default wait of an erasure or a removal.
func (r room) defaultSettle() time.Duration {
	if r.Alone {
		return time.Second
	}
	t := r.Whole.Timeouts()
	return tsdb.ErasedWithin + max(t.Write, t.Scan)
}

// fresh returns the report of a new erasure.
func (e *erasure) fresh() Report {
	rep := Report{Tenant: e.id, Fields: e.fields, Dataset: e.dataset, By: e.opts.By, Reason: e.opts.Reason, Method: e.method(), Kinds: []Counted{}}
	rep.Unreached = rep.unreached()
	return rep
}

// method returns how rows are deleted.
func (e *erasure) method() string {
	if e.opts.Range && e.fit == nil {
		return "range"
	}
	return "pages"
}

// settle waits until every store applies the mark and all earlier calls have ended.
func (e *erasure) settle(ctx context.Context) error {
	for left := e.mark.rec.Settle; left > 0; left -= time.Second {
		e.tell(left)
		if err := pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
	return e.next(ctx, Counting)
}

// next saves the next state.
func (e *erasure) next(ctx context.Context, s State) error {
	e.mark.rec.State, e.mark.rec.Next = s, nil
	if err := e.save(ctx, &e.mark, nil); err != nil {
		return err
	}
	e.tell(0)
	return nil
}

// quit removes erased data from the journals and dead letters of the given writers.
func (e *erasure) quit(ctx context.Context) error {
	journals := int64(0)
	for _, w := range e.opts.Writers {
		if err := w.Flush(ctx); err != nil {
			return fmt.Errorf("tenants: flush a writer: %w", err)
		}
		if w.Stats().Journal.Stream == "" {
			continue // no journal, no dead letters
		}
		n, err := e.dropLetters(ctx, w)
		if n > 0 {
			e.mark.rec.DeadLetters += int64(n)
			err = errors.Join(err, e.save(ctx, &e.mark, nil))
		}
		if err != nil {
			return fmt.Errorf("tenants: drop dead letters: %w", err)
		}
		if err := w.ScrubJournal(ctx); err != nil {
			return fmt.Errorf("tenants: rewrite a journal: %w", err)
		}
		journals++
	}
	if journals > e.mark.rec.Journals {
		e.mark.rec.Journals = journals
		return e.save(ctx, &e.mark, nil)
	}
	return nil
}

const (
	countPage  = 10_000
	deletePage = 5_000
	lateRounds = 5 // rounds of deletion; rows that are new after them are an error
)

// countAll counts the rows to erase.
func (e *erasure) countAll(ctx context.Context) error {
	rec := &e.mark.rec
	ranges, err := e.ranges(ctx)
	if err != nil {
		return err
	}
	for rng := range rest(ranges, rec.Next) {
		for !rng.Empty() {
			keys, err := e.page(ctx, rng, int64(e.opts.countPage))
			if err != nil {
				return err
			}
			for _, key := range keys {
				rec.count(key)
			}
			rng = after(rng, keys, e.opts.countPage)
			rec.Next = []byte(rng.Start)
			if err := e.save(ctx, &e.mark, nil); err != nil {
				return err
			}
			e.tell(0)
		}
	}
	if e.fit == nil {
		doc, _, err := e.profile(ctx, e.id)
		if err != nil && !doc.Exists() {
			return err
		}
		rec.Profile = doc.Exists()
	}
	return nil
}

// dryRun counts the rows to erase, and writes nothing.
func (e *erasure) dryRun(ctx context.Context) (Report, error) {
	rec := record{Report: e.fresh()}
	rec.DryRun = true
	ranges, err := e.ranges(ctx)
	if err != nil {
		return rec.Report, err
	}
	for _, rng := range ranges {
		for !rng.Empty() {
			keys, err := e.page(ctx, rng, int64(e.opts.countPage))
			if err != nil {
				return rec.Report, err
			}
			for _, key := range keys {
				rec.count(key)
			}
			rng = after(rng, keys, e.opts.countPage)
			if e.opts.Progress != nil {
				e.opts.Progress(Progress{State: Counting, Counted: rec.Rows})
			}
		}
	}
	if e.fit == nil {
		doc, _, err := e.profile(ctx, e.id)
		if err != nil && !doc.Exists() {
			return rec.Report, err
		}
		rec.Profile = doc.Exists()
	}
	return rec.Report, nil
}

// deleteAll deletes the counted rows.
func (e *erasure) deleteAll(ctx context.Context) error {
	rec := &e.mark.rec
	if rec.Method == "range" {
		admin, end, err := e.Admin(ctx)
		if err != nil {
			return err
		}
		defer end()
		if err := e.save(ctx, &e.mark, nil); err != nil {
			return err // another call has taken over
		}
		ctx, cancel := e.Whole.Bound(ctx, true)
		defer cancel()
		if err := admin.DropRowRange(ctx, e.Name, e.all.Start); err != nil {
			return fmt.Errorf("tenants: drop the range of %s: %w", e.id, err)
		}
		rec.Deleted = rec.Rows
		return nil
	}
	ranges, err := e.ranges(ctx)
	if err != nil {
		return err
	}
	next := rec.Next
	if e.fit != nil {
		ranges, next = inOrder(ranges), nil // what was deleted is not found again
	}
	for rng := range rest(ranges, next) {
		for !rng.Empty() {
			begin := time.Now()
			keys, n, err := e.deletePage(ctx, rng)
			if err != nil {
				return err
			}
			rng = after(rng, keys, e.opts.deletePage)
			rec.Deleted += int64(n)
			rec.Next = []byte(rng.Start) // saved with the next page, or the next state
			e.tell(0)
			if err := pace(ctx, e.opts.RowsPerSecond, n, begin); err != nil {
				return err
			}
		}
	}
	return nil
}

// pace waits until the next page may be deleted within perSecond; a negative perSecond is no limit.
func pace(ctx context.Context, perSecond, rows int, begin time.Time) error {
	if perSecond < 0 {
		return ctxerr.Of(ctx)
	}
	due := time.Duration(float64(rows) / float64(perSecond) * float64(time.Second))
	return pause(ctx, due-time.Since(begin))
}

// finish checks that no rows are left, deletes the profile and the view, and ends the erasure.
func (e *erasure) finish(ctx context.Context) error {
	rec := &e.mark.rec
	if err := e.verify(ctx); err != nil {
		return err
	}
	if e.fit == nil {
		if err := e.dropProfile(ctx); err != nil {
			return err
		}
	}
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	rec.Verified = e.now()
	rec.State, rec.Next = Erased, nil
	if rec.Ended.IsZero() {
		rec.Ended = rec.Verified
		if rec.Keep > 0 {
			rec.Until = rec.Ended.Add(rec.Keep)
		}
	}
	set := func(mut *bigtable.Mutation) {
		catalog.SetMark(mut, catalog.Mark{Until: rec.Until, Entities: e.hashes()})
	}
	if err := e.save(ctx, &e.mark, set); err != nil {
		return err
	}
	e.tell(0)
	if rec.Until.IsZero() && e.fit == nil {
		return nil
	}
	return e.announce(ctx, e.mark) // an entity could be read until its rows were deleted: caches must drop reads made since the mark
}

// verify searches for rows that are left, and deletes them.
func (e *erasure) verify(ctx context.Context) error {
	for range lateRounds {
		ranges, err := e.ranges(ctx)
		if err != nil {
			return err
		}
		clean := true
		for _, rng := range inOrder(ranges) {
			for !rng.Empty() {
				keys, n, err := e.deletePage(ctx, rng)
				clean = clean && len(keys) == 0
				e.mark.rec.Late += int64(n)
				if err != nil {
					return err
				}
				rng = after(rng, keys, e.opts.deletePage)
			}
		}
		if clean {
			return nil
		}
	}
	return fmt.Errorf("%w: tenant %s", ErrRemains, e.id)
}

// dropProfile deletes the tenant's view and profile.
func (e *erasure) dropProfile(ctx context.Context) error {
	doc, p, err := e.profile(ctx, e.id)
	if err != nil && !doc.Exists() {
		return err
	}
	if err := e.save(ctx, &e.mark, nil); err != nil {
		return err // another call has taken over, and the tenant may have been readmitted with a new profile and view
	}
	if err := e.dropView(ctx, p.View); err != nil {
		return fmt.Errorf("tenants: drop the view of %s: %w", e.id, err)
	}
	if !doc.Exists() {
		return nil
	}
	key := rowkey.ProfileRows + e.id.String()
	if doc.Assigns(catalog.Assignment{}) && p.Limits == nil {
		return e.Explain(catalog.DeleteDocument(ctx, e.Whole, key))
	}
	change, err := catalog.ProfileChanges.Begin(ctx, e.Whole, e.id.String())
	if err == nil {
		err = catalog.DeleteDocument(ctx, e.Whole, key)
	}
	if err == nil {
		err = change.End(ctx, e.Whole, false)
	}
	return e.Explain(err)
}

// tell reports the progress.
func (e *erasure) tell(waiting time.Duration) {
	if e.opts.Progress != nil {
		rec := &e.mark.rec
		e.opts.Progress(Progress{State: rec.State, Waiting: waiting, Counted: rec.Rows, Deleted: rec.Deleted})
	}
}

var errNoneApplied = errors.New("tenants: no row of a page could be changed")
