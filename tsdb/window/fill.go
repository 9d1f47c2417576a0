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

// Fill returns a sequence of buckets with what Options.Gaps puts into its gaps, and Partial set on those that the interval
// of the frame covers in part. It is what [Aggregator.Over] does with its own buckets, for buckets that come from elsewhere:
// they are buckets of the frame's grid that hold something, each once, in the frame's order, with its measures in theirs. A
// sequence of others ends with [ErrInvalid] or [ErrOrder]; their errors are passed on, and any but a *tsdb.PointError is
// the last pair.
//
// Memory: [LeaveOut] and [Null], and [Previous] from the oldest on, keep nothing. [Linear], and [Previous] from the newest on, hold
// back the buckets from a gap up to the next bucket that has the measure, at most Options.MaxFilled of them.
func Fill(buckets iter.Seq2[Bucket, error], frame Frame, opts Options) iter.Seq2[Bucket, error] {
	return fill(buckets, frame, opts, false)
}

// fill is Fill; buckets that are trusted are known to be the grid's.
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

// filler is one run of Fill.
type filler struct {
	Frame
	opts     Options
	trusted  bool
	yield    func(Bucket, error) bool
	stopped  bool      // by the caller
	edge     time.Time // up to where the buckets are complete, seen in the frame's order
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

// begin sets the edge to the near end of the interval, in whole buckets, and returns its far end, zero where it has none.
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

// take takes the next bucket that holds something.
func (f *filler) take(b Bucket) error {
	if len(b.Values) != len(f.Measures) {
		return invalid.New(ErrInvalid, "values of a bucket", strconv.Itoa(len(b.Values)), strconv.Itoa(len(f.Measures))+", one a measure")
	}
	if !f.trusted {
		if start, next := f.Grid.Bucket(b.Start); !inCalendar(b.Start) || !start.Equal(b.Start) || !next.Equal(b.End) {
			return invalid.New(ErrInvalid, "bucket", stamp(b.Start)+" to "+stamp(b.End), "one of the grid "+f.Grid.String())
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

// insert puts an empty bucket wherever there is none before t.
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

// put puts a bucket at the end of the row, and yields what is ready of it.
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

// row is the buckets that wait for what their gaps are filled with. Numbers of buckets count from the start of the run.
type row struct {
	gaps        Gaps
	oldestFirst bool
	held, ready []Bucket
	first       int      // number of held[0]
	anchors     []anchor // one a measure
}

// anchor is the last bucket that has a measure.
type anchor struct {
	found   bool
	start   time.Time
	summary Summary
	open    int // number of the first bucket after it that is not decided
}

func newRow(gaps Gaps, oldestFirst bool, measures int) row {
	return row{gaps: gaps, oldestFirst: oldestFirst, anchors: make([]anchor, measures)}
}

// push adds a bucket and returns those that are decided, valid until the next call.
func (r *row) push(b Bucket) []Bucket {
	number := r.first + len(r.held)
	if r.gaps > Null && slices.ContainsFunc(b.Values, isGap) {
		b.Values = slices.Clone(b.Values) // the caller's are not written to
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

// waits reports whether a gap behind an anchor may yet be filled from a bucket that has not come.
func (r *row) waits(a *anchor) bool {
	return r.gaps == Previous && !r.oldestFirst || r.gaps == Linear && a.found
}

// reach fills the gaps of a measure between its anchor and the bucket that has it next.
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

// rest returns the buckets whose gaps stay.
func (r *row) rest() []Bucket { return r.take(len(r.held)) }

func (r *row) take(n int) []Bucket {
	r.ready = append(r.ready[:0], r.held[:n]...)
	r.held = slices.Delete(r.held, 0, n)
	r.first += n
	return r.ready
}

func isGap(s Summary) bool { return s.Count == 0 }

// carry fills a gap with what another bucket has.
func carry(gap, from Summary) Summary {
	return between(gap, from, from, 0)
}

// between fills a gap with what lies between two buckets, at 0 for a and 1 for b.
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
