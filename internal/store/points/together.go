package points

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Bounds of a shared request for the newest points of several entities. The service cannot limit the rows of each
// range, so the request has one limit: crowd rows per entity on average.
const (
	together   = 4        // minimum number of entities for a shared request
	MostRanges = 250      // maximum number of ranges per request, so that it ends well within the timeout of reads
	maxHeld    = 16 << 20 // bytes of payloads that are held until the request ends
	maxSurplus = 4 << 20  // bytes of payloads that are read but not returned
	rangeBytes = 16       // overhead of a range in a request
)

// short is the range in which the newest point of an entity is expected.
type short struct {
	index int // of the entity in the call
	rng   rowkey.Range
	from  int64 // the oldest time of the range, in units
	whole bool  // the range has all visible points of the entity
}

// shortHit is the result for one range.
type shortHit struct {
	hit    dataset.Hit
	found  bool
	rows   int
	oldest int64 // the time of the last row, in units
}

// newestTogether is Newest for the newest point of each entity. Earlier calls have shown where the newest points are,
// so it reads short ranges of many entities in one request. If it can ask for only the first row of each range, it
// needs no earlier calls, and reads the whole histories.
//
// It reads entities that it does not know alone, at the same time. Afterwards it also reads alone those whose range had
// no point but was not the whole history, and those whose request failed temporarily. Such a read covers the whole
// history: a point that is written or deleted between the two requests can then not hide another.
func (r *Rows) newestTogether(ctx context.Context, paths []string, o Options, visit func(i int, hits []dataset.Hit, err error)) {
	var recent *recency // nil if ranges need not be short
	now, _ := r.D.Precision.AtOrBefore(r.Clock())
	h := r.Visibility()
	from := make([]int64, len(paths))
	if !r.OnlyFirst {
		recent = r.Recent.of(r.Tenant, r.D.Name)
		from = recent.plan(paths, now)
	}
	parts, alone := r.shortRanges(paths, from, h.Oldest())
	found := make([]seen, len(paths))
	readAlone := func(entities []int, k int) {
		i := entities[k]
		hits, err := r.newestOfOne(ctx, paths[i], 1, o)
		found[i].read = err == nil
		if len(hits) > 0 {
			found[i].newest = hits[0].Units
		}
		visit(i, hits, err)
	}
	var mu sync.Mutex
	var rest []int // entities that are read alone afterwards
	r.Hedges.Earn(o.Hedge, len(parts)+len(alone))
	bt.AtOnce(o.Width, len(parts)+len(alone), func(k int) {
		if k >= len(parts) {
			readAlone(alone, k-len(parts))
			return
		}
		part := parts[k]
		got, err := r.readShort(ctx, paths, part, h, o)
		var hits [1]dataset.Hit
		for j, s := range part {
			switch {
			case j < len(got.hits) && got.hits[j].found:
				found[s.index] = got.seen(j)
				hits[0] = got.hits[j].hit
				visit(s.index, hits[:], nil)
			case err != nil && (ctx.Err() != nil || !Temporary(err)):
				visit(s.index, nil, err)
			case s.whole && j < got.reached && (got.hits[j].rows == 0 || !r.OnlyFirst):
				found[s.index].read = true
				visit(s.index, nil, nil)
			default:
				found[s.index] = seen{full: true}
				if err == nil {
					found[s.index] = got.seen(j)
				}
				reach.Point(reach.ReadAlone)
				mu.Lock()
				rest = append(rest, s.index)
				mu.Unlock()
			}
		}
	})
	r.Hedges.Earn(o.Hedge, len(rest))
	bt.AtOnce(o.Width, len(rest), func(k int) { readAlone(rest, k) })
	if recent != nil {
		recent.learn(paths, found, now)
	}
}

