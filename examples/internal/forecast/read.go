package forecast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sample is the data read of a table.
type sample struct {
	store inside.Store
	opts  Options
	kept  kept
	now   time.Time

	identity map[string]bool // datasets whose points have an ID behind their time

	random *rand.Rand
	parts  []*part
	cost   Cost
	cells  int
	scale  float64 // bytes read per byte of the service's sizes
	spread float64 // its standard error, by its own size
	basis  Basis

	ends     bool    // parts are read to their ends
	measured []*part // parts read to their end to find the scale
	strata   strata
	groups   []rowkey.Group // groups with rows read, in order
}

const (
	spreadOver = 64   // parts that the rows are at least spread over
	leastRows  = 50   // of one request
	turns      = 4    // at a part that is not read to its end
	page       = 5000 // rows of a request where a part is read to its end
	leastParts = 5    // that have to be read to their ends, for them to be
	mostCells  = 10   // a row, on average
	// toMeasure is how many parts are read to their end to compare bytes with the service's sizes. measureShare is
	// the share of Rows that this may use.
	toMeasure    = 4
	measureShare = 4
)

// errSpent ends the reading when a limit is reached.
var errSpent = errors.New("forecast: the limit of rows, bytes or requests is reached")

// read reads rows of random parts, until all are read or a limit is reached.
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

// readAll reads parts in turns. Small parts are read to their end immediately: the beginning of a part does not
// represent the whole part, and the service does not cut parts entirely at random.
func (s *sample) readAll(ctx context.Context, queue []*part) error {
	perSize, small := s.small()
	for len(queue) > 0 {
		p := queue[0]
		s.ends = small || p.size == 0
		if queue = queue[1:]; p.finished() {
			continue
		}
		if left := s.opts.Rows - s.cost.Rows; small && float64(left) < perSize*p.size*1.5 {
			return errSpent
		}
		for i := 0; (i < turns || s.ends) && !p.finished(); i++ {
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

// small reports whether enough parts can be read to their ends, and how many rows there are per byte of the service's
// sizes.
func (s *sample) small() (perSize float64, ok bool) {
	var rows, size, sized, raw float64
	for _, p := range s.parts {
		sized += p.size
		for _, c := range p.pieces {
			rows += float64(c.rows)
			raw += c.raw
		}
		if p.finished() {
			size += p.size
		}
	}
	switch {
	case sized == 0:
		return 0, true
	case len(s.measured) > 0:
		perSize = rows / size // include the unfinished part: there is at most one, and it is large
	default:
		perSize = packed * rows / max(1, raw)
	}
	all := perSize * sized
	return perSize, all <= float64(s.opts.Rows) || len(s.measured) > 0 && all/float64(len(s.parts))*leastParts <= float64(s.opts.Rows)
}

// packed is the assumed compression ratio of the service, if it is unknown.
const packed = 3

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
	s.parts = newParts(offsets, whole, rowkey.Cuts(cuts), s.kept)
	s.cost.Parts = len(s.parts)
	return nil
}

// order returns the parts in the order in which they are read. It alternates parts with several groups and parts with
// one. It starts with two parts of each group, because one part does not show the error.
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
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	c := p.turn()
	if c != nil && !s.ends {
		return s.probe(ctx, c)
	}
	share := max(leastRows, s.opts.Rows/spreadOver)
	if s.ends {
		share = max(share, min(page, s.opts.Rows/measureShare/toMeasure))
	}
	if c == nil {
		into := func(key string) *piece { return s.enter(p, key) }
		read, err := s.block(ctx, rowkey.Range{Start: p.next, Limit: p.Limit}, share, into)
		if err == nil {
			p.walk(read.last, read.ended, share)
		}
		return err
	}
	read, err := s.block(ctx, c.next, share, func(string) *piece { return c })
	if err == nil {
		c.next, c.done = c.next.After(read.last), read.ended
	}
	return err
}

// block is the result of one read.
type block struct {
	rows        int
	first, last string
	ended       bool // there are no more rows in the range
}

// block reads the first rows of a range into pieces.
func (s *sample) block(ctx context.Context, rng rowkey.Range, most int, into func(key string) *piece) (b block, err error) {
	if s.spent() {
		return b, errSpent
	}
	most = min(most, s.opts.Rows-s.cost.Rows)
	spent := false
	err = s.rows(ctx, bt.Scan{Limit: int64(most)}, rng, func(row *bt.Row) bool {
		if b.last = row.Key(); b.rows == 0 {
			b.first = b.last
		}
		b.rows++
		s.cost.Rows++
		cells, bytes := into(b.last).note(row, s.kept, s.now.UnixMilli())
		s.cells += cells
		s.cost.Bytes += bytes
		spent = s.cost.Bytes >= s.opts.Bytes || s.cells >= mostCells*s.opts.Rows
		return !spent
	})
	b.ended = b.rows < most && !spent
	return b, err
}

// spent reports whether a limit is reached.
func (s *sample) spent() bool {
	return s.cost.Rows >= s.opts.Rows || s.cost.Requests >= s.opts.Requests || s.cost.Bytes >= s.opts.Bytes || s.cells >= mostCells*s.opts.Rows
}

// enter returns the piece of a part that contains a row. Rows of no dataset in the catalogue have no group.
func (s *sample) enter(p *part, key string) *piece {
	group, all, ok := rowkey.GroupOf(key)
	if _, known := s.kept[group.Dataset]; !ok || !known {
		return p.enter(rowkey.Group{}, key, p.Limit)
	}
	return p.enter(group, key, all.Limit)
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
