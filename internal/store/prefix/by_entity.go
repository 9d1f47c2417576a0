package prefix

import (
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// Entities with few points share requests; entities with many are read alone, and their points are not held in memory.
const (
	firstGroup = 16 // entities of the first shared request
	groupRows  = 4096
	groupBytes = 8 << 20
)

// ByEntity yields the visible points in the order of entities and, of each entity, in the order of the read, until
// visit returns false. A point is valid only during the visit.
func (r *Read) ByEntity(ctx context.Context, visit func(dataset.Hit) bool) error {
	ctx, done := r.Rows.View.Bound(ctx, true)
	defer done()
	w := walk{Read: r, ctx: ctx, slots: make(skipscan.Slots, r.Options.Width), want: firstGroup, visit: visit}
	if r.Most > 0 {
		w.want = max(1, min(firstGroup, r.Most/firstGroup))
	}
	after := ""
	if r.After != nil {
		after = r.After.Path
		w.alone(r.behind(r.After))
	}
	if !w.ended() {
		err := r.entities(ctx, after, r.Most, w.slots, func(h dataset.Hit) bool {
			w.group = append(w.group, h.Path)
			if len(w.group) >= w.want {
				w.flush()
			}
			return !w.ended()
		})
		if err != nil && w.err == nil {
			return err
		}
	}
	if !w.ended() {
		w.flush()
	}
	return w.err
}

// walk is one run of ByEntity.
type walk struct {
	*Read
	ctx     context.Context
	slots   skipscan.Slots
	visit   func(dataset.Hit) bool
	group   []string // paths of entities that are read next
	want    int      // how many of them are read together
	seen    int      // points that were read
	stopped bool     // by visit
	err     error
}

func (w *walk) ended() bool { return w.stopped || w.err != nil }

// flush reads the group.
func (w *walk) flush() {
	paths, rows := w.group, 0
	w.group = nil
	switch len(paths) {
	case 0:
		return
	case 1:
		rows = w.alone(w.span(paths[0], w.Oldest, w.Newest))
	default:
		rows = w.together(paths)
	}
	if rows == 0 { // a limit must not make a search long
		w.want = min(points.MostRanges, 2*max(firstGroup, len(paths)))
		return
	}
	w.seen += rows
	wanted := groupRows / 2
	if w.Most > 0 {
		wanted = min(wanted, w.Most-w.seen)
	}
	w.want = max(1, min(points.MostRanges, wanted*len(paths)/rows))
}

// alone streams the points of one entity, and returns how many there were.
func (w *walk) alone(s points.Span) (rows int) {
	leave, err := w.slots.Enter(w.ctx, w.Rows.Table)
	if err != nil {
		w.err = err
		return 0
	}
	defer leave()
	err = w.Rows.Scan(w.ctx, s, func(f *points.Found) bool {
		rows++
		w.stopped = !w.visit(f.Hit)
		return !w.stopped
	})
	if !w.stopped {
		w.err = err
	}
	return rows
}

// together reads entities in shared requests, and those alone that have too many points for them.
func (w *walk) together(paths []string) (rows int) {
	leave, err := w.slots.Enter(w.ctx, w.Rows.Table)
	if err != nil {
		w.err = err
		return 0
	}
	t := together{
		Read: w.Read, visible: w.Rows.Visibility(), oldest: w.Oldest, newest: w.Newest,
		budget: &budget{maxRows: groupRows, maxBytes: groupBytes},
	}
	members, err := t.read(w.ctx, paths, 1)
	leave()
	if err != nil {
		w.err = err
		return 0
	}
	for i := range members {
		m := &members[i]
		if !m.whole {
			m.hits = nil
			rows += w.alone(w.span(m.path, w.Oldest, w.Newest))
		}
		if w.Reverse {
			slices.Reverse(m.hits)
		}
		rows += len(m.hits)
		for _, h := range m.hits {
			if w.ctx.Err() != nil && w.err == nil {
				w.err = skipscan.Over(w.ctx, w.Rows.Table)
			}
			if w.ended() {
				return rows
			}
			w.stopped = !w.visit(h)
		}
		if w.ended() {
			return rows
		}
	}
	return rows
}
