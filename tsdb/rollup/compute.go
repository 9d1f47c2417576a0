package rollup

import (
	"context"
	"errors"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// compute calls visit with the buckets of an entity that are not empty and start within s, oldest first. It computes
// them from the points or from the finer rollup. If s ends within a bucket, compute includes the whole bucket.
func (l *level[T]) compute(ctx context.Context, path string, s span, visit func(bucket) error) error {
	s = span{l.startOf(s.from), l.endOf(s.to - 1)}
	current := bucket{start: -1}
	end := int64(-1)
	// turn makes the bucket that contains ms the current one.
	turn := func(ms int64) error {
		if ms < end {
			return nil
		}
		if !current.empty() {
			if err := visit(current); err != nil {
				return err
			}
		}
		current = l.fresh(l.startOf(ms))
		end = l.endOf(ms)
		return nil
	}
	if err := l.feed(ctx, path, s, turn, &current); err != nil {
		return err
	}
	if current.empty() {
		return nil
	}
	return visit(current)
}

// feed adds the source's data in s to the buckets. It calls turn before each value.
func (l *level[T]) feed(ctx context.Context, path string, s span, turn func(int64) error, current *bucket) error {
	if l.source != nil {
		return l.source.read(ctx, path, s, false, func(b bucket) (bool, error) {
			err := turn(b.start)
			l.merge(current, b)
			return true, err
		})
	}
	in := tsdb.Between(time.UnixMilli(s.from), time.UnixMilli(s.to))
	numbers := make([]rollupadd.Number, len(l.measures))
	var stored payload
	for p, err := range l.tapped(&stored).Range(ctx, entityAt(path), in, tsdb.OldestFirst) {
		bad, undecoded := errors.AsType[*tsdb.PointError](err)
		switch {
		case undecoded:
			p.Time = bad.Time
		case err != nil:
			return err
		}
		if err := turn(p.Time.UnixMilli()); err != nil {
			return err
		}
		if !l.take(numbers, &stored, p.Value, !undecoded) {
			current.bad++
			continue
		}
		l.Rollup.add(current, p.Time, numbers)
	}
	return nil
}

// maxRun is how many buckets one run computes. It bounds memory.
const maxRun = 512

// read calls visit with the buckets of an entity that are not empty and start within s, in order, until visit returns
// false. It computes buckets that are marked, and reads the others from the table.
func (l *level[T]) read(ctx context.Context, path string, s span, newest bool, visit func(bucket) (bool, error)) error {
	now := l.in.Clock()
	s = span{max(s.from, l.oldest(now)), min(s.to, maxMillis)}
	if s.empty() {
		return ctxerr.Of(ctx)
	}
	for !s.empty() {
		m := merging[T]{level: l, path: path, newest: newest, visit: visit}
		part := s
		if l.opts.Mode == Derived {
			if l.lacks && l.source == nil {
				m.changes = map[int64]int64{}
			}
			var err error
			if m.dirty, part, err = l.dirty(ctx, path, s, newest, now, m.changes); err != nil {
				return err
			}
		}
		if err := m.read(ctx, part); err != nil || m.done {
			return err
		}
		if newest {
			s.to = part.from
		} else {
			s.from = part.to
		}
	}
	return nil
}

// read visits the stored and the computed buckets in s.
func (m *merging[T]) read(ctx context.Context, s span) error {
	l := m.level
	filter := bigtable.ChainFilters(l.layout.cells, bigtable.TimestampRangeFilterMicros(bigtable.Timestamp(s.from*1000), bigtable.Timestamp(s.to*1000)))
	err := l.scan(ctx, l.rowsOf(l.at.Rows, m.path, s), filter, 0, !m.newest, func(row *bt.Row) (bool, error) {
		if of, _, ok := l.at.Rows.Split(row.Key()); !ok || of != m.path {
			return true, nil
		}
		buckets, err := l.layout.stored(row)
		if err == nil {
			err = l.layout.decode(row.Key(), buckets)
		}
		if err != nil {
			return false, err
		}
		if m.newest {
			slices.Reverse(buckets)
		}
		for _, b := range buckets {
			if err := m.take(ctx, b); err != nil || m.done {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil || m.done {
		return err
	}
	return m.upTo(ctx, nil)
}

// merging merges computed buckets into the sequence of stored ones.
type merging[T any] struct {
	level  *level[T]
	path   string
	newest bool
	dirty  []int64 // starts of the buckets to compute, in order
	ready  []bucket
	until  int // of dirty, what ready holds
	// Of buckets that cannot be computed: when they changed, by their starts, and what is stored of the next one.
	changes map[int64]int64
	stored  *bucket
	visit   func(bucket) (bool, error)
	done    bool
}

// before reports whether a comes before b.
func (m *merging[T]) before(a, b int64) bool {
	if m.newest {
		return a > b
	}
	return a < b
}

// take visits the computed buckets before b, and then b, unless b is itself computed.
func (m *merging[T]) take(ctx context.Context, b bucket) error {
	if err := m.upTo(ctx, &b.start); err != nil || m.done {
		return err
	}
	if len(m.dirty) > 0 && m.dirty[0] == b.start {
		if m.changes != nil {
			stored := b
			m.stored = &stored
		}
		return nil
	}
	return m.show(b)
}

func (m *merging[T]) show(b bucket) error {
	more, err := m.visit(b)
	m.done = m.done || !more
	return err
}

// upTo visits the computed buckets before limit, or all if limit is nil.
func (m *merging[T]) upTo(ctx context.Context, limit *int64) error {
	for len(m.dirty) > 0 && (limit == nil || m.before(m.dirty[0], *limit)) {
		start := m.dirty[0]
		if m.until == 0 {
			if err := m.run(ctx); err != nil {
				return err
			}
		}
		m.dirty = m.dirty[1:]
		m.until--
		if len(m.ready) > 0 && m.ready[0].start == start {
			b := m.ready[0]
			m.ready = m.ready[1:]
			if b.changed != 0 && m.stored != nil && m.stored.start == start {
				b.stored = m.stored
			}
			if err := m.show(b); err != nil || m.done {
				return err
			}
		}
	}
	return nil
}

// run computes the next buckets, as many as are adjacent. It stops at a gap, because reading the points in a long gap
// would cost more than several reads.
func (m *merging[T]) run(ctx context.Context) error {
	n := 1
	for n < len(m.dirty) && n < maxRun && m.adjacent(m.dirty[n-1], m.dirty[n]) {
		n++
	}
	first, last := m.dirty[0], m.dirty[n-1]
	if m.newest {
		first, last = last, first
	}
	m.until, m.ready = n, m.ready[:0]
	if m.changes != nil && m.level.blind {
		for _, start := range m.dirty[:n] {
			b := m.level.fresh(start)
			b.changed, b.blind = m.changes[start], true
			m.ready = append(m.ready, b)
		}
		return nil
	}
	err := m.level.compute(ctx, m.path, span{first, last + 1}, func(b bucket) error {
		if m.changes != nil {
			b.changed = m.changes[b.start]
		}
		m.ready = append(m.ready, b)
		return nil
	})
	if m.newest {
		slices.Reverse(m.ready)
	}
	return err
}

func (m *merging[T]) adjacent(a, b int64) bool {
	if m.newest {
		a, b = b, a
	}
	return m.level.endOf(a) == b
}
