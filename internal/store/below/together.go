package below

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Bounds of one request for the points of several entities.
const (
	mostRanges = 250
	maxRowSet  = 500_000 // bytes of the keys of its ranges, below the 512 KB that the service takes
	rangeBytes = 16      // that a range takes in a request beside its keys
)

// budget bounds what requests hold in memory together.
type budget struct {
	rows, bytes       atomic.Int64
	maxRows, maxBytes int64
}

// spend takes a row into account, and reports whether more may come.
func (b *budget) spend(bytes int) bool {
	return b.rows.Add(1) < b.maxRows && b.bytes.Add(int64(bytes)) < b.maxBytes
}

// together is the part of a read that gathers points of several entities in shared requests.
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
	whole bool          // hits are all
}

// size returns the bytes that the member's range takes in a request.
func (m *member) size() int { return len(m.rng.Start) + len(m.rng.Limit) + rangeBytes }

// read gathers the points of entities in as many requests as their ranges need, at most width of them at a time. It returns the
// entities in the order of paths. Those that the budget did not suffice for are not whole.
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
	parts := split(sorted)
	if t.Options.Hedge.On() {
		t.Rows.Hedges.Earn(len(parts), t.Options.Hedge.MaxRatio)
	}
	errs := make([]error, len(parts))
	points.AtOnce(width, len(parts), func(i int) { errs[i] = t.request(ctx, parts[i]) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// split cuts members into those of one request each.
func split(members []*member) (parts [][]*member) {
	begin, size := 0, 0
	for i, m := range members {
		n := m.size()
		if i > begin && (size+n > maxRowSet || i-begin == mostRanges) {
			parts, begin, size = append(parts, members[begin:i]), i, 0
		}
		size += n
	}
	if begin < len(members) {
		parts = append(parts, members[begin:])
	}
	return parts
}

// request reads the points of members, which are in the order of their keys.
func (t *together) request(ctx context.Context, part []*member) error {
	set := make(bigtable.RowRangeList, len(part))
	for i, m := range part {
		set[i] = bigtable.NewRange(m.rng.Start, m.rng.Limit)
	}
	read := bt.Scan{Rows: set, Filter: t.visible.Filter(), Limit: t.budget.maxRows, Reverse: t.reverse, Long: true}
	got, err := points.Once(ctx, t.Rows.Table, t.Options.Hedge, func(ctx context.Context) (*gatherer, error) {
		g := &gatherer{together: t, part: part, hits: make([][]dataset.Hit, len(part)), more: true}
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

// gatherer takes the rows of one request.
type gatherer struct {
	*together
	part    []*member
	hits    [][]dataset.Hit
	at      int // the member of the last row
	more    bool
	foreign bool
}

// row takes in a row, and reports whether the request goes on. A row outside of the range of the last row and those behind it
// was not asked for.
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
	size := 0
	if units, id, ok := g.Rows.Space.PointTime(key, m.rng.Start[:len(m.rng.Start)-rowkey.ReverseLen]); ok {
		item, tag, err := g.visible.Payload(row, bigtable.Timestamp(g.Rows.D.Precision.CellMicros(units)))
		if item != nil {
			size = len(item.Value)
			g.hits[g.at] = append(g.hits[g.at], dataset.Hit{Path: m.path, Units: units, ID: id, Payload: item.Value, Tag: tag, Err: err})
		}
	}
	g.more = g.budget.spend(size)
	return g.more
}

// heads gathers the points of a dataset that keeps heads only. The budget does not end it: all heads
// are in memory at once, as a request returns whole heads and visits none before its end.
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
