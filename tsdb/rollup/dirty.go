package rollup

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// maxDirty is about how many marked buckets a read holds in memory.
const maxDirty = 4096

// dirty returns the starts of an entity's buckets in s that are marked and can be computed, in the order of the read.
// It uses the marks of this rollup and of all rollups that it is derived from. If there are too many, dirty returns
// those in the first part of s, and that part.
//
// If changes is not nil, dirty adds when each bucket changed by its newest mark, in milliseconds.
//
// It reads the marks of the finest rollup first. A worker marks the coarser rollup before it removes the finer marks,
// so a mark that is gone from the finer rollup is found in this one, or its bucket is stored.
func (l *level[T]) dirty(ctx context.Context, path string, s span, newest bool, now time.Time, changes map[int64]int64) (starts []int64, part span, err error) {
	able := span{max(s.from, l.computable(now)), s.to}
	if able.empty() {
		return nil, s, nil
	}
	var chain []*level[T]
	for at := l; at != nil; at = at.source {
		chain = append(chain, at)
	}
	for _, at := range slices.Backward(chain) {
		of, err := l.dirtyBy(ctx, at, path, able, newest, changes)
		if err != nil {
			return nil, s, err
		}
		if n := len(of) - 1; n >= maxDirty {
			if newest {
				able.from = l.endOf(of[n])
				s.from = able.from
			} else {
				able.to = of[n]
				s.to = able.to
			}
			of = of[:n]
		}
		starts = append(starts, of...)
	}
	starts = slices.DeleteFunc(starts, func(start int64) bool { return start < able.from || start >= able.to })
	slices.Sort(starts)
	starts = slices.Compact(starts)
	if newest {
		slices.Reverse(starts)
	}
	return starts, s, nil
}

// dirtyBy returns the starts of buckets in s by the marks of one rollup, up to the row of marks that reaches the
// limit. A bucket that starts in s is read whole, so its marks may be after the end of s.
func (l *level[T]) dirtyBy(ctx context.Context, at *level[T], path string, s span, newest bool, changes map[int64]int64) (starts []int64, err error) {
	whole := span{s.from, max(s.to, l.endOf(s.to-1))}
	err = at.scan(ctx, at.rowsOf(at.at.Marks, path, whole), bigtable.LatestNFilter(1), 0, !newest, func(row *bt.Row) (bool, error) {
		m, ok := at.parseMarks(row)
		if !ok || m.path != path {
			return true, nil
		}
		slots := make([]span, len(m.slots))
		for i := range m.slots {
			slots[i] = m.slots[i].span
			if changes != nil {
				for _, start := range l.starts(slots[i:i+1], s) {
					changes[start] = max(changes[start], int64(m.slots[i].at)/1000)
				}
			}
		}
		of := l.starts(slots, s)
		if newest {
			slices.Reverse(of)
		}
		if len(of) > 0 && len(starts) > 0 && of[0] == starts[len(starts)-1] { // both rows have marks of it
			of = of[1:]
		}
		starts = append(starts, of...)
		return len(starts) <= maxDirty, nil
	})
	return starts, err
}
