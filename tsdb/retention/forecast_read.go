package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sample is what was read of a table.
type sample struct {
	store inside.Store
	opts  ForecastOptions
	kept  kept
	now   time.Time

	random *rand.Rand
	parts  []*part
	cost   Cost
	cells  int
	scale  float64 // bytes that are read for each that the service's sizes tell
	spread float64 // its standard error, by its own size
	basis  Basis

	ends     bool    // parts are read to their ends
	measured []*part // that were read to their end for the scale
	strata   strata
	groups   []rowkey.Group // of which something was read, in order
}

const (
	spreadOver = 64   // parts that the rows are at least spread over
	leastRows  = 50   // of one request
	page       = 5000 // rows of a request where a part is read to its end
	leastParts = 5    // that have to be read to their ends, for them to be
	mostCells  = 10   // a row, on average
	// toMeasure are the parts that are read to their end to find out how many bytes stand behind the service's sizes, and
	// measureShare the share of rows that this may take.
	toMeasure    = 4
	measureShare = 4
)

// sizesOff is how far off the service's sizes may be, all of them together.
const sizesOff = 0.05

// errSpent is why reading ends early.
var errSpent = errors.New("retention: the rows, bytes or requests are spent")

// read reads rows of parts that are chosen by chance, until all is read or what it may take is spent.
func (s *sample) read(ctx context.Context) error {
	if err := s.cut(ctx); err != nil {
		return err
	}
	s.random = rand.New(rand.NewPCG(s.opts.Seed, 0x7469_6465))
	err := s.measure(ctx)
	if err == nil {
		err = s.readAll(ctx, s.order())
	}
	if err != nil && !errors.Is(err, errSpent) {
		return err
	}
	return s.weigh()
}

// readAll reads parts in turns. Where they are small, each is read to its end at once: a part that was cut off tells of its
// beginning, and where parts begin is not chance alone.
func (s *sample) readAll(ctx context.Context, queue []*part) error {
	perSize, small := s.small()
	s.ends = small
	for len(queue) > 0 {
		p := queue[0]
		if queue = queue[1:]; p.finished() {
			continue
		}
		if left := s.opts.Rows - s.cost.Rows; small && float64(left) < perSize*p.size*1.5 {
			return errSpent
		}
		for i := 0; i < slots && !p.finished() || small && !p.finished(); i++ {
			if err := s.turn(ctx, p); err != nil {
				return err
			}
		}
		if !p.finished() {
			queue = append(queue, p)
		}
	}
	return nil
}

// small reports whether enough parts can be read to their ends, and how many rows stand behind a byte that the service tells.
func (s *sample) small() (rows float64, ok bool) {
	var n, size, sized float64
	for _, p := range s.measured {
		size += p.size
		for _, c := range p.pieces {
			n += float64(c.rows)
		}
	}
	for _, p := range s.parts {
		sized += p.size
	}
	if size == 0 {
		return 0, false
	}
	rows = n / size
	return rows, rows*sized/float64(len(s.parts))*leastParts <= float64(s.opts.Rows)
}

// cut cuts the table into parts.
func (s *sample) cut(ctx context.Context) error {
	samples, err := s.store.Table.Samples(ctx)
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
	s.parts = newParts(offsets, whole, rowkey.Cuts(cuts), s.kept)
	s.cost.Parts = len(s.parts)
	return nil
}

// order returns the parts in the order in which they are read: those with several groups and those with one in turn, first
// of each group two parts, as one alone does not say how far off it is.
func (s *sample) order() []*part {
	var mixed, first, second, rest []*part
	had := map[rowkey.Group]int{}
	for _, i := range s.random.Perm(len(s.parts)) {
		p := s.parts[i]
		switch had[p.group]++; {
		case !p.pure:
			mixed = append(mixed, p)
		case had[p.group] == 1:
			first = append(first, p)
		case had[p.group] == 2:
			second = append(second, p)
		default:
			rest = append(rest, p)
		}
	}
	pure := append(append(first, second...), rest...)
	var all []*part
	for i := range max(len(mixed), len(pure)) {
		if i < len(mixed) {
			all = append(all, mixed[i])
		}
		if i < len(pure) {
			all = append(all, pure[i])
		}
	}
	return all
}

// measure reads some parts to their end.
func (s *sample) measure(ctx context.Context) error {
	s.ends = true
	for _, i := range s.random.Perm(len(s.parts)) {
		p := s.parts[i]
		if p.size == 0 {
			continue
		}
		for !p.finished() {
			if s.cost.Rows >= s.opts.Rows/measureShare {
				return nil
			}
			if err := s.turn(ctx, p); err != nil {
				return err
			}
		}
		if s.measured = append(s.measured, p); len(s.measured) == toMeasure {
			break
		}
	}
	return nil
}

