package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sample is what was read of a table.
type sample struct {
	store    inside.Store
	opts     Options
	kept     kept
	identity map[string]bool // datasets whose points have an ID behind their time
	now      time.Time
	random   *rand.Rand

	parts  []*part
	cells  []observed
	aside  []observed // of the part that was not read to its end
	groups map[rowkey.Group]*rowkey.Group
	cost   Cost
	basis  Basis
	walked int // rows of walks
}

// part is the range between two of the service's samples.
type part struct {
	rowkey.Range
	size     float64  // by the service's offsets
	finished bool     // all of it was read
	raw      float64  // bytes of the cells that were read, each by what it stands for
	pieces   []*piece // once a look was taken
	walked   bool
	exact    float64 // bytes of its groups that were read to their ends on the way to the others
}

// piece is the range of a group in a part, in which looks are taken.
type piece struct {
	rowkey.Range
	last string // the key of its last row, if a look has read it
}

// observed is a cell.
type observed struct {
	*keeping
	group  *rowkey.Group
	part   *part
	age    int64 // in milliseconds; below 0 for one in the future
	newer  int32 // cells of its column
	bytes  float64
	stands float64 // for how many cells of the table, itself included
	perDay float64 // how many cells a day it stands for in the rate of writes
}

const (
	page       = 5000 // rows of a request where a part is read to its end
	leastParts = 5    // that half of the rows have to suffice for, or the other half is for looks at random places
	looks      = 256  // that the rows are enough for
	leastRows  = 12   // of a look
	mostCells  = 10   // a row, on average
	longest    = math.MaxInt64 / int64(time.Millisecond)
)

// errSpent ends the reading when a limit is reached.
var errSpent = errors.New("forecast: the limit of rows, bytes or requests is reached")

