package bt

import (
	"context"
	"errors"
	"iter"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/firstrow"
)

// Scan describes a read of rows. Rows must be made from row keys of one tenant.
type Scan struct {
	Rows    bigtable.RowSet
	Filter  bigtable.Filter // nil for none
	Limit   int64           // of rows returned; 0 for none
	Reverse bool
	Long    bool // bounded by the timeout of scans, not of reads
	// First asks, instead of Rows, for at most one row of each of these ranges. They are in key order, and do not
	// touch. A request that is repeated after a break may return another row of the range of the last one. Only an
	// engine in this process does that, behind the guard; others return more rows.
	First []Range
}

// Range is the row keys from Start to before Limit. Neither is empty.
type Range struct{ Start, Limit string }

// KeysOnly passes one cell of each row, without its value.
func KeysOnly() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
}

// Read calls visit for each row, in order, until visit returns false. It does not visit rows that arrive after ctx has
// ended. A row is valid until visit returns; readrows.Row documents which parts may be kept.
func (t *Table) Read(ctx context.Context, s Scan, visit func(*Row) bool) (err error) {
	ctx, cancel := t.Bound(ctx, s.Long)
	defer cancel()
	opts := make([]bigtable.ReadOption, 0, 3)
	if s.Filter != nil {
		opts = append(opts, bigtable.RowFilter(s.Filter))
	}
	if s.Limit > 0 {
		opts = append(opts, bigtable.LimitRows(s.Limit))
	}
	if s.Reverse {
		opts = append(opts, bigtable.ReverseScan())
	}
	if n := len(s.First); n > 0 {
		s.Rows = bigtable.NewRange(s.First[0].Start, s.First[n-1].Limit) // the guard sends the ranges
		ctx = firstrow.Only(ctx)
	}
	var rec record
	read := newRowRead(ctx, s, &rec, visit)
	rec.read = read
	defer func() { rec.abandoned(err) }()
	err = t.data.ReadRows(withRecord(ctx, &rec), s.Rows, read.fromClient, opts...)
	read.free() // not after a panic of visit, which may have kept the row
	if rec.stopped {
		return nil
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && rec.err != nil && (ctx.Err() != nil || errors.Unwrap(rec.err) != nil) {
		err = rec.err // the cause: why the client retried until the time was over, or what it does not pass on
	}
	return ended(ctx, err)
}

// Rows is Read as a sequence; an error is the last pair. It runs no goroutine. A row is valid until the next one.
func (t *Table) Rows(ctx context.Context, s Scan) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		stopped := false
		err := t.Read(ctx, s, func(row *Row) bool {
			stopped = !yield(row, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// ErrClosed means that the store is closed.
var ErrClosed = errors.New("tsdb: store is closed")

// ErrForeignRow means that the service returned a row outside the requested range.
var ErrForeignRow = errors.New("tsdb: the service returned a row of another range")

// Row returns the row with this key, as the filter passes it, or nil if nothing passes.
func (t *Table) Row(ctx context.Context, key string, filter bigtable.Filter) (row *Row, err error) {
	foreign := false
	err = t.Read(ctx, Scan{Rows: bigtable.RowList{key}, Filter: filter, Limit: 1}, func(r *Row) bool {
		if foreign = r.Key() != key; !foreign {
			row = r.Clone()
		}
		return !foreign
	})
	switch {
	case foreign:
		return nil, ErrForeignRow
	case err != nil:
		return nil, err
	}
	return row, nil
}

// RowAsJudged is Row through the app profile of conditional writes. In a replicated table too, it sees all that they
// see.
func (t *Table) RowAsJudged(ctx context.Context, key string, filter bigtable.Filter) (*Row, error) {
	return t.SingleCluster().Row(ctx, key, filter)
}
