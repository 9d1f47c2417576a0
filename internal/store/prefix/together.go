package prefix

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// budget bounds what requests hold in memory together.
type budget struct {
	rows, bytes       atomic.Int64
	maxRows, maxBytes int64
}

// spent is what one request has taken from a budget. Both requests of a hedge share it, so that their rows count once.
type spent struct {
	mu          sync.Mutex
	rows, bytes int64
}

// spend counts the rows and the bytes that one attempt of a request has read so far, and reports whether it may read
// more.
func (b *budget) spend(s *spent, rows, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	moreRows, moreBytes := max(0, rows-s.rows), max(0, bytes-s.bytes)
	s.rows, s.bytes = s.rows+moreRows, s.bytes+moreBytes
	return b.rows.Add(moreRows) < b.maxRows && b.bytes.Add(moreBytes) < b.maxBytes
}

// together gathers the points of several entities in shared requests.
type together struct {
	*Read
	visible        dataset.Visibility
	oldest, newest int64
	budget         *budget
	reverse        bool // the last entity first, and the oldest point of each first
}

// member is an entity of a shared request.
type member struct {
	index int
	path  string
	rng   rowkey.Range
	hits  []dataset.Hit // in the order of the request
	whole bool          // hits are all points of the entity
}

// read gathers the points of entities in as many requests as their ranges need, at most width at a time. It returns the
// entities in the order of paths. Entities that the budget was too small for are not whole.
func (t *together) read(ctx context.Context, paths []string, width int) ([]member, error) {
	all := make([]member, len(paths))
	oldest := max(t.oldest, t.visible.Oldest())
	for i, path := range paths {
		all[i] = member{index: i, path: path}
		if t.Rows.D.Head.Only {
			continue
		}
		if all[i].rng = t.Rows.Space.Entity(path, oldest, t.newest); all[i].rng.Empty() {
			all[i].whole = true
		}
	}
	if t.Rows.D.Head.Only {
		return all, t.heads(ctx, all, paths)
	}
	sorted := slices.SortedFunc(func(yield func(*member) bool) {
		for i := range all {
			if !all[i].whole && !yield(&all[i]) {
				return
			}
		}
	}, func(a, b *member) int { return cmp.Compare(a.rng.Start, b.rng.Start) })
	parts := points.SplitRanges(sorted, func(m *member) rowkey.Range { return m.rng })
	t.Rows.Hedges.Earn(t.Options.Hedge, len(parts))
	errs := make([]error, len(parts))
	bt.AtOnce(width, len(parts), func(i int) { errs[i] = t.request(ctx, parts[i]) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// request reads the points of members, which are in the order of their keys.
func (t *together) request(ctx context.Context, part []*member) error {
	set := make(bigtable.RowRangeList, len(part))
	for i, m := range part {
		set[i] = bigtable.NewRange(m.rng.Start, m.rng.Limit)
	}
	read := bt.Scan{Rows: set, Filter: t.visible.Filter(), Limit: t.budget.maxRows, Reverse: t.reverse, Long: true}
	var counted spent
	got, err := points.Once(ctx, t.Rows.Table, t.Options.Hedge, func(ctx context.Context) (*gatherer, error) {
		g := &gatherer{together: t, part: part, hits: make([][]dataset.Hit, len(part)), more: true, counted: &counted}
		if t.reverse {
			g.at = len(part) - 1
		}
		err := t.Rows.View.Read(ctx, read, g.row)
		if g.foreign {
			return nil, points.ForeignRow(t.Rows.D)
		}
		return g, t.Rows.Explain(err)
	})
	if err != nil {
		return err
	}
	for i, m := range part {
		m.hits, m.whole = got.hits[i], got.more || i != got.at && (i < got.at) != t.reverse
	}
	return nil
}

// gatherer gathers the rows of one attempt of a request.
type gatherer struct {
	*together
	part        []*member
	hits        [][]dataset.Hit
	at          int // the member of the last row
	rows, bytes int64
	counted     *spent
	more        bool
	foreign     bool
}

// row reads a row, and reports whether the request continues. A row before the range of the last row, or between
// ranges, is foreign.
func (g *gatherer) row(row *bt.Row) bool {
	key := row.Key()
	if g.reverse {
		for g.at >= 0 && key < g.part[g.at].rng.Start {
			g.at--
		}
	} else {
		for g.at < len(g.part) && key >= g.part[g.at].rng.Limit {
			g.at++
		}
	}
	g.foreign = g.at < 0 || g.at == len(g.part) || key < g.part[g.at].rng.Start || key >= g.part[g.at].rng.Limit
	if g.foreign {
		return false
	}
	m := g.part[g.at]
	g.rows++
	if units, id, ok := g.Rows.Space.PointTime(key, m.rng.Start[:len(m.rng.Start)-rowkey.ReverseLen]); ok {
		if hit, ok := g.visible.Hit(row, m.path, units, id); ok {
			g.bytes += int64(len(hit.Payload))
			g.hits[g.at] = append(g.hits[g.at], hit)
		}
	}
	g.more = g.budget.spend(g.counted, g.rows, g.bytes)
	return g.more
}

// heads gathers the points of a dataset that keeps heads only. The budget does not bound it: a request returns whole
// heads, and only at its end, so all heads are in memory at once.
func (t *together) heads(ctx context.Context, all []member, paths []string) error {
	errs := make([]error, len(all))
	o := t.Options
	o.Width = min(o.Width, 4) // each request may hold all heads of thousands of entities
	t.Rows.Newest(ctx, paths, t.Rows.D.Head.Points, o, func(i int, hits []dataset.Hit, err error) {
		for _, h := range hits {
			if h.Units >= t.oldest && h.Units <= t.newest {
				all[i].hits = append(all[i].hits, h)
			}
		}
		all[i].whole, errs[i] = true, err
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
