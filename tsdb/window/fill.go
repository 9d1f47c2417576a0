package window

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Fill returns an iterator over a sequence of buckets with its gaps filled as Options.Gaps says. It sets Partial on
// buckets that the frame's interval covers only in part. [Aggregator.Over] does the same for its own buckets; use
// Fill for buckets from elsewhere.
//
// The buckets must be buckets of the frame's grid that are not empty, each once and in the frame's order, with the
// values in the order of the frame's measures. Otherwise the sequence ends with [ErrInvalid] or [ErrOrder]. Fill
// passes on errors of the sequence. Any error except a *tsdb.PointError is the last pair.
//
// Memory: [LeaveOut] and [Null] hold no buckets back, nor does [Previous] with the oldest first. [Linear], and
// [Previous] with the newest first, hold back the buckets of a gap until the next bucket that has the measure, at
// most Options.MaxFilled of them.
func Fill(buckets iter.Seq2[Bucket, error], frame Frame, opts Options) iter.Seq2[Bucket, error] {
	return fill(buckets, frame, opts, false)
}

// fill is Fill. If trusted is set, the buckets are known to be buckets of the grid.
func fill(buckets iter.Seq2[Bucket, error], frame Frame, opts Options, trusted bool) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		f := filler{Frame: frame, opts: opts, trusted: trusted, yield: yield}
		err := frame.check()
		if err == nil {
			err = opts.check()
		}
		if err == nil && buckets == nil {
			err = invalid.New(ErrInvalid, "buckets", "nil", "a sequence")
		}
		if err == nil {
			err = f.run(buckets)
		}
		if err != nil && !f.stopped {
			yield(Bucket{}, err)
		}
	}
}

// filler is one loop over the result of Fill.
type filler struct {
	Frame
	opts     Options
	trusted  bool
	yield    func(Bucket, error) bool
	stopped  bool      // the caller left the loop
	edge     time.Time // how far the buckets are complete, in the frame's order
	hasEdge  bool
	inserted int
	row      row
}

func (f *filler) run(buckets iter.Seq2[Bucket, error]) error {
	far, err := f.begin()
	if err != nil {
		return err
	}
	for b, err := range buckets {
		if err != nil {
			if _, ok := pointError(err); !ok {
				return err
			}
			if f.stopped = !f.yield(Bucket{}, err); f.stopped {
				return nil
			}
			continue
		}
		if err := f.take(b); err != nil || f.stopped {
			return err
		}
	}
	if f.opts.Gaps != LeaveOut && f.hasEdge && !far.IsZero() {
		if err := f.insert(far); err != nil || f.stopped {
			return err
		}
	}
	f.release(f.row.rest())
	return nil
}

// begin sets the edge to the near end of the interval, in whole buckets, and returns its far end, or zero if it has
// none.
func (f *filler) begin() (far time.Time, err error) {
	f.row = newRow(f.opts.Gaps, f.Order == tsdb.OldestFirst, len(f.Measures))
	if f.opts.Gaps == LeaveOut {
		return far, nil
	}
	from, to, err := f.bounds()
	if err != nil || !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return time.Time{}, err
	}
	if f.Order == tsdb.OldestFirst {
		if !from.IsZero() {
			f.edge, f.hasEdge = f.Grid.Start(from), true
		}
		return to, nil
	}
	if !to.IsZero() {
		f.edge, f.hasEdge = f.Grid.Next(to.Add(-1)), true
	}
	return from, nil
}

// take adds the next bucket that is not empty.
func (f *filler) take(b Bucket) error {
	if len(b.Values) != len(f.Measures) {
		return invalid.New(ErrInvalid, "values of a bucket", strconv.Itoa(len(b.Values)), strconv.Itoa(len(f.Measures))+", one a measure")
	}
	if !f.trusted {
		if start, next := f.Grid.Bucket(b.Start); !inCalendar(b.Start) || !start.Equal(b.Start) || !next.Equal(b.End) {
			return invalid.New(ErrInvalid, "bucket", stamp(b.Start)+" to "+stamp(b.End), "a bucket of the grid "+f.Grid.String())
		}
	}
	near, far := b.Start, b.End
	if f.Order != tsdb.OldestFirst {
		near, far = far, near
	}
	if f.hasEdge && f.before(near, f.edge) {
		return f.disorder(b.Start, f.edge)
	}
	if f.hasEdge && f.opts.Gaps != LeaveOut {
		if err := f.insert(near); err != nil || f.stopped {
			return err
		}
	}
	f.edge, f.hasEdge = far, true
	return f.put(b)
}