// read reads random parts to their ends. If they are too large for that, it looks at random places of them.
func (s *sample) read(ctx context.Context) error {
	if err := s.cut(ctx); err != nil {
		return err
	}
	s.random = rand.New(rand.NewPCG(s.opts.Seed, 0x7469_6465))
	sized, finished := 0.0, 0
	for _, p := range s.parts {
		sized += p.size
	}
	for _, i := range s.random.Perm(len(s.parts)) {
		rows := s.opts.Rows
		if finished < leastParts && sized > 0 {
			rows = max(s.opts.Rows/2, 50)
		}
		if err := s.whole(ctx, s.parts[i], rows); errors.Is(err, errSpent) {
			break
		} else if err != nil {
			return err
		}
		finished++
	}
	s.cost.Read, s.cost.Finished, s.basis = finished, finished, Counted
	if finished == len(s.parts) {
		return nil
	}
	if sized == 0 {
		return invalid.New(tsdb.ErrInvalid, "Rows, Bytes or Requests", fmt.Sprintf("used up after %d rows", s.cost.Rows),
			"enough to read all rows, as the service does not tell how large the table is")
	}
	if finished < leastParts {
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	return s.weigh(sized)
}

// cut cuts the table into parts.
func (s *sample) cut(ctx context.Context) error {
	samples, err := s.store.Whole.BulkReads().Samples(ctx)
	if s.cost.Requests++; err != nil {
		return s.store.Explain(err)
	}
	offsets, whole := map[string]int64{}, int64(0)
	cuts := make([]string, 0, len(samples))
	for _, k := range samples {
		if whole = max(whole, k.Offset); k.Key == "" {
			continue
		}
		offsets[k.Key] = whole
		cuts = append(cuts, k.Key)
	}
	ranges := rowkey.Cuts(cuts)
	for i, rng := range ranges {
		end := whole
		if i+1 < len(ranges) {
			end = offsets[rng.Limit]
		}
		s.parts = append(s.parts, &part{Range: rng, size: float64(max(0, end-offsets[rng.Start]))})
	}
	s.cost.Parts = len(s.parts)
	return nil
}

// whole reads a part to its end. If rows do not suffice, it sets the cells aside, and errSpent is the error.
func (s *sample) whole(ctx context.Context, p *part, rows int) error {
	before := len(s.cells)
	rest := p.Range
	for !p.finished {
		b, err := s.block(ctx, p, rest, min(page, rows-s.cost.Rows))
		if err != nil {
			s.aside, s.cells, p.raw = slices.Clone(s.cells[before:]), s.cells[:before], 0
			return err
		}
		p.finished = b.ended
		rest = rest.After(b.last)
	}
	return nil
}

// look reads some rows at random places of parts that were not read to their ends: of a random entity, from a random
// time on. Parts and entities begin with their newest rows, so reading only their beginnings would hide the old data.
func (s *sample) look(ctx context.Context) error {
	var open []*part
	left := 0.0
	for _, p := range s.parts {
		if !p.finished && p.size > 0 {
			open = append(open, p)
			left += p.size
		}
	}
	for range looks {
		if len(open) == 0 {
			return nil
		}
		at := s.random.Float64() * left
		i := 0
		for ; i < len(open)-1 && at >= open[i].size; i++ {
			at -= open[i].size
		}
		if err := s.lookAt(ctx, open[i]); errors.Is(err, errSpent) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// walk divides a part into the pieces of its groups. A place between the keys of two tenants is nearly always behind
// the first one's rows and before the second one's, so looks in both at once would hide the first. It reads small
// groups to their ends. When the walks of all parts have taken a quarter of the rows, the rest is one piece.
func (s *sample) walk(ctx context.Context, p *part) error {
	p.walked = true
	began := s.cost.Rows
	defer func() { s.walked += s.cost.Rows - began }()
	for rest := p.Range; !rest.Empty(); {
		key, err := s.one(ctx, rest, false)
		if err != nil {
			return err
		}
		if key == "" {
			if len(p.pieces) == 0 {
				p.finished, p.raw = true, p.exact
			}
			return nil
		}
		g, all, ok := rowkey.GroupOf(key)
		if _, known := s.kept[g.Dataset]; !ok || !known || all.Limit >= p.Limit || s.walked+s.cost.Rows-began >= s.opts.Rows/4 {
			p.pieces = append(p.pieces, &piece{Range: rowkey.Range{Start: key, Limit: p.Limit}})
			return nil
		}
		group, before := &part{Range: rowkey.Range{Start: key, Limit: all.Limit}, finished: true}, len(s.cells)
		b, err := s.block(ctx, group, group.Range, max(leastRows, 4*s.opts.Rows/looks))
		if err != nil || !b.ended { // these rows are the newest
			s.cells = s.cells[:before]
			p.pieces = append(p.pieces, &piece{Range: group.Range})
		} else {
			p.exact += group.raw
		}
		if err != nil {
			return err
		}
		rest.Start = all.Limit
	}
	return nil
}

func (s *sample) lookAt(ctx context.Context, whole *part) (err error) {
	if !whole.walked {
		if err := s.walk(ctx, whole); err != nil {
			return err
		}
	}
	if len(whole.pieces) == 0 {
		return nil
	}
	p := whole.pieces[s.random.IntN(len(whole.pieces))]
	place, when := s.random.Float64(), s.random.Float64()
	if p.last == "" { // a range's limit may be far behind its last row
		if p.last, err = s.one(ctx, p.Range, true); err != nil {
			return err
		}
	}
	from := rowkey.Between(p.Start, p.last, place)
	key, err := s.one(ctx, rowkey.Range{Start: from, Limit: p.Limit}, false)
	if err != nil {
		return err
	}
	rows := max(leastRows, s.opts.Rows/looks)
	entity, _, ok := s.entityOf(key)
	if !ok { // a head, or a row of another program
		_, err = s.block(ctx, whole, rowkey.Range{Start: max(key, from), Limit: p.Limit}, rows)
		return err
	}
	entity = entity.Within(p.Range)
	newest, err := s.one(ctx, entity, false)
	if err != nil {
		return err
	}
	oldest, err := s.one(ctx, entity, true)
	if err != nil {
		return err
	}
	before, raw := len(s.cells), whole.raw
	at := rowkey.Between(newest, oldest, when)
	older, err := s.block(ctx, whole, rowkey.Range{Start: at, Limit: entity.Limit}, rows)
	newer := block{}
	if err == nil && older.ended && at > newest {
		newer, err = s.block(ctx, whole, rowkey.Range{Start: entity.Start, Limit: at}, rows-older.rows)
	}
	// The rows stand for all of their entity, by the times that they cover.
	if covered := s.span(older) + s.span(newer); covered > 0 && (!older.ended || !newer.ended && at > newest) {
		stands := max(1, s.span(block{first: newest, last: oldest})/covered)
		whole.raw = raw + (whole.raw-raw)*stands
		for i := before; i < len(s.cells); i++ {
			s.cells[i].stands = stands
		}
	}
	return err
}

// span returns the time between the first and the last row of one entity.
func (s *sample) span(b block) float64 {
	_, from, _ := s.entityOf(b.first)
	_, to, _ := s.entityOf(b.last)
	return to - from
}

// weigh sets for how many cells of the table each cell stands: by the sizes of the parts, and the shares of cells in
// what was read of them.
func (s *sample) weigh(sized float64) error {
	done, size, raw := 0.0, 0.0, 0.0 // of parts that were read; of those to their ends
	for _, p := range s.parts {
		if p.finished {
			size, raw = size+p.size, raw+p.raw
		}
		if p.finished || p.raw > 0 {
			done += p.size
		}
		if !p.finished && p.raw > 0 {
			s.cost.Read++
		}
	}
	if len(s.cells) == 0 && len(s.aside) > 0 { // better than nothing, although these rows are the newest
		s.cells = s.aside
		p := s.cells[0].part
		for i := range s.cells {
			p.raw += s.cells[i].bytes
		}
		done = p.size
		s.cost.Read++
	}
	if len(s.cells) == 0 || done == 0 {
		return invalid.New(tsdb.ErrInvalid, "Rows, Bytes or Requests", fmt.Sprintf("used up after %d requests", s.cost.Requests), "enough to read some rows")
	}
	scale := 1.0 // bytes that are read for each of the service's
	if s.basis = Assumed; raw > 0 && size > 0 {
		s.basis, scale = Sampled, raw/size
	}
	for i := range s.cells {
		o := &s.cells[i]
		if !o.part.finished {
			o.stands *= max(scale*o.part.size-o.part.exact, o.part.raw/looks) / o.part.raw
		}
		o.stands *= sized / done // the parts that were not read are like the others
	}
	return nil
}

// block is the result of one read.
type block struct {
	rows        int
	first, last string
	ended       bool // there are no more rows in the range
}

// block reads the first rows of a range of a part.
func (s *sample) block(ctx context.Context, p *part, rng rowkey.Range, most int) (b block, err error) {
	if err := ctxerr.Of(ctx); err != nil {
		return b, err
	}
	if most = min(most, s.opts.Rows-s.cost.Rows); most <= 0 || s.spent() {
		return b, errSpent
	}
	err = s.rows(ctx, bt.Scan{Limit: int64(most)}, rng, func(row *bt.Row) bool {
		if b.last = row.Key(); b.rows == 0 {
			b.first = b.last
		}
		b.rows++
		s.cost.Rows++
		s.note(p, row)
		return !s.full()
	})
	b.ended = b.rows < most && !s.full()
	return b, err
}

func (s *sample) full() bool {
	return s.cost.Bytes >= s.opts.Bytes || len(s.cells) >= mostCells*s.opts.Rows
}

// spent reports whether a limit is reached.
func (s *sample) spent() bool {
	return s.cost.Rows >= s.opts.Rows || s.cost.Requests >= s.opts.Requests || s.full()
}

// note records a row.
func (s *sample) note(p *part, row *bt.Row) {
	g, _, ok := rowkey.GroupOf(row.Key())
	if _, known := s.kept[g.Dataset]; !ok || !known {
		g = rowkey.Group{} // rows of no dataset in the catalogue
	}
	group := s.groups[g]
	if group == nil {
		group = &g
		s.groups[g] = group
	}
	key := float64(len(row.Key())) / float64(len(row.Cells()))
	bytes := len(row.Key())
	for name, items := range row.Families() {
		f, newer := s.kept.of(g.Dataset, name), int32(0)
		for i, item := range items {
			if newer++; i == 0 || item.Column != items[i-1].Column {
				newer = 0
			}
			n := len(item.Column) - len(name) - 1 + len(item.Value)
			bytes += n
			age := min(max(s.now.UnixMilli()-int64(item.Timestamp)/1000, -longest), longest)
			s.cells = append(s.cells, observed{keeping: f, group: group, part: p, age: age, newer: newer, bytes: key + float64(n), stands: 1})
		}
	}
	s.cost.Bytes += int64(bytes)
	p.raw += float64(bytes)
}

// entityOf is rowkey.EntityOf with the catalogue's entry of the key's dataset. Only points have an ID after their
// time.
func (s *sample) entityOf(key string) (all rowkey.Range, reverse float64, ok bool) {
	group, _, _ := rowkey.GroupOf(key)
	return rowkey.EntityOf(key, group.Kind == "" && s.identity[group.Dataset])
}

// one returns the first or the last key of a range, or empty if there is none.
func (s *sample) one(ctx context.Context, rng rowkey.Range, last bool) (key string, err error) {
	if s.spent() {
		return "", errSpent
	}
	if rng.Empty() {
		return "", nil
	}
	keys := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
	err = s.rows(ctx, bt.Scan{Filter: keys, Limit: 1, Reverse: last}, rng, func(row *bt.Row) bool {
		key = row.Key()
		s.cost.Rows++
		s.cost.Bytes += int64(len(key))
		return true
	})
	return key, err
}

// rows reads some rows of a range. It rejects rows outside the range before it reads their content.
func (s *sample) rows(ctx context.Context, read bt.Scan, rng rowkey.Range, visit func(*bt.Row) bool) error {
	s.cost.Requests++
	var foreign error
	read.Rows, read.Long = bigtable.NewRange(rng.Start, rng.Limit), true
	err := s.store.Whole.BulkReads().Read(ctx, read, func(row *bt.Row) bool {
		if row.Key() < rng.Start || row.Key() >= rng.Limit {
			foreign = fmt.Errorf("%w: %s", tsdb.ErrForeignRow, s.store.Name)
			return false
		}
		return visit(row)
	})
	if foreign != nil {
		return foreign
	}
	return s.store.Explain(err)
}
