package skipscan

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The start of a skip scan's next request depends on the response to the last one. So one scan of a big prefix waits
// for the network once per entity. Several scans of parts of the range wait at the same time.
const (
	bigAfter   = 32   // requests after which a range is cut into parts
	againAfter = 64   // requests after which the part that the consumer waits for is cut again
	parts      = 8    // parts of a cut
	deepest    = 3    // maximum number of cuts within cuts; each holds in memory what it has read ahead
	partAhead  = 128  // entities that a part reads ahead
	saltsAhead = 4096 // entities that all salts together read ahead
)

// Query selects the entities and points that Scan reads.
type Query struct {
	Prefix  string // the path of the prefix; "" is all entities
	After   string // the path of the entity after which the scan starts; "" is the beginning
	Few     int    // the maximum number of entities that the caller takes; 0 is all
	Each    int    // the number of points per entity; 0 is one
	Parts   int    // the number of leading parts of which one entity or more is yielded for each value; 0 is all entities
	Values  bool   // with payloads
	Options points.Options
	// Slots holds an element for each request under way, if the caller sends requests of its own during the scan; nil
	// for none.
	Slots Slots
}

// Scan yields the newest visible points of each entity below a prefix, in the order of entities and newest first, until
// yield returns false.
func Scan(ctx context.Context, r *points.Rows, q Query, yield func(dataset.Hit) bool) error {
	h := r.Visibility()
	each := max(1, q.Each)
	if r.D.Head.Only {
		each = min(each, r.D.Head.Points) // a head may have more that are not collected yet
	}
	space, heads := r.Space, r.D.HeadsShow(each)
	if heads {
		space = r.Heads
	}
	ranges := space.Under(q.Prefix)
	if q.After != "" {
		ranges = space.UnderAfter(q.Prefix, q.After)
	}
	largest := max(firstPage, min(largestPage, 2*saltsAhead/len(ranges)))
	whole := scan{
		table: r.Table, rows: r.View, space: space, heads: heads, d: r.D, horizon: h, oldest: h.Oldest(), values: q.Values, few: q.Few, each: each, parts: q.Parts, options: q.Options,
		pager: newPager(largest, each, q.Few),
	}
	if each == 1 && !heads && q.Parts == 0 {
		whole.outline, whole.many = r.Outline(), mostKnown
	}
	ctx, done := r.View.Bound(ctx, true)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	slots := q.Slots
	if slots == nil {
		slots = make(Slots, q.Options.Width)
	}
	f := &merger{table: r.Table, ctx: ctx, slots: slots, yield: yield}
	defer f.wg.Wait()
	defer cancel(bt.ErrNotNeeded)
	if len(ranges) == 1 {
		return f.single(whole.over(ranges[0]))
	}
	scans := make([]scan, len(ranges))
	for i, rng := range ranges {
		scans[i] = whole.over(rng)
	}
	return f.salted(scans)
}

// merger runs the workers of one sequence, and yields what they find in order.
type merger struct {
	table *points.Table
	ctx   context.Context
	slots Slots
	wg    sync.WaitGroup
	yield func(dataset.Hit) bool

	alphabet rowkey.Alphabet // of the entities that were found
}

// worker is a skip scan in a goroutine of its own.
type worker struct {
	scan  scan
	ahead int
	out   chan []dataset.Hit // closed at the end, when err and the rest of the scan are set
	front atomic.Bool        // the consumer waits for this worker, so that a long rest is cut
	err   error

	hits []dataset.Hit // received by the consumer, and not yielded yet
}

// start runs a worker that holds at most ahead hits and a page.
func (f *merger) start(scan scan, ahead int) *worker {
	l := &worker{scan: scan, ahead: ahead, out: make(chan []dataset.Hit, 1)}
	f.wg.Go(func() {
		defer close(l.out)
		l.err = l.run(f)
	})
	return l
}

// run scans to the end, or until the consumer has waited for the worker during againAfter requests.
func (l *worker) run(f *merger) error {
	defer l.scan.remember()
	var batch []dataset.Hit
	size, since := 0, -1
	for !l.scan.rest.Empty() {
		if since < 0 && l.front.Load() {
			since = l.scan.requests
		}
		if since >= 0 && l.scan.requests-since >= againAfter {
			break
		}
		hits, err := l.next(f)
		if err != nil {
			return err
		}
		batch = append(batch, hits...)
		for i := range hits {
			size += len(hits[i].Payload)
		}
		full := len(batch) >= l.ahead || size >= pageBytes
		sent, err := l.send(f, batch, full)
		if err != nil {
			return err
		}
		if sent {
			batch, size = nil, 0
		}
	}
	_, err := l.send(f, batch, true)
	return err
}

// next waits for a slot and reads a page.
func (l *worker) next(f *merger) ([]dataset.Hit, error) {
	leave, err := f.slots.Enter(f.ctx, f.table)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.scan.next(f.ctx)
}

// Slots are the requests that a read has under way.
type Slots chan struct{}

// Enter waits until another request may be made, and returns the function that ends it.
func (s Slots) Enter(ctx context.Context, t *points.Table) (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, Over(ctx, t)
	}
}

