package tenants

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// erasure is a sweep of a tenant or of an entity.
type erasure struct {
	sweep
	id     tenant.ID
	all    rowkey.Range // of the tenant
	fit    []fitting    // of an entity; nil for a tenant
	method string       // how rows are deleted
	report Report       // of an erasure that begins
	rec    record
}

// newErasure returns the erasure of a tenant with all its rows, or of the entity that fits some datasets.
func newErasure(r room, id tenant.ID, all rowkey.Range, fit []fitting, opts EraseOptions) *erasure {
	e := &erasure{sweep: sweep{room: r, opts: opts, filter: bt.KeysOnly(), name: "tenant " + id.String()}, id: id, all: all, fit: fit, method: "pages"}
	hashes, name := hashesOf(fit), ""
	if fit != nil {
		name = entityName(hashes)
	} else if opts.Range {
		e.method, e.drop = "range", e.dropRange
	}
	e.key = markKey(id.String(), name)
	e.target, e.record = e, &e.rec
	e.progress = progress{&e.rec.State, &e.rec.Started, &e.rec.Ended, &e.rec.Rows, &e.rec.Late, &e.rec.Kinds, &e.rec.steps}
	e.mark = func(mut *bigtable.Mutation) { catalog.SetMark(mut, catalog.Mark{Until: e.rec.Until, Entities: hashes}) }
	return e
}

// erase makes the erasure, and returns its report.
func (e *erasure) erase(ctx context.Context, fields map[string]string, dataset string) (_ Report, err error) {
	if e.opts, err = e.opts.check(); err != nil {
		return Report{}, err
	}
	e.report = Report{Tenant: e.id, Fields: fields, Dataset: dataset, By: e.opts.By, Reason: e.opts.Reason, Method: e.method, Kinds: []Counted{}}
	e.report.Unreached = e.report.unreached()
	switch {
	case e.opts.DryRun:
		e.rec.Report = e.report
		e.rec.DryRun = true
		if err = e.count(ctx); err == nil {
			err = e.counted(ctx)
		}
	case e.drop != nil:
		_, end, adminErr := e.Admin(ctx) // fail before the mark is written
		if adminErr != nil {
			return Report{}, adminErr
		}
		end()
		err = e.run(ctx)
	default:
		err = e.run(ctx)
	}
	e.rec.Fields = fields
	return e.rec.Report, err
}

func (e *erasure) begin(ctx context.Context) error {
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	if !e.rec.inForce(e.doc, e.Time.Earliest()) {
		if err := e.roomForMark(ctx); err != nil {
			return err
		}
		e.rec = record{Report: e.report, Keep: e.opts.Keep}
		e.start()
	}
	e.rec.Method = e.method
	return nil
}

func (e *erasure) begun(ctx context.Context) error { return e.announce(ctx, e.key) }

// checkClock fails if the store does not trust its clock and a mark's end depends on it.
func (e *erasure) checkClock(ctx context.Context) error {
	if e.opts.Keep == 0 && e.rec.Keep == 0 && e.rec.Until.IsZero() {
		return nil
	}
	_, err := e.Service.Confirmed(ctx)
	return err
}

// waited removes erased data from the journals and dead letters of the given writers.
func (e *erasure) waited(ctx context.Context) error {
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
			e.rec.DeadLetters += int64(n)
			err = errors.Join(err, e.save(ctx, nil))
		}
		if err != nil {
			return fmt.Errorf("tenants: drop dead letters: %w", err)
		}
		if err := w.ScrubJournal(ctx); err != nil {
			return fmt.Errorf("tenants: rewrite a journal: %w", err)
		}
		journals++
	}
	if journals <= e.rec.Journals {
		return nil
	}
	e.rec.Journals = journals
	return e.save(ctx, nil)
}

// dropLetters drops the dead letters of erased data.
func (e *erasure) dropLetters(ctx context.Context, w *tsdb.Writer) (n int, err error) {
	const most = 1000
	var ids []uint64
	drop := func() error {
		dropped, err := w.DropDeadLetters(ctx, ids...)
		n, ids = n+dropped, ids[:0]
		return err
	}
	for l, err := range w.DeadLetters(ctx) {
		if err != nil {
			return n, err
		}
		of := func(f fitting) bool { return f.dataset == l.Dataset && f.entity == l.Entity }
		if l.Tenant == e.id && (e.fit == nil || slices.ContainsFunc(e.fit, of)) {
			ids = append(ids, l.ID)
		}
		if len(ids) == most {
			if err := drop(); err != nil {
				return n, err
			}
		}
	}
	return n, drop()
}

