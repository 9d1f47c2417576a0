package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// span is what to read of one entity: the points between two times in units, both included.
type span struct {
	entity         Entity
	oldest, newest int64
	id             string // the only one, of one time, that counts; empty for all
	after          string // the row key behind which to read, in the order of the span; empty for all of it
	limit          int    // 0 for none
	reverse        bool
	long           bool                   // bounded by the timeout of scans
	class          *int                   // the only one whose payloads count, by its index; nil for all
	room           func(payload int) bool // asked before a payload of that many bytes is decoded; false ends the scan

	raw func(units int64, row bigtable.Row) // in the place of visit: all rows with a payload, not decoded
	// stored, in the place of visit, takes each visible point as it is stored in a column, by its index, or why its payload
	// cannot be decoded.
	stored func(units int64, item *bigtable.ReadItem, column int, err error)
}

// scan calls visit for each visible point in order, until it returns false. The range of keys ends where points expire, so
// a dead history costs nothing; the filter hides what is expired in one class but not in another. Rows of other programs
// among the points are passed over, and made up for where they used up the limit.
func (r *Repository[T]) scan(ctx context.Context, s span, visit func(Point[T], *PointError) bool) error {
	if r.schema.d.Head.Only {
		return r.scanHead(ctx, s, visit)
	}
	h := r.horizon()
	oldest := max(s.oldest, h.Oldest())
	if oldest > s.newest {
		return ctxerr.Of(ctx)
	}
	rng := r.space.Entity(s.entity.path, oldest, s.newest)
	prefix := rng.Start[:len(rng.Start)-rowkey.ReverseLen]
	switch {
	case s.id != "":
		rng.Start = r.key(s.entity, s.newest)
		rng.Limit = rng.Start + "\x00"
	case s.after != "" && s.reverse:
		rng = rng.Before(min(s.after, rng.Limit))
	case s.after != "":
		rng = rng.After(max(s.after, rng.Start))
	}
	ctx, cancel := r.rows.Bound(ctx, s.long)
	defer cancel()
	sc := scanner[T]{repo: r, rng: rng, horizon: h, entity: s.entity, prefix: prefix, limit: s.limit, visit: visit, room: s.room, raw: s.raw, stored: s.stored}
	filter := h.Filter()
	if s.class != nil {
		filter = h.ClassFilter(*s.class)
	}
	read := bt.Scan{Filter: filter, Limit: int64(s.limit), Reverse: s.reverse, Long: s.long}
	for !rng.Empty() {
		read.Rows = bigtable.NewRange(rng.Start, rng.Limit)
		sc.rows = 0
		err := r.rows.Read(ctx, read, sc.row)
		if sc.foreign != nil {
			return sc.foreign
		}
		if err != nil || sc.stopped || s.limit == 0 || sc.rows < read.Limit || sc.points == s.limit {
			return r.store.core.Explain(err)
		}
		read.Limit, sc.makeUp = max(read.Limit, makeUp), true
		if s.reverse {
			rng = rng.Before(sc.last)
		} else {
			rng = rng.After(sc.last)
		}
		sc.rng = rng
	}
	return nil
}

// makeUp is how many rows are asked for at least where those of other programs have used up the limit.
const makeUp = 100

// scanner turns the rows of one entity into points.
type scanner[T any] struct {
	repo    *Repository[T]
	horizon dataset.Visibility
	entity  Entity
	rng     rowkey.Range // that was asked for
	prefix  string       // of the row keys of the entity's points
	limit   int          // of points; 0 for none
	makeUp  bool         // more rows were asked for than points are wanted
	visit   func(Point[T], *PointError) bool
	room    func(payload int) bool // nil for always
	raw     func(units int64, row bigtable.Row)
	stored  func(units int64, item *bigtable.ReadItem, column int, err error)

	rows    int64 // of one request
	points  int
	last    string // row key
	stopped bool   // by visit
	foreign error
}

// row visits the point in a row. A row that is not in the range that was asked for ends the scan before it is decoded.
func (sc *scanner[T]) row(row bigtable.Row) bool {
	sc.last = row.Key()
	sc.rows++
	if sc.last < sc.rng.Start || sc.last >= sc.rng.Limit {
		sc.foreign = fmt.Errorf("%w: dataset %s", ErrForeignRow, sc.repo.schema.d.Name)
		return false
	}
	units, id, ok := sc.repo.space.PointTime(sc.last, sc.prefix)
	if !ok {
		return true
	}
	precision := sc.repo.schema.d.Precision
	item, tag, err := sc.horizon.Payload(row, bigtable.Timestamp(precision.CellMicros(units)))
	if item == nil {
		return true
	}
	if sc.room != nil && !sc.room(len(item.Value)) {
		sc.stopped = true
		return false
	}
	sc.points++
	if sc.raw != nil {
		sc.raw(units, row)
		return !(sc.makeUp && sc.points == sc.limit)
	}
	if sc.stored != nil {
		sc.stored(units, item, sc.repo.schema.d.ColumnOf(item.Column), err)
		return !(sc.makeUp && sc.points == sc.limit)
	}
	p := Point[T]{Entity: sc.entity, Time: precision.Time(units), ID: id}
	if err == nil {
		p.Value, err = sc.repo.schema.decoders[tag](item.Value)
	}
	var bad *PointError
	if err != nil {
		bad = &PointError{Entity: p.Entity, Time: p.Time, ID: id, Err: err}
	}
	sc.stopped = !sc.visit(p, bad)
	return !sc.stopped && !(sc.makeUp && sc.points == sc.limit)
}
