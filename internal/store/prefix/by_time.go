package prefix

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// MaxEntities is the maximum number of entities that ByTime merges. Each slice of time costs a request per
// points.MostRanges entities. A single time with more points than a slice holds costs a request per entity.
const MaxEntities = 10_000

// Bounds of a slice of time: its points are in memory at once. They do not bound a slice of heads.
const (
	sliceRows  = 32_768
	leastRows  = 1024
	sliceBytes = 32 << 20
)

// ByTime yields the visible points in the order of their times and, at one time, in the order of entities, until visit
// returns false. A point is valid only during the visit. It reads slices of time that are short enough to hold their
// points in memory.
func (r *Read) ByTime(ctx context.Context, visit func(dataset.Hit) bool) error {
	ctx, done := r.Rows.View.Bound(ctx, true)
	defer done()
	m := merge{Read: r, ctx: ctx, visit: visit}
	tooMany := false
	m.newest = -1
	err := r.entities(ctx, "", 0, nil, func(h dataset.Hit) bool {
		if tooMany = len(m.all) == MaxEntities; tooMany {
			return false
		}
		m.all = append(m.all, entity{path: h.Path, newest: h.Units})
		m.newest = max(m.newest, h.Units)
		return true
	})
	switch {
	case tooMany:
		return invalid.New(dataset.ErrInvalid, "entities under the prefix", "more than "+strconv.Itoa(MaxEntities)+" with points",
			"up to "+strconv.Itoa(MaxEntities)+"; a longer prefix, or points by entity")
	case err != nil:
		return err
	}
	return m.run()
}

// entity is an entity that is merged.
type entity struct {
	path   string
	newest int64 // of its points, in units
}

// merge is one run of ByTime.
type merge struct {
	*Read
	ctx    context.Context
	all    []entity
	newest int64 // of all points
	visit  func(dataset.Hit) bool
}

// slice is what was read of a span of time.
type slice struct {
	hits   []found
	whole  bool // hits are all points of the span
	seen   int  // the number of entities that were read, at least in part
	oldest int64
	newest int64
}

// found is a point with the number of its entity.
type found struct {
	dataset.Hit
	entity int
}

// run reads slice after slice. The first slice is the whole interval. If that has too many points, those that arrived
// show how dense the points are.
func (m *merge) run() error {
	low, high := max(m.Oldest, m.Rows.Visibility().Oldest()), min(m.Newest, m.newest)
	most := m.Slice
	if most == 0 {
		most = sliceRows
	}
	if m.Most > 0 {
		most = min(most, max(leastRows, 2*int64(m.Most)))
	}
	for length := high - low; low <= high; {
		if m.ctx.Err() != nil {
			return skipscan.Over(m.ctx, m.Rows.Table)
		}
		length = min(length, high-low)
		from, to := high-length, high
		if m.Reverse {
			from, to = low, low+length
		}
		s, err := m.read(from, to, most)
		if err != nil {
			return err
		}
		switch {
		case !s.whole && length > 0:
			length = m.shorter(s, from, to, most)
			continue
		case !s.whole:
			if more, err := m.instant(from); !more {
				return err
			}
		default:
			if more, err := m.take(s.hits); !more {
				return err
			}
		}
		switch { // the last time that can be stored has no next one
		case from == low && to == high:
			return nil
		case m.Reverse:
			low = to + 1
		default:
			high = from - 1
		}
		length = longer(length, int64(len(s.hits)), most)
	}
	return nil
}

// read reads the points between two times.
func (m *merge) read(from, to, most int64) (slice, error) {
	var paths []string
	var index []int
	for i := range m.all {
		if m.all[i].newest >= from {
			paths, index = append(paths, m.all[i].path), append(index, i)
		}
	}
	t := together{
		Read: m.Read, visible: m.Rows.Visibility(), oldest: from, newest: to, budget: &budget{maxRows: most, maxBytes: sliceBytes},
		reverse: m.Reverse,
	}
	members, err := t.read(m.ctx, paths, m.Options.Width)
	if err != nil {
		return slice{}, err
	}
	s := slice{whole: true, oldest: to, newest: from}
	for i := range members {
		s.whole = s.whole && members[i].whole
		if members[i].whole || len(members[i].hits) > 0 {
			s.seen++
		}
		for _, h := range members[i].hits {
			s.hits = append(s.hits, found{h, index[i]})
			s.oldest, s.newest = min(s.oldest, h.Units), max(s.newest, h.Units)
		}
	}
	return s, nil
}

// shorter returns the length of a slice with about half of the points that fit, from the density of those that were
// seen.
func (m *merge) shorter(s slice, from, to, most int64) int64 {
	if len(s.hits) == 0 { // rows of other programs
		return (to - from) / 2
	}
	span := float64(s.newest-s.oldest) + 1
	each := float64(len(s.hits)) / float64(max(1, s.seen)) / span // points of an entity in a unit
	length := float64(most) / 2 / (each * float64(len(m.all)))
	if m.Reverse {
		length += float64(s.oldest - from)
	} else {
		length += float64(to - s.newest)
	}
	if most := float64(to - from); length >= most {
		length = most / 2
	}
	return int64(length)
}

// longer returns the length of the slice behind one with n points.
func longer(length, n, most int64) int64 {
	ratio := 16.0
	if n > 0 {
		ratio = max(0.25, min(4, float64(most)/2/float64(n)))
	}
	units := min((float64(length)+1)*ratio, 1<<62)
	return max(0, int64(units)-1)
}

// take yields the points of a slice in order, and reports whether the caller wants more.
func (m *merge) take(hits []found) (bool, error) {
	slices.SortFunc(hits, func(a, b found) int {
		switch {
		case a.Units != b.Units:
			return m.direction(cmp.Compare(b.Units, a.Units))
		case a.entity != b.entity:
			return a.entity - b.entity
		}
		return m.direction(cmp.Compare(a.ID, b.ID))
	})
	for i := range hits {
		if m.ctx.Err() != nil {
			return false, skipscan.Over(m.ctx, m.Rows.Table)
		}
		if !m.visit(hits[i].Hit) {
			return false, nil
		}
	}
	return true, nil
}

// direction turns an order of newest first into that of the read.
func (m *merge) direction(order int) int {
	if m.Reverse {
		return -order
	}
	return order
}

// instant yields the points of one time at which there are more than fit into memory, entity by entity.
func (m *merge) instant(at int64) (more bool, err error) {
	for i := range m.all {
		if m.all[i].newest < at {
			continue
		}
		stopped := false
		err := m.Rows.Scan(m.ctx, m.span(m.all[i].path, at, at), func(f *points.Found) bool {
			stopped = !m.visit(f.Hit)
			return !stopped
		})
		if stopped || err != nil {
			return false, err
		}
	}
	return true, nil
}
