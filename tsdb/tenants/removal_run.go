package tenants

import (
	"cmp"
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
)

// removalRecord is the document of a removal: the report so far, and the state that a later call needs to continue.
// All members are always written, because a missing member would keep the value of an earlier document.
type removalRecord struct {
	Removal
	steps
	Last      string `json:"last"` // the last tenant counted
	Unexpired bool   `json:"unexpired"`
	Retires   bool   `json:"retires"` // the part was not retired before
}

// removal is a sweep of a part of the table.
type removal struct {
	sweep
	part      Part
	unexpired bool // RemoveOptions.Unexpired
	rec       removalRecord
	entry     *catalog.Entry                // of the part's dataset; the zero Entry for none
	cutoffs   map[string]bigtable.Timestamp // by class; missing if nothing expires in the class
}

func newRemoval(r room, part Part) *removal {
	rm := &removal{sweep: sweep{room: r, name: part.String(), joins: true}, part: part}
	rm.key = part.key()
	rm.target, rm.record = rm, &rm.rec
	rm.progress = progress{&rm.rec.State, &rm.rec.Started, &rm.rec.Ended, &rm.rec.Rows, &rm.rec.Late, &rm.rec.Kinds, &rm.rec.steps}
	rm.note = rm.rec.count
	if rm.deletes() {
		rm.mark = func(mut *bigtable.Mutation) { catalog.SetMark(mut, catalog.Mark{}) }
	}
	return rm
}

func (rm *removal) removePart(ctx context.Context) (err error) {
	if rm.entry, err = rm.entryOf(ctx); err != nil {
		return err
	}
	if !rm.opts.DryRun {
		return rm.run(ctx)
	}
	err = rm.look(ctx)
	rm.rec.DryRun = true
	return err
}

// fresh starts a new report.
func (rm *removal) fresh() {
	rm.rec = removalRecord{Unexpired: rm.unexpired}
	rm.rec.Removal = Removal{
		Part: rm.part, By: rm.opts.By, Reason: rm.opts.Reason,
		Kinds: []Counted{}, Tenants: []TenantRows{}, Families: []string{}, Unused: []string{}, Impossible: []string{},
	}
}

// look counts the rows to delete in a new report, and records why the removal is impossible.
func (rm *removal) look(ctx context.Context) error {
	rm.fresh()
	if err := rm.aim(ctx); err != nil {
		return err
	}
	if err := rm.count(ctx); err != nil {
		return err
	}
	if err := rm.describe(ctx); err != nil {
		return err
	}
	if rm.rec.Rows == 0 && len(rm.rec.Families) == 0 && !rm.known() {
		return fmt.Errorf("%w: %s", tsdb.ErrNotFound, rm.part)
	}
	return rm.findReasons(ctx)
}

func (rm *removal) begin(ctx context.Context) error {
	// A removed part may be in use again, if the earlier call ended before it deleted the record.
	if s := rm.rec.State; s == "" || s == readmitted || s == Erased && !rm.deletes() && rm.known() {
		if err := rm.look(ctx); err != nil {
			return err
		}
		if err := rm.refused(); err != nil {
			return err
		}
		rm.fresh()
		rm.start()
		rm.rec.Retires = rm.part.Dataset != "" && !rm.deletes() && !rm.entry.IsRetired(rm.part.entry())
	}
	rm.rec.Unexpired = rm.rec.Unexpired || rm.unexpired
	return nil
}

// begun makes stores apply the mark of a dataset, or records in the catalogue that the part will be removed.
func (rm *removal) begun(ctx context.Context) error {
	switch {
	case rm.deletes():
		return rm.announce(ctx, rm.key)
	case rm.part.Dataset == "":
		return nil
	}
	return rm.setRetired(ctx, true)
}

// waited reads the catalogue's entry again: nothing changes it any more.
func (rm *removal) waited(ctx context.Context) (err error) {
	if rm.entry, err = rm.entryOf(ctx); err != nil {
		return err
	}
	return rm.aim(ctx)
}

// deletes reports whether a whole dataset is removed.
func (rm *removal) deletes() bool { return rm.part.Dataset != "" && rm.part.whole() }

// counted ends the removal if the part came into use after it was checked. It reverts what the removal has recorded.
func (rm *removal) counted(ctx context.Context) error {
	if rm.deletes() {
		return nil
	}
	if err := rm.findReasons(ctx); err != nil || len(rm.rec.Impossible) == 0 {
		return err
	}
	if rm.rec.Retires {
		if err := rm.setRetired(ctx, false); err != nil {
			return err
		}
	}
	if err := rm.forget(ctx); err != nil {
		return err
	}
	return rm.refused()
}

// refused returns why the removal cannot be made, or nil.
func (rm *removal) refused() error {
	if len(rm.rec.Impossible) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrImpossible, rm.part, sentences(rm.rec.Impossible))
}

// forget deletes the removal's row if it is this call's.
func (rm *removal) forget(ctx context.Context) error {
	if err := rm.save(ctx, nil); err != nil {
		return err // another call has taken over
	}
	ok, err := catalog.DeleteDocumentIf(ctx, rm.Whole, rm.key, rm.doc)
	if err == nil && !ok {
		doc, err := catalog.LoadDocument(ctx, rm.Whole, rm.key)
		if err != nil || doc.Exists() {
			return rm.Explain(cmp.Or(err, ErrTakenOver))
		} // a response was lost
	}
	return rm.Explain(err)
}

// finish deletes the catalogue's entry or families, and ends the removal.
func (rm *removal) finish(ctx context.Context) error {
	if err := rm.describe(ctx); err != nil {
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
		if err := rm.counted(ctx); err != nil {
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
		if err := rm.dropFromEntry(ctx); err != nil {
			return err
		}
	}
	rm.end(rm.now())
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
