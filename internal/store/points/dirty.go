package points

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// A write or a deletion of a point sets a dirty mark in each rollup that is derived from points, for the point's time
// slot. A worker recomputes that slot. The mark has the time of the attempt: when the longest time of a request has
// passed, the point is stored or the write has failed. A mark without a point is harmless. A point is reported as
// stored only with its marks.

// dirtyMarks collects the dirty marks of points that are written or deleted together, by row of marks.
type dirtyMarks struct {
	now   func() time.Time
	rows  []*dirtyRow
	byKey map[string]int32
	last  [dataset.MaxRollups]int32 // by rollup, one plus the index of the row that was used last
}

// dirtyRow is a row of dirty marks of one entity in one rollup.
type dirtyRow struct {
	now   func() time.Time
	of    *dataset.Rollup
	key   string
	point string // the key of a point of the entity
	start int64
	slots []int32 // in the order of the points
	users int     // number of points that are not in the batch yet
	entry int     // its index in the batch
}

// add adds the marks of a point, by the key of its row and the timestamp of its cell. It appends the indexes of the
// marks' rows to dst.
func (m *dirtyMarks) add(dst []int32, d *dataset.Dataset, key string, cell bigtable.Timestamp) []int32 {
	for i := range d.Rollups {
		u := &d.Rollups[i]
		if u.Mark == "" {
			continue
		}
		start, slot := u.Slot(int64(cell) / 1000)
		n := m.row(i, u, key, start, d.Identity)
		if n < 0 {
			continue
		}
		row := m.rows[n]
		row.users++
		if k := len(row.slots); k == 0 || row.slots[k-1] != int32(slot) {
			row.slots = append(row.slots, int32(slot))
		}
		dst = append(dst, n)
	}
	return dst
}

// row returns the index of the row of marks that starts at a time, for the entity of a point. Points mostly come in the
// order of their rows, so it is mostly the row that was used last.
func (m *dirtyMarks) row(rollup int, u *dataset.Rollup, point string, start int64, identity bool) int32 {
	if n := m.last[rollup] - 1; n >= 0 {
		if r := m.rows[n]; r.start == start && rowkey.SameEntity(r.point, point, identity) {
			return n
		}
	}
	var buf [256]byte
	key, ok := rowkey.AppendSibling(buf[:0], point, u.Mark, start, identity)
	if !ok {
		return -1
	}
	n, ok := m.byKey[string(key)]
	if !ok {
		r := &dirtyRow{now: m.now, of: u, key: string(key), point: point, start: start}
		if m.byKey == nil {
			m.byKey = make(map[string]int32)
		}
		n = int32(len(m.rows))
		m.byKey[r.key] = n
		m.rows = append(m.rows, r)
	}
	m.last[rollup] = n + 1
	return n
}

// markBytes is the approximate size of a mark in a request, without its row's key.
const markBytes = 32

// bulk returns the row as an entry of a bulk request. All its points must have been added.
func (r *dirtyRow) bulk() bt.Entry {
	slices.Sort(r.slots)
	r.slots = slices.Compact(r.slots)
	return bt.Entry{Key: r.key, Stamped: r, Mutations: len(r.slots), Bytes: markBytes * len(r.slots)}
}

// Mutation implements bt.Stamped.
func (r *dirtyRow) Mutation() *bigtable.Mutation {
	now := r.now().UnixMilli()
	m := bigtable.NewMutation()
	for _, slot := range r.slots {
		at := bigtable.Timestamp(r.of.MarkStamp(r.start, int64(slot), now) * 1000)
		m.Set(dataset.MarkFamily, strconv.Itoa(int(slot)), at, nil)
	}
	return m
}

// withMark combines the outcome of a write's rows with that of a mark: a write is stored only with its marks.
func withMark(o, mark bt.Outcome) bt.Outcome {
	o.Attempts = max(o.Attempts, mark.Attempts)
	if o.State == bt.Stored && mark.State != bt.Stored {
		o.State, o.Err = bt.Unknown, markError(mark.Err)
	}
	return o
}

// answerWithMark is withMark for one attempt.
func answerWithMark(a, mark bt.Answer) bt.Answer {
	switch {
	case mark.Err == nil:
		a.Whole = false
		return a
	case a.Err == nil:
		return bt.Answer{Err: markError(mark.Err), MaybeApplied: true, Again: mark.Again}
	}
	a.MaybeApplied = a.MaybeApplied || mark.MaybeApplied
	a.Again = a.Again && mark.Again
	a.Whole = a.Whole && mark.Whole
	return a
}

func markError(err error) error {
	return fmt.Errorf("tsdb: the point's row is changed, the mark for its rollups is not known to be written: %w", err)
}
