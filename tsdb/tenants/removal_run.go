package tenants

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
)

// removalRecord is the document of a removal: the report so far, and the state that a later call needs to continue.
// All members are always written, because a missing member would keep the value of an earlier document.
type removalRecord struct {
	Removal
	Run       string        `json:"run"`  // identifies the call that does the removal
	Next      []byte        `json:"next"` // the key from which to continue counting or deleting
	Last      string        `json:"last"` // the last tenant counted
	Deleted   int64         `json:"deleted"`
	Settle    time.Duration `json:"settle"`
	Unexpired bool          `json:"unexpired"`
	Retires   bool          `json:"retires"` // the part was not retired before
}

// removal is one call that continues a removal from its current state.
type removal struct {
	room
	part Part
	opts RemoveOptions
	doc  catalog.Document
	rec  removalRecord

	filter  bigtable.Filter
	cutoffs map[string]bigtable.Timestamp // by class; missing if nothing expires in the class
}

func (rm *removal) run(ctx context.Context) error {
	entry, err := rm.entryOf(ctx)
	if err != nil {
		return err
	}
	if rm.opts.DryRun {
		rm.fresh()
		rm.rec.DryRun = true
		if err := rm.aim(ctx, entry); err != nil {
			return err
		}
		return rm.look(ctx, entry)
	}
	if err := rm.load(ctx); err != nil {
		return err
	}
	if err := rm.begin(ctx, entry); err != nil {
		return err
	}
	if rm.rec.State == Marked {
		if err := rm.settle(ctx); err != nil {
			return err
		}
	}
	if entry, err = rm.entryOf(ctx); err != nil { // nothing changes it any more
		return err
	}
	if err := rm.aim(ctx, entry); err != nil {
		return err
	}
	if rm.rec.State == Counting {
		if err := rm.count(ctx); err != nil {
			return err
		}
		if err := rm.stillPossible(ctx, entry); err != nil {
			return err
		}
		if err := rm.next(ctx, Deleting); err != nil {
			return err
		}
	}
	if rm.rec.State == Deleting {
		if _, err := rm.delete(ctx, &rm.rec.Deleted); err != nil {
			return err
		}
		if err := rm.next(ctx, Verifying); err != nil {
			return err
		}
	}
	return rm.finish(ctx, entry)
}

// fresh starts a new report.
func (rm *removal) fresh() {
	rm.rec = removalRecord{Unexpired: rm.opts.Unexpired}
	rm.rec.Removal = Removal{
		Part: rm.part, By: rm.opts.By, Reason: rm.opts.Reason,
		Kinds: []Counted{}, Tenants: []TenantRows{}, Families: []string{}, Unused: []string{}, Impossible: []string{},
	}
}

// look counts the rows to delete, and records why the removal is impossible.
func (rm *removal) look(ctx context.Context, entry *catalog.Entry) error {
	err := rm.walk(ctx, "", rm.opts.countPage, func(page []removable, _ string) error {
		rm.rec.count(page)
		rm.tell(Counting, 0)
		return nil
	})
	if err != nil {
		return err
	}
	if err := rm.describe(ctx, entry); err != nil {
		return err
	}
	if rm.rec.Rows == 0 && len(rm.rec.Families) == 0 && !rm.known(entry) {
		return fmt.Errorf("%w: %s", tsdb.ErrNotFound, rm.part)
	}
	rm.rec.Impossible, err = rm.reasons(ctx, entry)
	return err
}

