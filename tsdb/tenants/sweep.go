package tenants

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sweep is one call that removes a target in steps: mark, wait, count, delete, verify, finish. Each step is stored, so
// that a later call can continue. A call that was replaced by another finds the other's record and deletes nothing
// more: the target may be in use again.
type sweep struct {
	room
	stored
	progress
	target target
	opts   EraseOptions // those that all sweeps have
	record any          // what is stored: a pointer to a record or a removalRecord
	name   string       // of the target, for errors

	mark   func(*bigtable.Mutation)                                           // sets the mark that stores apply; nil for none
	drop   func(context.Context) error                                        // deletes all rows with one request; nil for page by page
	filter bigtable.Filter                                                    // the cells to read of each row
	note   func(row *removable)                                               // counts more than rows and kinds; nil for no more
	cell   func(row *removable, family, column string, at bigtable.Timestamp) // notes a cell of a row; nil for the key alone
	joins  bool                                                               // a page may have rows of several ranges
}

// target is what a sweep removes: a tenant or an entity (erasure), or a part of the table (removal). Its methods are
// the steps that differ.
type target interface {
	// begin checks that the sweep can begin or continue, and starts a new record if none is in progress.
	begin(ctx context.Context) error
	// begun makes other programs apply the stored record.
	begun(ctx context.Context) error
	// waited prepares the removal. Nothing is written to the target any more.
	waited(ctx context.Context) error
	// ranges returns the ranges of the rows to remove from a key on, in the order of the current state.
	ranges(ctx context.Context, from string) iter.Seq2[rowkey.Range, error]
	// counted is called when all rows are counted, before any is deleted.
	counted(ctx context.Context) error
	// remove deletes a page of rows, and returns how many it deleted.
	remove(ctx context.Context, page []removable) (int, error)
	// finish removes what belongs to the target besides its rows, and stores that the sweep has ended.
	finish(ctx context.Context) error
}

// progress points to what all records have.
type progress struct {
	state          *State
	started, ended *time.Time
	total, late    *int64 // rows
	byKind         *[]Counted
	*steps
}

// steps is the part of a record that a later call needs to continue.
type steps struct {
	// Run identifies the call that does the sweep. A call that finds another Run has been taken over.
	Run string `json:"run"`
	// Next is the key from which to continue counting or deleting.
	Next []byte `json:"next"`
	// Deleted is how many rows the deleted pages had.
	Deleted int64 `json:"deleted"`
	// Settle is how long to wait after the mark.
	Settle time.Duration `json:"settle"`
}

// removable is a row to remove, or with cells to remove.
type removable struct {
	key     string
	columns []string // family and qualifier, if cells are removed
	visible bool     // it has data that has not expired
}

const (
	countPage  = 10_000
	deletePage = 5_000
	lateRounds = 5 // rounds of deletion; rows that are new after them are an error
)

func (s *sweep) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.step(ctx, marked, counting, s.settle); err != nil {
		return err
	}
	if err := s.target.waited(ctx); err != nil {
		return err
	}
	if err := s.step(ctx, counting, Deleting, s.count, s.target.counted); err != nil {
		return err
	}
	if err := s.step(ctx, Deleting, verifying, s.deleteCounted); err != nil {
		return err
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	return s.target.finish(ctx)
}

// begin stores the record of a new sweep, or takes over the one in progress.
func (s *sweep) begin(ctx context.Context) (err error) {
	if s.stored, err = s.load(ctx, s.key, s.record); err != nil {
		return err
	}
	if err := s.target.begin(ctx); err != nil {
		return err
	}
	switch settle := s.opts.Settle; {
	case settle == 0 || settle == s.Settle:
	case *s.state == marked:
		s.Settle = settle
	case settle > s.Settle:
		return invalid.New(tsdb.ErrInvalid, "Settle", settle.String(), fmt.Sprintf("0 or at most %v, which earlier calls have waited", s.Settle))
	}
	if *s.state == Erased {
		*s.state = verifying // again
	}
	s.Run = rand.Text()
	if err := s.save(ctx, s.mark); err != nil {
		return err
	}
	s.tell(*s.state, 0)
	return s.target.begun(ctx)
}

// start starts a new record.
func (s *sweep) start() {
	*s.state, *s.started, s.Settle = marked, s.now(), s.all()
	if s.alone() {
		s.Settle = settleAlone
	}
}

// settleAlone is how long to wait after the mark if no other store uses the table.
const settleAlone = time.Second

// all is how long to wait for all stores.
func (s *sweep) all() time.Duration {
	return tenancy.ErasedWithin + max(s.Whole.Timeouts().Write, s.Whole.Timeouts().Scan)
}