// ranges returns the ranges to count in order of their keys. It returns those to delete in the order inOrder, from the
// first key on: what was deleted is not found again.
func (e *erasure) ranges(ctx context.Context, from string) iter.Seq2[rowkey.Range, error] {
	return func(yield func(rowkey.Range, error) bool) {
		ranges, err := []rowkey.Range{e.all}, error(nil)
		if e.fit != nil {
			ranges, err = e.ofEntity(ctx)
			if e.rec.State != counting {
				ranges, from = inOrder(ranges), ""
			}
		}
		if err != nil {
			yield(rowkey.Range{}, err)
			return
		}
		for _, rng := range ranges {
			rng.Start = max(rng.Start, from)
			if !yield(rng, nil) {
				return
			}
		}
	}
}

// ofEntity returns the ranges of the entity's rows, sorted.
func (e *erasure) ofEntity(ctx context.Context) ([]rowkey.Range, error) {
	var ranges []rowkey.Range
	for _, f := range e.fit {
		ranges = append(ranges, f.space.Whole(f.path))
		kinds, err := e.kinds(ctx, f.space)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			ranges = append(ranges, k.Whole(f.path))
		}
		if f.marked == nil {
			continue
		}
		for i := range f.marked.Rollups { // marks, some of which the erasure itself writes
			if kind := f.marked.Rollups[i].Mark; kind != "" {
				ranges = append(ranges, f.space.Kind(kind).Whole(f.path))
			}
		}
	}
	slices.SortFunc(ranges, func(a, b rowkey.Range) int { return strings.Compare(a.Start, b.Start) })
	return slices.Compact(ranges), nil
}

// inOrder returns the ranges in the order in which they are deleted: stored buckets after points, whose deletion marks
// the buckets, and marks last.
func inOrder(ranges []rowkey.Range) []rowkey.Range {
	turn := func(r rowkey.Range) int {
		switch _, kind, _ := rowkey.KindOf(r.Start); {
		case strings.HasPrefix(kind, rowkey.MarkKind):
			return 2
		case strings.HasPrefix(kind, rowkey.RollupKind):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ranges, func(a, b rowkey.Range) int { return turn(a) - turn(b) })
	return ranges
}

// counted records whether the tenant has a profile.
func (e *erasure) counted(ctx context.Context) error {
	if e.fit != nil {
		return nil
	}
	doc, _, err := e.profile(ctx, e.id)
	if err != nil && !doc.Exists() {
		return err
	}
	e.rec.Profile = doc.Exists()
	return nil
}

// dropRange deletes the tenant's rows with one request.
func (e *erasure) dropRange(ctx context.Context) error {
	admin, end, err := e.Admin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := e.save(ctx, nil); err != nil {
		return err // another call has taken over
	}
	ctx, cancel := e.Whole.Bound(ctx, true)
	defer cancel()
	if err := admin.DropRowRange(ctx, e.Name, e.all.Start); err != nil {
		return fmt.Errorf("tenants: drop the range of %s: %w", e.id, err)
	}
	return nil
}

// remove deletes rows, and first marks the buckets of points among them. Until the erasure ends, and if it never does,
// rollups then agree with the points that are left. No worker takes the marks of an erased entity.
func (e *erasure) remove(ctx context.Context, page []removable) (int, error) {
	for i := range e.fit {
		if f := &e.fit[i]; f.marked != nil {
			keys := make([]string, len(page))
			for i := range page {
				keys[i] = page[i].key
			}
			if _, err := e.applyAll(ctx, points.MarksOf(f.marked, f.space, keys, e.Clock)); err != nil {
				return 0, err
			}
		}
	}
	return e.deleteRows(ctx, page)
}

// finish deletes the profile and the view, and ends the erasure.
func (e *erasure) finish(ctx context.Context) error {
	if e.fit == nil {
		if err := e.dropProfile(ctx); err != nil {
			return err
		}
	}
	if err := e.checkClock(ctx); err != nil {
		return err
	}
	rec := &e.rec
	rec.Verified = e.now()
	if rec.Ended.IsZero() && rec.Keep > 0 {
		rec.Until = rec.Verified.Add(rec.Keep)
	}
	e.end(rec.Verified)
	if err := e.save(ctx, e.mark); err != nil {
		return err
	}
	e.tell(Erased, 0)
	if rec.Until.IsZero() && e.fit == nil {
		return nil
	}
	return e.announce(ctx, e.key) // an entity could be read until its rows were deleted: caches must drop reads made since the mark
}

// dropProfile deletes the tenant's view and profile.
func (e *erasure) dropProfile(ctx context.Context) error {
	doc, p, err := e.profile(ctx, e.id)
	if err != nil && !doc.Exists() {
		return err
	}
	if err := e.save(ctx, nil); err != nil {
		return err // another call has taken over, and the tenant may have been readmitted with a new profile and view
	}
	if err := e.dropView(ctx); err != nil {
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