// begin takes over a removal in progress, or begins one: if it is possible, begin writes the mark.
func (rm *removal) begin(ctx context.Context, entry *catalog.Entry) error {
	// A removed part may be in use again, if the earlier call ended before it deleted the record.
	anew := rm.rec.State == "" || rm.rec.State == Readmitted || rm.rec.State == Erased && !rm.deletes() && rm.known(entry)
	if anew {
		rm.fresh()
		if err := rm.aim(ctx, entry); err != nil {
			return err
		}
		if err := rm.look(ctx, entry); err != nil {
			return err
		}
		if err := rm.refused(); err != nil {
			return err
		}
		rm.fresh()
		rm.rec.Settle = rm.defaultSettle()
		rm.rec.State, rm.rec.Started = Marked, rm.now()
		rm.rec.Retires = rm.part.Dataset != "" && !rm.deletes() && !entry.IsRetired(rm.part.entry())
	}
	switch {
	case rm.opts.Settle == 0 || rm.opts.Settle == rm.rec.Settle:
	case rm.rec.State == Marked:
		rm.rec.Settle = rm.opts.Settle
	case rm.opts.Settle > rm.rec.Settle:
		return invalid.New(tsdb.ErrInvalid, "Settle", rm.opts.Settle.String(), fmt.Sprintf("0 or at most %v, which this removal has waited", rm.rec.Settle))
	}
	if rm.rec.State == Erased {
		rm.rec.State = Verifying // again
	}
	rm.rec.Unexpired = rm.rec.Unexpired || rm.opts.Unexpired
	rm.rec.Run = rand.Text()
	if !rm.deletes() {
		if err := rm.save(ctx, nil); err != nil {
			return err
		}
		rm.tell(rm.rec.State, 0)
		return rm.retire(ctx)
	}
	if err := rm.save(ctx, func(mut *bigtable.Mutation) { catalog.SetMark(mut, catalog.Mark{}) }); err != nil {
		return err
	}
	rm.tell(rm.rec.State, 0)
	return rm.announce(ctx, mark{key: rm.part.key()})
}

// deletes reports whether a whole dataset is removed.
func (rm *removal) deletes() bool { return rm.part.Dataset != "" && rm.part.whole() }

// retire records in the catalogue that the part will be removed.
func (rm *removal) retire(ctx context.Context) error {
	if rm.part.Dataset == "" {
		return nil
	}
	return rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
		if d.IsRetired(rm.part.entry()) {
			return false, nil
		}
		d.SetRetired(rm.part.entry(), true)
		return true, nil
	})
}

// refused returns why the removal cannot be made, or nil.
func (rm *removal) refused() error {
	if len(rm.rec.Impossible) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrImpossible, rm.part, sentences(rm.rec.Impossible))
}

// stillPossible ends the removal if the part came into use after it was checked. It reverts what the removal has
// recorded.
func (rm *removal) stillPossible(ctx context.Context, entry *catalog.Entry) (err error) {
	if rm.deletes() {
		return nil
	}
	if rm.rec.Impossible, err = rm.reasons(ctx, entry); err != nil || len(rm.rec.Impossible) == 0 {
		return err
	}
	if rm.rec.Retires {
		if err := rm.unretire(ctx); err != nil {
			return err
		}
	}
	if err := rm.forget(ctx); err != nil {
		return err
	}
	return rm.refused()
}

// forget deletes the removal's row if it is this call's.
func (rm *removal) forget(ctx context.Context) error {
	if err := rm.save(ctx, nil); err != nil {
		return err // another call has taken over
	}
	ok, err := catalog.DeleteDocumentIf(ctx, rm.Whole, rm.part.key(), rm.doc)
	if err == nil && !ok {
		doc, err := catalog.LoadDocument(ctx, rm.Whole, rm.part.key())
		if err != nil || doc.Exists() {
			return rm.Explain(cmp.Or(err, ErrTakenOver))
		} // a response was lost
	}
	return rm.Explain(err)
}

