package rollup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// markPage is how many rows of marks one request reads.
	markPage = 500
	// maxAhead is how far in the future a mark may be before it counts as made by a wrong clock.
	maxAhead = 10 * time.Minute
)

// sweep processes the marks of one rollup of one tenant.
type sweep[T any] struct {
	level   *level[T]
	coarser []*level[T] // computed from this one
	worker  *Worker
	pass    *pass
}

// all reports whether there were any marks.
func (s *sweep[T]) all(ctx context.Context) (marks bool, err error) {
	for _, rng := range s.level.at.Marks.Under("") {
		for !rng.Empty() {
			if err := s.level.in.Allow(ctx); err != nil { // the tenant may have been erased meanwhile
				return marks, err
			}
			page, next, err := s.page(ctx, rng)
			if err != nil {
				return marks, err
			}
			marks = marks || len(page) > 0
			if err := s.settle(ctx, page); err != nil {
				return marks, err
			}
			rng = next
		}
	}
	return marks, nil
}

// page reads the first rows of marks in a range, and returns the rest of the range.
func (s *sweep[T]) page(ctx context.Context, rng rowkey.Range) (page []marked, next rowkey.Range, err error) {
	next, err = s.level.page(ctx, rng, bigtable.LatestNFilter(1), markPage, func(row *bt.Row) {
		if m, ok := s.level.parseMarks(row); ok {
			page = append(page, m)
		}
	})
	return page, next, err
}

// settle processes the due marks of a page, several rows at once. It then marks the coarser rollups, and last removes
// the page's marks.
func (s *sweep[T]) settle(ctx context.Context, page []marked) error {
	now, err := s.level.in.Service.Confirmed(ctx)
	if err != nil {
		return err
	}
	done := make([]settled, len(page))
	var workers sync.WaitGroup
	for i := range page {
		s.pass.rows <- struct{}{}
		workers.Go(func() {
			defer func() { <-s.pass.rows }()
			done[i] = s.row(ctx, page[i], now)
		})
	}
	workers.Wait()
	if err := s.level.in.Allow(ctx); err != nil { // erased while its rows were computed
		return err
	}
	told := s.bulk(ctx, s.tell(page, done))
	if now, err = s.level.in.Service.Confirmed(ctx); err != nil {
		return err // the computed buckets may lack points that looked expired
	}
	young := s.young(now)
	var clear []bt.Entry
	for i := range page {
		d := &done[i]
		s.pass.count(func(p *Pass) {
			p.Buckets += d.changed
			p.Waiting += len(page[i].slots) - len(d.slots)
		})
		// If the clock was set back, a processed mark is young again and may hide the marks of later writes.
		again := slices.ContainsFunc(d.slots, func(slot slot) bool { return slot.at > young })
		if len(d.slots) > 0 && told && !again {
			s.pass.count(func(p *Pass) { p.Marks += len(d.slots) })
		} else if len(d.slots) > 0 {
			d.waits, d.slots = earlier(d.waits, d.due), nil
		}
		if len(d.slots)+len(d.ahead) > 0 {
			clear = append(clear, s.clearing(page[i], d.slots, d.ahead, now))
		}
		s.pass.waits(s.level.in.D.Name, s.level.name, d.waits)
	}
	s.bulk(ctx, clear)
	return ctxerr.Of(ctx)
}

// young returns the time before which the write of each mark has ended.
func (s *sweep[T]) young(now time.Time) bigtable.Timestamp {
	return bigtable.Time(now.Add(-s.worker.opts.Settle))
}

// settled is the result of one row of marks.
type settled struct {
	slots   []slot  // processed marks
	ahead   []slot  // marks made by a clock that was ahead
	due     int64   // since when the oldest processed mark was due, in milliseconds; 0 for none
	waits   int64   // likewise of marks of closed buckets that stay
	starts  []int64 // of the buckets in slots
	changed int     // how many of these buckets differed from the stored ones
}

