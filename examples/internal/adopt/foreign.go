package adopt

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Foreign reads a tenant's points in place, from the foreign table. Its reads return what those of a repository of the mapping's
// dataset return after the copy, except expired points, which it does not hide. Packages window and chart take it instead of a
// repository.
//
// Reads need a row key in which rows are stored by entity and then by time, with times of one width; otherwise they fail with ErrKeyOrder.
// Something unfit in the read range is yielded as an *Unfit, and the sequence continues; what the mapping skips is left out.
//
// It is safe for concurrent use. Calls on the zero Foreign and nil fail with ErrInvalid.
type Foreign[T any] struct {
	s      *Source
	id     tenant.ID
	decode func([]byte) (T, error)
}

// NewForeign returns a reader for a tenant. The codec reads the payloads of the mapping: codec.Records for one with fields, and for one
// with a value the codec of its encoding, such as codec.JSON of any type. It does no I/O. The error matches codec.ErrUnknownTag for a codec
// of other payloads.
func NewForeign[T any](s *Source, id tenant.ID, c codec.Codec[T]) (*Foreign[T], error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !s.m.tenant.IsZero() && id != s.m.tenant {
		return nil, invalid.New(ErrInvalid, "tenant", invalid.Quote(id.String()), s.m.tenant.String()+", as in the mapping")
	}
	if id.IsZero() {
		return nil, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	if c == nil {
		return nil, invalid.New(ErrInvalid, "codec", "nil", "a codec that reads the tag "+s.m.tag)
	}
	decode, err := codec.Decoder(c, s.m.tag)
	if err != nil {
		return nil, err
	}
	return &Foreign[T]{s: s, id: id, decode: decode}, nil
}

// admit returns why no read can work.
func (f *Foreign[T]) admit(ctx context.Context) error {
	if f == nil || f.s == nil {
		return invalid.New(ErrInvalid, "reader", "the zero value", "a reader from NewForeign")
	}
	if id, ok := tenant.FromContext(ctx); ok && id != f.id {
		return tsdb.ErrTenantMismatch
	}
	if why := f.s.m.keyOrder(); why != "" {
		return fmt.Errorf("%w: %s", ErrKeyOrder, why)
	}
	return ctxerr.Of(ctx)
}

// Latest returns the newest point of an entity. The error matches tsdb.ErrNotFound if there is none. It costs one request for one row; in
// a table whose times ascend, that is a reverse scan.
func (f *Foreign[T]) Latest(ctx context.Context, e tsdb.Entity) (tsdb.Point[T], error) {
	for p, err := range f.points(ctx, e, tsdb.AllTime(), false, true) {
		return p, err
	}
	return tsdb.Point[T]{}, fmt.Errorf("%w: entity %s", tsdb.ErrNotFound, e)
}

// Range returns an iterator over the points of an entity in an interval, newest first, or with tsdb.OldestFirst. A point whose payload
// does not decode is yielded with a *tsdb.PointError. Other options than an order have no effect, and a tsdb.Limit is refused. It
// costs one request, and in a table with times in cells the memory of the entity's row in the interval.
func (f *Foreign[T]) Range(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[T], error] {
	order, _, err := inside.Of(in).ReadOptions(opts)
	if err != nil {
		return failed[T](err)
	}
	return f.points(ctx, e, in, order == tsdb.OldestFirst, false)
}

// Under is Range for all entities below a prefix, entity by entity in the order of the foreign keys. It costs two requests for each entity.
func (f *Foreign[T]) Under(ctx context.Context, below tsdb.Prefix, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[T], error] {
	order, _, err := inside.Of(in).ReadOptions(opts)
	if err != nil {
		return failed[T](err)
	}
	return f.each(ctx, below, func(e tsdb.Entity) iter.Seq2[tsdb.Point[T], error] {
		return f.points(ctx, e, in, order == tsdb.OldestFirst, false)
	})
}

// LatestUnder returns an iterator over the newest point of each entity below a prefix. It costs two requests for each entity.
func (f *Foreign[T]) LatestUnder(ctx context.Context, below tsdb.Prefix) iter.Seq2[tsdb.Point[T], error] {
	return f.each(ctx, below, func(e tsdb.Entity) iter.Seq2[tsdb.Point[T], error] {
		return f.points(ctx, e, tsdb.AllTime(), false, true)
	})
}

func failed[T any](err error) iter.Seq2[tsdb.Point[T], error] {
	return func(yield func(tsdb.Point[T], error) bool) { yield(tsdb.Point[T]{}, err) }
}

// each yields what read returns for each entity below a prefix.
func (f *Foreign[T]) each(ctx context.Context, below tsdb.Prefix, read func(tsdb.Entity) iter.Seq2[tsdb.Point[T], error]) iter.Seq2[tsdb.Point[T], error] {
	return func(yield func(tsdb.Point[T], error) bool) {
		if err := f.admit(ctx); err != nil {
			yield(tsdb.Point[T]{}, err)
			return
		}
		values := below.Parts()
		if len(values) >= len(f.s.m.dataset.Key) || below == (tsdb.Prefix{}) {
			yield(tsdb.Point[T]{}, invalid.New(ErrInvalid, "prefix", invalid.Quote(below.String()), fmt.Sprintf("fewer than the %d key fields, or tsdb.AllEntities", len(f.s.m.dataset.Key))))
			return
		}
		start, ok := f.s.m.prefix(f.id, values)
		limit := successor(start)
		for ok {
			rows, err := f.first(ctx, start, limit)
			if err != nil || len(rows) == 0 {
				if err != nil {
					yield(tsdb.Point[T]{}, err)
				}
				return
			}
			key := rows[0].Key()
			at, bad := f.s.m.split(key, f.s.m.precision)
			if bad != nil { // no point: the next row
				start = key + "\x00"
				if !f.s.m.skips(bad.Reason) && !yield(tsdb.Point[T]{}, bad) {
					return
				}
				continue
			}
			e := inside.Of(tsdb.Entity{}).At(at.path)
			for p, err := range read(e) {
				if !yield(p, err) {
					return
				}
			}
			prefix, _ := f.s.m.prefix(f.id, e.Parts())
			if start = successor(prefix); !f.s.m.inKey { // the prefix is the whole key
				start = key + "\x00"
			}
			ok = start != "" && (limit == "" || start < limit)
		}
	}
}

// first returns the first row from a key on, without its values.
func (f *Foreign[T]) first(ctx context.Context, start, limit string) (rows []*bt.Row, err error) {
	rng := bigtable.InfiniteRange(start)
	if limit != "" {
		rng = bigtable.NewRange(start, limit)
	}
	err = f.s.t.Read(ctx, bt.Scan{Rows: rng, Filter: keysOnly(), Limit: 1}, func(row *bt.Row) bool {
		rows = append(rows, row.Clone())
		return false
	})
	return rows, err
}

// points yields the points of an entity in an interval, or only the newest.
func (f *Foreign[T]) points(ctx context.Context, e tsdb.Entity, in tsdb.Interval, oldestFirst, newest bool) iter.Seq2[tsdb.Point[T], error] {
	return func(yield func(tsdb.Point[T], error) bool) {
		err := f.admit(ctx)
		if err == nil {
			err = in.Check()
		}
		if n := len(f.keyOf(e)); err == nil && n != len(f.s.m.dataset.Key) {
			err = invalid.New(ErrInvalid, "entity", invalid.Quote(e.String()), fmt.Sprintf("%d parts, one for each key field", len(f.s.m.dataset.Key)))
		}
		if err != nil {
			yield(tsdb.Point[T]{}, err)
			return
		}
		scan, ok := f.scan(e, in, oldestFirst, newest)
		if !ok {
			return
		}
		r := reading[T]{Foreign: f, entity: e, in: in, yield: yield, oldestFirst: oldestFirst, newest: newest}
		for row, err := range f.s.t.Rows(ctx, scan) {
			if err == nil {
				err = r.row(row)
			}
			if err != nil {
				if !r.over {
					yield(tsdb.Point[T]{}, err)
				}
				return
			}
		}
	}
}

func (f *Foreign[T]) keyOf(e tsdb.Entity) []string {
	if e == (tsdb.Entity{}) {
		return nil
	}
	return e.Parts()
}

// scan returns the read of an entity's rows in an interval. It returns false if there can be none.
func (f *Foreign[T]) scan(e tsdb.Entity, in tsdb.Interval, oldestFirst, latest bool) (bt.Scan, bool) {
	m, p := f.s.m, f.s.m.precision
	oldest, newest := int64(0), p.Max()
	ok := true
	if from, bounded := in.Start(); bounded {
		if oldest, ok = p.AtOrAfter(from); !ok {
			return bt.Scan{}, false
		}
	}
	if to, bounded := in.End(); bounded {
		if newest, ok = p.AtOrBefore(to); !ok {
			return bt.Scan{}, false
		}
	}
	prefix, ok := m.prefix(f.id, e.Parts())
	if !ok || oldest > newest {
		return bt.Scan{}, false
	}
	if !m.inKey {
		return bt.Scan{Rows: bigtable.RowList{prefix}, Filter: f.cells(oldest, newest, p, latest && !m.skipsPoints()), Long: true}, true
	}
	least, greatest, ok := m.time.bounds(oldest, newest, p)
	if !ok {
		return bt.Scan{}, false
	}
	rng := bigtable.InfiniteRange(prefix + least)
	if limit := successor(prefix + greatest); limit != "" {
		rng = bigtable.NewRange(prefix+least, limit)
	}
	scan := bt.Scan{Rows: rng, Filter: bigtable.LatestNFilter(1), Reverse: (m.time.max > 0) == oldestFirst, Long: true}
	if latest && !m.skipsPoints() {
		scan.Limit = 1
	}
	return scan, true
}

// skipsPoints reports whether the mapping skips whole points, so that the newest row or cells may be no point.
func (m *Mapping) skipsPoints() bool {
	return slices.ContainsFunc(m.skip, func(reason string) bool { return reason != reasonColumns && reason != reasonVersions })
}

// cells returns the filter of times in cells; with newest, only of the newest of each column.
func (f *Foreign[T]) cells(oldest, newest int64, p rowkey.Precision, latest bool) bigtable.Filter {
	var from, to time.Time
	if oldest > 0 {
		from = p.Time(oldest).Truncate(time.Millisecond)
	}
	if newest < p.Max() {
		to = p.Time(newest).Truncate(time.Millisecond).Add(time.Millisecond)
	}
	filter := bigtable.TimestampRangeFilter(from, to)
	if latest {
		filter = bigtable.ChainFilters(filter, bigtable.LatestNFilter(1))
	}
	return filter
}

// reading is one read of an entity.
type reading[T any] struct {
	*Foreign[T]
	entity      tsdb.Entity
	in          tsdb.Interval
	yield       func(tsdb.Point[T], error) bool
	oldestFirst bool
	newest      bool // only the newest point
	over        bool
}

// row yields what a row holds: points, and what is unfit.
func (r *reading[T]) row(row *bt.Row) error {
	type item struct {
		point
		unfit *Unfit
	}
	var list []item // by ascending time
	err := r.s.m.points(row, r.s.m.precision, func(p point) error {
		if t := r.s.m.precision.Time(p.units); r.in.Contains(t) && inside.Of(tsdb.Entity{}).At(p.path) == r.entity {
			list = append(list, item{point: p})
		}
		return nil
	}, func(u *Unfit) error {
		if u.Reason != reasonColumns && u.Reason != reasonVersions && !r.s.m.skips(u.Reason) {
			list = append(list, item{unfit: u})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.newest && len(list) > 0 {
		list = list[len(list)-1:] // older cells of other columns are not the whole of their points
	}
	if !r.oldestFirst {
		slices.Reverse(list)
	}
	for _, p := range list {
		if err := r.point(p.point, p.unfit); err != nil {
			return err
		}
		if r.newest {
			r.over = true
			return errEnough
		}
	}
	return nil
}

// point yields a point, or what is unfit in place of one.
func (r *reading[T]) point(p point, u *Unfit) error {
	if u != nil {
		return r.give(tsdb.Point[T]{}, u)
	}
	out := tsdb.Point[T]{Entity: r.entity, Time: r.s.m.precision.Time(p.units), ID: p.id}
	var err error
	if out.Value, err = r.decode(p.payload); err != nil {
		err = &tsdb.PointError{Entity: out.Entity, Time: out.Time, Err: err}
	}
	return r.give(out, err)
}

func (r *reading[T]) give(p tsdb.Point[T], err error) error {
	if r.yield(p, err) {
		return nil
	}
	r.over = true
	return errEnough
}