// settle waits until every store applies the mark and all earlier calls have ended.
func (rm *removal) settle(ctx context.Context) error {
	for left := rm.rec.Settle; left > 0; left -= time.Second {
		rm.tell(Marked, left)
		if err := pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
	return rm.next(ctx, Counting)
}

// next saves the next state.
func (rm *removal) next(ctx context.Context, s State) error {
	rm.rec.State, rm.rec.Next = s, nil
	if err := rm.save(ctx, nil); err != nil {
		return err
	}
	rm.tell(s, 0)
	return nil
}

// count counts the rows to delete.
func (rm *removal) count(ctx context.Context) error {
	return rm.walk(ctx, string(rm.rec.Next), rm.opts.countPage, func(page []removable, next string) error {
		rm.rec.count(page)
		rm.rec.Next = []byte(next)
		rm.tell(Counting, 0)
		return rm.save(ctx, nil)
	})
}

// delete deletes the rows from the saved key on, and returns how many it found.
func (rm *removal) delete(ctx context.Context, deleted *int64) (found int, err error) {
	err = rm.walk(ctx, string(rm.rec.Next), rm.opts.deletePage, func(page []removable, next string) error {
		begin := time.Now()
		if err := rm.save(ctx, nil); err != nil {
			return err // another call has taken over, and the rows may be of a new dataset with this name
		}
		n, err := rm.applyAll(ctx, rm.deletions(page))
		found += len(page)
		*deleted += int64(n)
		if err != nil {
			return err
		}
		rm.rec.Next = []byte(next) // saved with the next page, or the next state
		rm.tell(rm.rec.State, 0)
		return pace(ctx, rm.opts.RowsPerSecond, n, begin)
	})
	return found, err
}

// finish checks that no rows are left, deletes the catalogue's entry or families, and ends the removal.
func (rm *removal) finish(ctx context.Context, entry *catalog.Entry) error {
	if err := rm.verify(ctx); err != nil {
		return err
	}
	if err := rm.describe(ctx, entry); err != nil {
		return err
	}
	if err := rm.save(ctx, nil); err != nil {
		return err
	}
	switch {
	case rm.part.Dataset == "":
		// A dataset may have started to use the class during the walks. Ensure reads this removal's record before and
		// after it writes an entry. If Ensure read the record before the removal began, the removal sees the entry
		// here.
		if err := rm.stillPossible(ctx, entry); err != nil {
			return err
		}
		if err := rm.dropFamilies(ctx); err != nil {
			return err
		}
	case rm.deletes():
		if err := rm.dropEntry(ctx); err != nil {
			return err
		}
	default:
		err := rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
			if !d.Has(rm.part.entry()) {
				return false, nil
			}
			if err := rm.save(ctx, nil); err != nil {
				return false, err // another call has taken over, and the part may be in use again
			}
			d.Remove(rm.part.entry())
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	rm.rec.State, rm.rec.Next = Erased, nil
	if rm.rec.Ended.IsZero() {
		rm.rec.Ended = rm.now()
	}
	if !rm.deletes() {
		rm.tell(Erased, 0)
		return rm.forget(ctx)
	}
	if err := rm.save(ctx, nil); err != nil {
		return err
	}
	rm.tell(Erased, 0)
	return nil
}

// verify searches for rows that are left, and deletes them.
func (rm *removal) verify(ctx context.Context) error {
	for range lateRounds {
		rm.rec.Next = nil
		if found, err := rm.delete(ctx, &rm.rec.Late); err != nil || found == 0 {
			return err
		}
	}
	return fmt.Errorf("%w: %s", ErrRemains, rm.part)
}

// tell reports the progress.
func (rm *removal) tell(s State, waiting time.Duration) {
	if rm.opts.Progress != nil {
		rm.opts.Progress(Progress{State: s, Waiting: waiting, Counted: rm.rec.Rows, Deleted: rm.rec.Deleted})
	}
}

// load reads the removal in progress; without one the record is zero.
func (rm *removal) load(ctx context.Context) error {
	doc, err := catalog.LoadDocument(ctx, rm.Whole, rm.part.key())
	if err != nil || !doc.Exists() {
		return rm.Explain(err)
	}
	rm.doc = doc
	if err := json.Unmarshal(doc.JSON, &rm.rec); err != nil {
		return fmt.Errorf("tenants: the removal of %s does not decode: %w", rm.part, err)
	}
	return nil
}

// save writes the record and the mutations of also, if the stored record is still this call's. Otherwise it returns
// ErrTakenOver.
func (rm *removal) save(ctx context.Context, also func(*bigtable.Mutation)) error {
	doc, ok, err := catalog.SaveDocument(ctx, rm.Whole, rm.part.key(), rm.rec, rm.doc, also)
	switch {
	case err != nil:
		return rm.Explain(err)
	case !ok:
		return ErrTakenOver
	}
	rm.doc = doc
	return nil
}
