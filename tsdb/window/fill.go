package window

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// joining says how to join the buckets of a frame.
type joining struct {
	rules []rule
	// ends returns the nearest number of each measure before or after the frame's interval, if it is needed.
	ends func(before bool, needed []bool) ([]anchor, error)
}

// fill returns a sequence of buckets with its gaps filled as Options.Gaps says. It sets Partial on
// buckets that the frame's interval covers only in part. If j is not nil, it joins the buckets, too.
//
// The buckets are buckets of the frame's grid that are not empty, with the values in the order of the frame's measures.
// fill changes these values. If the buckets are not in the frame's order, each once, the sequence ends with an
// error. It passes on errors of the sequence. Any error except a *tsdb.PointError is the last pair.
//
// Memory: [LeaveOut] and [Null] hold no buckets back, nor does [Previous] with the oldest first. [Linear], and
// [Previous] with the newest first, hold back the buckets of a gap until the next bucket that has the measure, at
// most Options.MaxFilled of them; one more ends the sequence with [ErrTooManyFilled].
func fill(buckets iter.Seq2[Bucket, error], frame frame, opts Options, j *joining) iter.Seq2[Bucket, error] {
	return func(yield func(Bucket, error) bool) {
		f := filler{frame: frame, opts: opts, joining: j, yield: yield}
		err := frame.check()
		if err == nil {
			err = opts.check()
		}
		if err == nil {
			err = f.run(buckets)
		}
		if err != nil && !f.stopped {
			yield(Bucket{}, err)
		}
	}
}

// filler is one loop over the result of fill.
type filler struct {
	frame
	opts     Options
	joining  *joining
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
	beyond, err := f.neighbours(f.Order != tsdb.OldestFirst)
	if err != nil {
		return err
	}
	for i, n := range beyond {
		if n.found {
			n.number = f.row.first + len(f.row.held)
			f.row.reach(i, n)
		}
		f.row.part(i, n.changed)
	}
	f.release(f.row.rest())
	return nil
}

// neighbours returns the nearest number of each measure before or after the interval, if anything needs them.
func (f *filler) neighbours(before bool) ([]anchor, error) {
	if f.joining == nil || f.joining.ends == nil {
		return nil, nil
	}
	needed := f.needed(before)
	if !slices.Contains(needed, true) {
		return nil, nil
	}
	return f.joining.ends(before, needed)
}

// needed reports for each measure whether a number before or after the interval changes its buckets.
func (f *filler) needed(before bool) (needed []bool) {
	from, hasFrom := f.Interval.Start()
	to, hasTo := f.Interval.End()
	if hasFrom && hasTo && !from.Before(to) || before && !hasFrom || !before && !hasTo {
		return nil
	}
	fills := f.opts.Gaps == Linear || before && f.opts.Gaps == Previous
	for _, r := range f.joining.rules {
		needed = append(needed, fills || r.needsNext() || before && r.Aggregates.any(joined))
	}
	return needed
}

// begin sets the edge to the near end of the interval, in whole buckets, and returns its far end, or zero if it has
// none.
func (f *filler) begin() (far time.Time, err error) {
	f.row = row{
		gaps: f.opts.Gaps, maxGap: f.opts.MaxGap, oldestFirst: f.Order == tsdb.OldestFirst,
		rules: make([]rule, len(f.Measures)), anchors: make([]anchor, len(f.Measures)),
	}
	f.row.from, _ = f.Interval.Start()
	f.row.to, _ = f.Interval.End()
	if f.joining != nil {
		copy(f.row.rules, f.joining.rules)
	}
	seeds, err := f.neighbours(f.Order == tsdb.OldestFirst)
	copy(f.row.anchors, seeds)
	if err != nil || f.opts.Gaps == LeaveOut {
		return far, err
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
			b.Values[i] = f.row.rules[i].empty(name)
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
	over := len(f.row.held) - f.opts.maxFilled()
	switch {
	case over <= 0 || f.stopped:
	case f.opts.Gaps > Null:
		return f.tooMany()
	default:
		f.release(f.row.giveUp(over))
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