func (s *sweep) alone() bool { return s.Alone != nil && s.Alone() }

// step does what is to be done in a state, if the sweep is in that state, and stores the next one.
func (s *sweep) step(ctx context.Context, in, next State, do ...func(context.Context) error) error {
	if *s.state != in {
		return nil
	}
	for _, f := range do {
		if err := f(ctx); err != nil {
			return err
		}
	}
	*s.state, s.Next = next, nil
	if err := s.save(ctx, nil); err != nil {
		return err
	}
	s.tell(next, 0)
	return nil
}

// settle waits until every store applies the mark and all earlier calls have ended.
func (s *sweep) settle(ctx context.Context) error {
	if s.Settle == settleAlone && s.opts.Settle == 0 && !s.alone() {
		s.Settle = s.all() // another store has come before the mark was stored
	}
	for left := s.Settle; left > 0; left -= time.Second {
		s.tell(marked, left)
		if err := ctxerr.Wait(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// walk visits pages of the rows to remove, from the saved key on. next is the key from which to continue.
func (s *sweep) walk(ctx context.Context, most int, visit func(page []removable, next string) error) error {
	var page []removable
	for rng, err := range s.target.ranges(ctx, string(s.Next)) {
		if err != nil {
			return err
		}
		for !rng.Empty() {
			n := most - len(page)
			keys, err := s.read(ctx, rng, n, &page)
			if err != nil {
				return err
			}
			rng = after(rng, keys, n)
			if s.joins && len(page) < most {
				continue
			}
			if err := visit(page, rng.Start); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	if len(page) == 0 {
		return nil
	}
	return visit(page, page[len(page)-1].key+"\x00")
}

// read appends the first rows of a range to a page, and returns their keys.
func (s *sweep) read(ctx context.Context, rng rowkey.Range, most int, page *[]removable) (keys []string, err error) {
	err = s.rows(ctx, rng, s.filter, int64(most), func(row *bt.Row) {
		r := removable{key: row.Key()}
		for family, cells := range row.Families() {
			for _, c := range cells {
				if s.cell != nil {
					s.cell(&r, family, c.Column, c.Timestamp)
				}
			}
		}
		keys = append(keys, r.key)
		*page = append(*page, r)
	})
	return keys, err
}

// after returns the rest of a range after a page of its keys.
func after(rng rowkey.Range, page []string, full int) rowkey.Range {
	if len(page) < full {
		return rowkey.Range{Start: rng.Limit, Limit: rng.Limit}
	}
	return rng.After(page[len(page)-1])
}

// count counts the rows to remove. It stores what it has counted once the sweep has begun.
func (s *sweep) count(ctx context.Context) error {
	return s.walk(ctx, s.opts.countPage, func(page []removable, next string) error {
		for i := range page {
			*s.total++
			dataset, kind, _ := rowkey.KindOf(page[i].key)
			kindIn(s.byKind, mostKinds, kindOf{dataset, kind},
				func(c Counted) kindOf { return kindOf{c.Dataset, c.Kind} },
				func(of kindOf) Counted { return Counted{Dataset: of.dataset, Kind: of.kind} }).Rows++
			if s.note != nil {
				s.note(&page[i])
			}
		}
		s.Next = []byte(next)
		if *s.state == counting {
			if err := s.save(ctx, nil); err != nil {
				return err
			}
		}
		s.tell(counting, 0)
		return nil
	})
}

// deleteCounted deletes the counted rows.
func (s *sweep) deleteCounted(ctx context.Context) error {
	if s.drop == nil {
		_, err := s.delete(ctx, &s.Deleted)
		return err
	}
	if err := s.drop(ctx); err != nil {
		return err
	}
	s.Deleted = *s.total
	return nil
}

// delete deletes the rows from the saved key on, and returns how many it found. It saves the record before each page:
// a call that was taken over must delete nothing.
func (s *sweep) delete(ctx context.Context, deleted *int64) (found int, err error) {
	err = s.walk(ctx, s.opts.deletePage, func(page []removable, next string) error {
		begin, n := time.Now(), 0
		if len(page) > 0 {
			if err := s.save(ctx, nil); err != nil {
				return err
			}
			n, err = s.target.remove(ctx, page)
			*deleted += int64(n)
			if found += len(page); err != nil {
				return err
			}
		}
		s.Next = []byte(next) // saved with the next page, or the next state
		s.tell(*s.state, 0)
		return pace(ctx, s.opts.RowsPerSecond, n, begin)
	})
	return found, err
}

// pace waits until the next page may be deleted within perSecond; a negative perSecond is no limit.
func pace(ctx context.Context, perSecond, rows int, begin time.Time) error {
	if perSecond < 0 {
		return ctxerr.Of(ctx)
	}
	due := time.Duration(float64(rows) / float64(perSecond) * float64(time.Second))
	return ctxerr.Wait(ctx, due-time.Since(begin))
}

// verify searches for rows that are left, and deletes them.
func (s *sweep) verify(ctx context.Context) error {
	for range lateRounds {
		s.Next = nil
		if found, err := s.delete(ctx, s.late); err != nil || found == 0 {
			s.Next = nil
			return err
		}
	}
	return fmt.Errorf("%w: %s", errtype.ErrRemains, s.name)
}

// end records that the sweep ended, unless it ended before.
func (s *sweep) end(now time.Time) {
	if *s.state, s.Next = Erased, nil; s.ended.IsZero() {
		*s.ended = now
	}
}

// tell reports the progress.
func (s *sweep) tell(state State, waiting time.Duration) {
	if s.opts.Progress != nil {
		s.opts.Progress(Progress{State: state, Waiting: waiting, Counted: *s.total, Deleted: s.Deleted})
	}
}

// deleteRows deletes all rows of a page.
func (r room) deleteRows(ctx context.Context, page []removable) (deleted int, err error) {
	entries := make([]bt.Entry, len(page))
	for i := range page {
		m := bigtable.NewMutation()
		m.DeleteRow()
		entries[i] = bt.Entry{Key: page[i].key, Mutation: m, Mutations: 1}
	}
	return r.applyAll(ctx, entries)
}

var errNoneApplied = errors.New("tenants: no row of a page could be changed")

// applyAll applies the entries of a page, and retries while some of them succeed.
func (r room) applyAll(ctx context.Context, entries []bt.Entry) (applied int, err error) {
	for len(entries) > 0 {
		var failed []bt.Entry
		for i, out := range r.Whole.Bulk(ctx, entries) {
			if out.State == bt.Stored {
				applied++
				continue
			}
			failed = append(failed, entries[i])
			err = out.Err
		}
		switch {
		case len(failed) == 0:
			return applied, nil
		case len(failed) == len(entries):
			return applied, fmt.Errorf("%w: %w", errNoneApplied, r.Explain(err))
		}
		entries = failed
	}
	return applied, nil
}

// stored is one of the store's own rows as it was last read or written.
type stored struct {
	key string
	doc catalog.Document
}

// load reads one of the store's own rows into a record. Without such a row the record stays as it is.
func (r room) load(ctx context.Context, key string, record any) (stored, error) {
	doc, err := catalog.LoadDocument(ctx, r.Whole, key)
	if err == nil && doc.Exists() {
		if err := json.Unmarshal(doc.JSON, record); err != nil {
			return stored{key: key}, fmt.Errorf("tenants: the store's row %s does not decode: %w", key, err)
		}
	}
	return stored{key, doc}, r.Explain(err)
}

// replace writes a record and the mutations of also, if the row is still as it was stored. Otherwise it returns
// ErrTakenOver.
func (r room) replace(ctx context.Context, s *stored, record any, also func(*bigtable.Mutation)) error {
	doc, ok, err := catalog.SaveDocument(ctx, r.Whole, s.key, record, s.doc, also)
	switch {
	case err != nil:
		return r.Explain(err)
	case !ok:
		reach.Point(reach.StolenErasure)
		return ErrTakenOver
	}
	s.doc = doc
	return nil
}

// save writes the record, as replace does.
func (s *sweep) save(ctx context.Context, also func(*bigtable.Mutation)) error {
	return s.replace(ctx, &s.stored, s.record, also)
}

// kindIn returns the figures of a kind of rows in a sorted list. It inserts zero figures if the list has none. In a
// list of most kinds, all further kinds count as those of no dataset: they are of another program.
func kindIn[T any](list *[]T, most int, of kindOf, kind func(T) kindOf, zero func(kindOf) T) *T {
	find := func() (int, bool) {
		return slices.BinarySearchFunc(*list, of, func(v T, of kindOf) int {
			k := kind(v)
			return cmp.Or(strings.Compare(k.dataset, of.dataset), strings.Compare(k.kind, of.kind))
		})
	}
	i, found := find()
	if !found && len(*list) >= most {
		of = kindOf{}
		i, found = find()
	}
	if !found {
		*list = slices.Insert(*list, i, zero(of))
	}
	return &(*list)[i]
}