// turn reads some rows of a part.
func (s *sample) turn(ctx context.Context, p *part) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if s.cost.Rows >= s.opts.Rows || s.cost.Requests >= s.opts.Requests || s.cost.Bytes >= s.opts.Bytes || s.cells >= mostCells*s.opts.Rows {
		return errSpent
	}
	c, rng := p.turn(), rowkey.Range{Start: p.next, Limit: p.Limit}
	share := max(leastRows, s.opts.Rows/spreadOver)
	switch {
	case s.ends:
		share = max(share, min(page, s.opts.Rows/measureShare/toMeasure))
	case c != nil:
		share = max(leastRows/slots, share/slots)
		if !c.cut {
			c.spread(s.random.Float64())
		}
	}
	if c != nil {
		rng = c.next[0]
	}
	rows := min(share, s.opts.Rows-s.cost.Rows)
	last, n, spent := "", 0, false
	s.cost.Requests++
	err := s.rows(ctx, rng, int64(rows), func(row bigtable.Row) bool {
		n++
		last = row.Key()
		to := c
		if to == nil {
			to = s.enter(p, last)
		}
		cells, bytes := to.note(row, s.kept, s.now.UnixMilli())
		s.cells += cells
		s.cost.Bytes += bytes
		spent = s.cost.Bytes >= s.opts.Bytes || s.cells >= mostCells*s.opts.Rows
		return !spent
	})
	s.cost.Rows += n
	if err != nil {
		return err
	}
	if ended := n < rows && !spent; c == nil {
		p.walk(last, ended, share)
	} else {
		c.pass(last, ended)
	}
	return nil
}

// enter returns the piece of a part that a row is in. Rows that are of no dataset in the catalogue are of no group.
func (s *sample) enter(p *part, key string) *piece {
	group, all, ok := rowkey.GroupOf(key)
	if _, known := s.kept[group.Dataset]; !ok || !known {
		return p.enter(rowkey.Group{}, p.Limit)
	}
	return p.enter(group, all.Limit)
}

// rows reads some rows of a range, and refuses any other before it is looked at.
func (s *sample) rows(ctx context.Context, rng rowkey.Range, limit int64, visit func(bigtable.Row) bool) error {
	var foreign error
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Limit: limit, Long: true}
	err := s.store.Table.Read(ctx, read, func(row bigtable.Row) bool {
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

// weigh finds out what the service's sizes stand for, and how much each part has that was not read.
func (s *sample) weigh() error {
	sized := 0.0
	for _, p := range s.parts {
		sized += p.size
		s.cost.Read += int(one(p.read()))
		s.cost.Finished += int(one(p.finished()))
	}
	switch {
	case s.cost.Finished == len(s.parts):
		s.basis = Counted
		s.divide()
		return nil
	case sized == 0:
		return invalid.New(tsdb.ErrInvalid, "Rows, Bytes or Requests", fmt.Sprintf("spent after %d rows", s.cost.Rows),
			"enough to read all rows, as the service does not tell how large the table is")
	}
	s.basis = Sampled
	if s.cost.Finished == s.cost.Read { // nothing but what is unread depends on the scale
		s.measured = slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool { return !p.finished() || p.size == 0 })
	}
	if s.scale, s.spread = scaleOf(s.measured); len(s.measured) == 0 {
		s.basis = Assumed
	}
	if s.cost.Finished == s.cost.Read {
		s.spread = 0
	}
	s.spread = math.Hypot(s.spread, sizesOff)
	for _, p := range s.parts {
		p.share(s.scale)
	}
	s.divide()
	return nil
}

// divide divides the parts by what is known of them.
func (s *sample) divide() {
	s.strata = newStrata(s.parts)
	for _, parts := range s.strata.own {
		for _, p := range parts {
			for _, c := range p.pieces {
				c.counted = true
			}
		}
	}
	s.groups = slices.SortedFunc(maps.Keys(s.strata.pieces), func(a, b rowkey.Group) int {
		return cmp.Or(strings.Compare(a.Tenant.String(), b.Tenant.String()), strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Kind, b.Kind))
	})
}

// scaleOf returns how many bytes stand behind one that the service tells, by parts that were read to their end, and how far
// off that is by its own size. Without any it is taken for one, and half of it for how far off.
func scaleOf(parts []*part) (scale, spread float64) {
	var raw, size, off float64
	for _, p := range parts {
		raw += p.raw()
		size += p.size
	}
	if raw == 0 {
		return 1, 0.5
	}
	scale = raw / size
	if len(parts) == 1 {
		return scale, 0.25
	}
	for _, p := range parts {
		off += square(p.raw() - scale*p.size)
	}
	n := float64(len(parts))
	return scale, math.Sqrt(off*n/(n-1)) / raw
}

// share divides what was not read of a part that was read in part among the groups that it is known to have, and those that
// the walk did not come to.
func (p *part) share(scale float64) {
	if p.finished() || !p.read() {
		return
	}
	sharers := 0
	for _, c := range p.pieces {
		sharers += int(one(!c.done))
	}
	beyond := !p.walked && (sharers == 0 || !p.pure)
	each := max(0, p.size*scale-p.raw()) / float64(sharers+int(one(beyond)))
	for _, c := range p.pieces {
		if !c.done {
			c.extra = each
		}
	}
	if beyond {
		p.extra = each
	}
}

func square(x float64) float64 { return x * x }