// Temporary reports whether the entities of a failed request may succeed alone: one range that cannot be reached blocks
// the ranges after it, and many rows may take longer than the timeout of reads.
func Temporary(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// shortRanges returns the ranges of a call in parts of one request each, in key order, and the entities that are read
// alone. from is the time at which each entity's range begins, or negative to read the entity alone. No range begins
// before oldest.
func (r *Rows) shortRanges(paths []string, from []int64, oldest int64) (parts [][]short, alone []int) {
	ranges := make([]short, 0, len(paths))
	for i := range paths {
		if from[i] < 0 {
			alone = append(alone, i)
			continue
		}
		begin := min(max(from[i], oldest), r.D.Precision.Max()) // what is known may be of a deleted dataset, in smaller units
		rng := r.Space.Entity(paths[i], begin, r.D.Precision.Max())
		ranges = append(ranges, short{index: i, rng: rng, from: begin, whole: from[i] <= oldest})
	}
	if len(ranges) < together {
		for _, s := range ranges {
			alone = append(alone, s.index)
		}
		return nil, alone
	}
	slices.SortFunc(ranges, func(a, b short) int { return cmp.Compare(a.rng.Start, b.rng.Start) })
	return SplitRanges(ranges, func(s short) rowkey.Range { return s.rng }), alone
}

// SplitRanges cuts a list of key ranges into parts that fit into one request each.
func SplitRanges[T any](ranges []T, of func(T) rowkey.Range) (parts [][]T) {
	begin, size := 0, 0
	for i, r := range ranges {
		rng := of(r)
		n := len(rng.Start) + len(rng.Limit) + rangeBytes
		if i > begin && (size+n > maxRowSet || i-begin == MostRanges) {
			parts, begin, size = append(parts, ranges[begin:i]), i, 0
		}
		size += n
	}
	if begin < len(ranges) {
		parts = append(parts, ranges[begin:])
	}
	return parts
}

// readShort reads ranges in one request. If the request fails, the points that had arrived are still returned.
func (r *Rows) readShort(ctx context.Context, paths []string, part []short, h dataset.Visibility, o Options) (shortHits, error) {
	oldest := r.D.Precision.Max()
	for _, s := range part {
		oldest = min(oldest, s.from)
	}
	scan := bt.Scan{Filter: h.Between(oldest, r.D.Precision.Max()).Filter(), Limit: int64(crowd * len(part))}
	if r.OnlyFirst {
		scan.First = make([]bt.Range, len(part))
		for j, s := range part {
			scan.First[j] = bt.Range{Start: s.rng.Start, Limit: s.rng.Limit}
		}
	} else {
		set := make(bigtable.RowRangeList, len(part))
		for j, s := range part {
			set[j] = bigtable.NewRange(s.rng.Start, s.rng.Limit)
		}
		scan.Rows = set
	}
	return Once(ctx, r.Table, o.Hedge, func(ctx context.Context) (shortHits, error) {
		in := shortReader{rows: r, visible: h, paths: paths, part: part, hits: make([]shortHit, len(part))}
		err := r.View.Read(ctx, scan, in.row)
		if in.foreign {
			return shortHits{}, ForeignRow(r.D)
		}
		got := shortHits{hits: in.hits, reached: len(part), step: in.step()}
		if err != nil || in.total == crowd*len(part) || in.surplus > maxSurplus || in.held > maxHeld {
			got.reached = in.at
		}
		return got, r.Explain(err)
	})
}

// shortHits is the result of one request.
type shortHits struct {
	hits    []shortHit // by range
	reached int        // the number of ranges that were read to their end, before the request was full or failed
	step    int64      // the time between two rows of an entity with too many rows; 0 if there was none
}

// seen returns what the request has shown about the entity of a range.
func (g *shortHits) seen(j int) seen {
	hit := &g.hits[j]
	switch {
	case hit.found:
		return seen{read: true, newest: hit.hit.Units, crowd: hit.rows > crowd, step: hit.step()}
	case j >= g.reached:
		return seen{full: true, step: g.step}
	}
	return seen{missed: true, crowd: hit.rows > crowd}
}

// step returns the time between two rows of the range, 0 if there are not two.
func (h *shortHit) step() int64 { return (h.hit.Units - h.oldest) / int64(max(1, h.rows-1)) }

// shortReader reads the rows of one request for short ranges. They arrive in key order.
type shortReader struct {
	rows    *Rows
	visible dataset.Visibility
	paths   []string
	part    []short
	hits    []shortHit

	at      int // the range of the last row
	total   int // rows
	held    int // bytes of the newest payloads, which are returned
	surplus int // bytes of all other payloads
	foreign bool
}

// row reads a row, and reports whether the request continues. A row before the range of the last row, or between
// ranges, is foreign.
func (in *shortReader) row(row *bt.Row) bool {
	key := row.Key()
	for in.at < len(in.part) && key >= in.part[in.at].rng.Limit {
		in.at++
	}
	if in.at == len(in.part) || key < in.part[in.at].rng.Start {
		in.foreign = true
		return false
	}
	in.total++
	rng, hit := in.part[in.at].rng, &in.hits[in.at]
	hit.rows++
	units, id, ok := in.rows.Space.PointTime(key, rng.Start[:len(rng.Start)-rowkey.ReverseLen])
	if !ok {
		return true
	}
	hit.oldest = units
	found, visible := in.visible.Hit(row, in.paths[in.part[in.at].index], units, id)
	switch {
	case !visible:
		return true
	case hit.found:
		in.surplus += len(found.Payload)
		return in.surplus <= maxSurplus
	}
	hit.hit, hit.found = found, true
	in.held += len(found.Payload)
	return in.held <= maxHeld
}

// step returns the time between two rows of the last entity with too many rows, or 0.
func (in *shortReader) step() int64 {
	for j := in.at; j >= 0 && j < len(in.hits); j-- {
		if in.hits[j].found && in.hits[j].rows > crowd {
			return max(1, in.hits[j].step())
		}
	}
	return 0
}