// row replaces the due buckets of a row of marks. If they can no longer be computed, row stops older computations
// from writing them.
func (s *sweep[T]) row(ctx context.Context, m marked, now time.Time) (done settled) {
	young := s.young(now)
	var due []span
	latest := bigtable.Time(now.Add(maxAhead))
	for _, slot := range m.slots {
		if slot.at > max(latest, bigtable.Timestamp(slot.to*1000)) { // the mark of a slot that has not ended has the slot's end as its time
			done.ahead = append(done.ahead, slot)
			continue
		}
		since := slot.at.Time().UnixMilli()
		if starts := s.level.starts([]span{slot.span}, span{0, maxMillis}); len(starts) > 0 {
			since = max(since, s.level.endOf(starts[len(starts)-1])+s.level.entry.Late)
		}
		switch {
		case since > now.UnixMilli():
			continue // still open
		case slot.at > young:
			done.waits = earlier(done.waits, since)
			continue
		}
		done.due = earlier(done.due, since)
		due = append(due, slot.span)
		done.slots = append(done.slots, slot)
	}
	done.starts = s.level.starts(due, span{0, maxMillis})
	for starts := done.starts; len(starts) > 0; {
		n := 1
		for n < len(starts) && s.level.rowOf(starts[n]) == s.level.rowOf(starts[0]) {
			n++
		}
		changed, err := s.level.replaceAll(ctx, m.path, starts[:n])
		done.changed += len(changed)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, tsdb.ErrErased) { // the erasure takes its marks away
				s.pass.fail(fmt.Errorf("rollup %s of tenant %s: %w", s.level.name, s.level.repo.Tenant(), err))
			}
			return settled{changed: done.changed, waits: earlier(done.waits, done.due)}
		}
		starts = starts[n:]
	}
	return done
}

// tell returns the entries that mark the coarser rollups. It marks all due buckets, changed or not: an earlier worker
// may have changed them and stopped before it marked the coarser rollups. It also marks buckets that can no longer be
// computed.
func (s *sweep[T]) tell(page []marked, done []settled) (entries []bt.Entry) {
	if len(s.coarser) == 0 {
		return nil
	}
	starts := map[string][]int64{} // one entry has all marks of a row
	for i := range page {
		starts[page[i].path] = append(starts[page[i].path], done[i].starts...)
	}
	for path, starts := range starts {
		if s.level.in.AdmitEntity(path) != nil {
			continue // erased since it was computed
		}
		for _, c := range s.coarser {
			entries = append(entries, c.marking(path, starts)...)
		}
	}
	return entries
}

// marking returns the entries that mark the slots of times.
func (l *level[T]) marking(path string, times []int64) (entries []bt.Entry) {
	now := l.in.Clock().UnixMilli()
	rows := map[int64]int{}
	for _, ms := range times {
		row, slot := l.entry.Slot(ms)
		i, ok := rows[row]
		if !ok {
			var buf [256]byte
			i = len(entries)
			rows[row] = i
			entries = append(entries, bt.Entry{Key: string(l.at.Marks.AppendPoint(buf[:0], path, row)), Mutation: bigtable.NewMutation()})
		}
		at := bigtable.Timestamp(l.entry.MarkStamp(row, slot, now) * 1000)
		entries[i].Mutation.Set(dataset.MarkFamily, strconv.FormatInt(slot, 10), at, nil)
		entries[i].Mutations++
	}
	return entries
}

// clearing returns the entry that removes marks with the timestamps that were read. It moves marks of a clock that
// was ahead to the present: their writes, which may still run, have ended when the moved marks are old enough.
func (s *sweep[T]) clearing(m marked, slots, ahead []slot, now time.Time) bt.Entry {
	var buf [256]byte
	e := bt.Entry{Key: string(s.level.at.Marks.AppendPoint(buf[:0], m.path, m.row)), Mutation: bigtable.NewMutation(), Mutations: len(slots) + 2*len(ahead)}
	at := bigtable.Time(s.level.in.Clock()).TruncateToMilliseconds()
	for _, slot := range ahead {
		e.Mutation.DeleteTimestampRange(dataset.MarkFamily, slot.column, bigtable.Time(now.Add(maxAhead)).TruncateToMilliseconds(), 0)
		e.Mutation.Set(dataset.MarkFamily, slot.column, at, nil)
	}
	for _, slot := range slots {
		e.Mutation.DeleteTimestampRange(dataset.MarkFamily, slot.column, 0, slot.at+1000)
	}
	return e
}

// bulk writes entries, and reports whether all are stored.
func (s *sweep[T]) bulk(ctx context.Context, entries []bt.Entry) bool {
	if len(entries) == 0 {
		return true
	}
	outs := s.level.table.Bulk(ctx, entries)
	i := slices.IndexFunc(outs, func(o bt.Outcome) bool { return o.State != bt.Stored })
	if i >= 0 && ctx.Err() == nil {
		s.pass.fail(fmt.Errorf("rollup %s of tenant %s: marks: %w", s.level.name, s.level.repo.Tenant(), s.level.in.Explain(outs[i].Err)))
	}
	return i < 0
}