// Over returns the error of a read whose context has ended.
func Over(ctx context.Context, t *points.Table) error { return t.Explain(ctxerr.Of(ctx)) }

// send passes hits to the consumer, and reports whether it did. Without wait it does so only if the consumer is ready.
func (l *worker) send(f *merger, batch []dataset.Hit, wait bool) (bool, error) {
	if len(batch) == 0 {
		return true, nil
	}
	select {
	case l.out <- batch:
		return true, nil
	default:
	}
	if !wait {
		return false, nil
	}
	select {
	case l.out <- batch:
		return true, nil
	case <-f.ctx.Done():
		return false, Over(f.ctx, f.table)
	}
}

// take yields hits, and reports whether the consumer wants more.
func (f *merger) take(hits []dataset.Hit) (bool, error) {
	for _, h := range hits {
		if f.ctx.Err() != nil {
			return false, Over(f.ctx, f.table)
		}
		if !f.yield(h) {
			return false, nil
		}
	}
	return true, nil
}

// single runs one scan in the goroutine of the consumer, and cuts it into parts after bigAfter requests. It never cuts
// a scan for few entities: most of what the parts read ahead would be wasted.
func (f *merger) single(scan scan) error {
	defer scan.remember()
	for !scan.rest.Empty() {
		if scan.few == 0 && scan.requests >= bigAfter {
			_, err := f.cut(scan, 1)
			return err
		}
		hits, err := scan.next(f.ctx)
		if err != nil {
			return err
		}
		for i := range hits {
			f.alphabet.Add(hits[i].Path)
		}
		if more, err := f.take(hits); !more {
			return err
		}
	}
	return nil
}

// cut runs the rest of a scan in parallel parts, and yields their hits in order.
func (f *merger) cut(scan scan, depth int) (more bool, err error) {
	last, err := f.last(&scan)
	if err != nil || last == "" {
		return err == nil, err
	}
	ranges := scan.space.Cut(scan.rest, last, f.alphabet, parts)
	if len(ranges) == 1 {
		depth = deepest
	}
	scan.pager, scan.requests = scan.pager.share(len(ranges)), 0
	workers := make([]*worker, len(ranges))
	for i, rng := range ranges {
		workers[i] = f.start(scan.over(rng), partAhead)
	}
	for _, l := range workers {
		l.front.Store(depth < deepest)
		for hits := range l.out {
			for i := range hits {
				f.alphabet.Add(hits[i].Path)
			}
			if more, err := f.take(hits); !more {
				return false, err
			}
		}
		if l.err != nil {
			return false, l.err
		}
		if !l.scan.rest.Empty() {
			if more, err := f.cut(l.scan, depth+1); !more {
				return false, err
			}
		}
	}
	return true, nil
}

// last waits for a slot and returns lastKey. Parts are cut below the last key, because the limit of the range may be
// far behind it.
func (f *merger) last(scan *scan) (string, error) {
	leave, err := f.slots.Enter(f.ctx, f.table)
	if err != nil {
		return "", err
	}
	defer leave()
	return scan.lastKey(f.ctx)
}

// lastKey returns the last key in the rest of a scan, or "".
func (s *scan) lastKey(ctx context.Context) (string, error) {
	return request(ctx, s, func(ctx context.Context) (key string, err error) {
		err = s.inRange(ctx, s.rest, bt.Scan{Filter: bt.KeysOnly(), Limit: 1, Reverse: true}, func(row *bt.Row) bool {
			key = row.Key()
			return true
		})
		return key, err
	})
}

// salted runs one scan per salt and merges their hits.
func (f *merger) salted(scans []scan) error {
	var m workerHeap
	ahead := max(16, min(partAhead, saltsAhead/len(scans)))
	for _, s := range scans {
		if s.few > 0 {
			ahead = min(ahead, s.few)
		}
		m = append(m, f.start(s, ahead))
	}
	for i := len(m) - 1; i >= 0; i-- {
		ok, err := m[i].fill()
		if err != nil {
			return err
		}
		if !ok {
			m = append(m[:i], m[i+1:]...)
		}
	}
	m.order()
	for len(m) > 0 {
		l := m[0]
		if more, err := f.take(l.hits[:1]); !more {
			return err
		}
		l.hits = l.hits[1:]
		ok, err := l.fill()
		if err != nil {
			return err
		}
		if !ok {
			m[0] = m[len(m)-1]
			m = m[:len(m)-1]
		}
		m.down(0)
	}
	return nil
}

// fill receives the next hits of a worker if none are left, and reports whether there are any.
func (l *worker) fill() (bool, error) {
	if len(l.hits) == 0 {
		l.hits = <-l.out
	}
	if len(l.hits) == 0 { // out is closed
		return false, l.err
	}
	return true, nil
}

// workerHeap is a heap of workers, ordered by their next hits. It is not a container/heap, whose interface calls cost
// more per hit than the comparisons.
type workerHeap []*worker

func (m workerHeap) order() {
	for i := len(m)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
}

func (m workerHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m); child++ {
			if m[child].hits[0].Path < m[least].hits[0].Path {
				least = child
			}
		}
		if least == i {
			return
		}
		m[i], m[least] = m[least], m[i]
		i = least
	}
}