// insert adds empty buckets up to t.
func (f *filler) insert(t time.Time) error {
	for f.before(f.edge, t) {
		if f.inserted == f.opts.maxFilled() {
			return f.tooMany()
		}
		f.inserted++
		b := Bucket{Start: f.edge, Values: make([]Summary, len(f.Measures))}
		if f.Order == tsdb.OldestFirst {
			b.End = f.Grid.Next(f.edge)
			f.edge = b.End
		} else {
			b.Start, b.End = f.Grid.Start(f.edge.Add(-1)), f.edge
			f.edge = b.Start
		}
		for i, name := range f.Measures {
			b.Values[i] = empty(name)
		}
		if err := f.put(b); err != nil || f.stopped {
			return err
		}
	}
	return nil
}

// put appends a bucket to the row, and yields the buckets that are complete.
func (f *filler) put(b Bucket) error {
	b.Partial = b.Partial || f.cut(&b)
	f.release(f.row.push(b))
	if len(f.row.held) > f.opts.maxFilled() {
		return f.tooMany()
	}
	return nil
}

func (f *filler) release(ready []Bucket) {
	for _, b := range ready {
		if f.stopped = f.stopped || !f.yield(b, nil); f.stopped {
			return
		}
	}
}

func (f *filler) tooMany() error {
	return fmt.Errorf("%w: more than %d of %s", ErrTooManyFilled, f.opts.maxFilled(), f.Grid)
}

// row is the queue of buckets that wait for their gaps to be filled. Numbers of buckets count from the start of the
// run.
type row struct {
	gaps        Gaps
	oldestFirst bool
	held, ready []Bucket
	first       int      // number of held[0]
	anchors     []anchor // one per measure
}

// anchor is the last bucket that has a measure.
type anchor struct {
	found   bool
	start   time.Time
	summary Summary
	open    int // number of the first later bucket whose gap may still be filled
}

func newRow(gaps Gaps, oldestFirst bool, measures int) row {
	return row{gaps: gaps, oldestFirst: oldestFirst, anchors: make([]anchor, measures)}
}

// push adds a bucket and returns the buckets that are complete, valid until the next call.
func (r *row) push(b Bucket) []Bucket {
	number := r.first + len(r.held)
	if r.gaps > Null && slices.ContainsFunc(b.Values, isGap) {
		b.Values = slices.Clone(b.Values) // do not write to the caller's slice
	}
	r.held = append(r.held, b)
	decided := number + 1
	for i := range r.anchors {
		a := &r.anchors[i]
		if s := b.Values[i]; !isGap(s) {
			r.reach(i, a, b)
			*a = anchor{found: true, start: b.Start, summary: s, open: number + 1}
		} else if !r.waits(a) {
			if r.gaps == Previous && a.found {
				b.Values[i] = carry(s, a.summary)
			}
			a.open = number + 1
		}
		decided = min(decided, a.open)
	}
	return r.take(decided - r.first)
}

// waits reports whether a later bucket may fill the gap after an anchor.
func (r *row) waits(a *anchor) bool {
	return r.gaps == Previous && !r.oldestFirst || r.gaps == Linear && a.found
}

// reach fills the gaps of a measure between its anchor and the next bucket that has it.
func (r *row) reach(measure int, a *anchor, b Bucket) {
	for n := a.open - r.first; n < len(r.held)-1; n++ {
		gap := &r.held[n]
		s := &gap.Values[measure]
		if r.gaps == Previous {
			*s = carry(*s, b.Values[measure])
			continue
		}
		at := float64(gap.Start.Sub(a.start)) / float64(b.Start.Sub(a.start))
		*s = between(*s, a.summary, b.Values[measure], at)
	}
}

// rest returns the remaining buckets; their gaps stay.
func (r *row) rest() []Bucket { return r.take(len(r.held)) }

func (r *row) take(n int) []Bucket {
	r.ready = append(r.ready[:0], r.held[:n]...)
	r.held = slices.Delete(r.held, 0, n)
	r.first += n
	return r.ready
}

func isGap(s Summary) bool { return s.Count == 0 }

// carry fills a gap with the aggregates of another bucket.
func carry(gap, from Summary) Summary {
	return between(gap, from, from, 0)
}

// between fills a gap by linear interpolation between a (at 0) and b (at 1).
func between(gap, a, b Summary, at float64) Summary {
	mix := func(a, b float64) float64 {
		if a == b {
			return a
		}
		return a*(1-at) + b*at // b-a may be infinite
	}
	gap.Mean = mix(a.Mean, b.Mean)
	gap.Min, gap.Max = mix(a.Min, b.Min), mix(a.Max, b.Max)
	gap.First, gap.Last = mix(a.First, b.First), mix(a.Last, b.Last)
	gap.Filled = true
	return gap
}
