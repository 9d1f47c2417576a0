package window

import (
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// row is the queue of buckets that wait for numbers of other buckets: to fill their gaps, and to join them. Numbers of
// buckets count from the start of the run.
type row struct {
	gaps        Gaps
	maxGap      time.Duration
	oldestFirst bool
	from, to    time.Time // the interval, zero where it is open
	rules       []rule    // one per measure; with the zero rule, its buckets are only filled
	held, ready []Bucket
	first       int      // number of held[0]
	anchors     []anchor // one per measure
}

// anchor is the last bucket that has a measure.
type anchor struct {
	found   bool
	number  int
	start   time.Time
	end     time.Time
	summary Summary
	open    int // number of the first bucket that a later number may still change
	// changed is set if the last numbers before the next bucket are not known, as their bucket changed then.
	changed time.Time
}

// neighbour is a number outside of the interval, as a bucket of its own.
func neighbour(p reading, name string, r *rule, decimals int) anchor {
	var a accumulator
	a.add(p, r, true)
	return anchor{found: true, number: -1, start: p.t, end: p.t, summary: a.summary(name, r, decimals, true)}
}

// push adds a bucket and returns the buckets that are complete, valid until the next call.
func (r *row) push(b Bucket) []Bucket {
	number := r.first + len(r.held)
	r.held = append(r.held, b)
	decided := number + 1
	for i := range r.anchors {
		a := &r.anchors[i]
		if s := b.Values[i]; s.Missing.any(Count | Ends) {
			// It has numbers that are not known: nothing is joined or filled across it.
			r.part(i, b.changed())
			*a = anchor{open: number + 1, changed: b.changed()}
		} else if !isGap(s) {
			if !a.changed.IsZero() {
				r.held[len(r.held)-1].lack(i, r.lost(r.oldestFirst), a.changed)
			}
			r.reach(i, anchor{number: number, start: b.Start, end: b.End, summary: s})
			*a = anchor{found: true, number: number, start: b.Start, end: b.End, summary: s, open: number + 1}
			if r.ahead(i) {
				a.open = number
			}
			r.last(i, &b, &s, time.Time{})
		} else {
			if !a.changed.IsZero() {
				r.held[len(r.held)-1].lack(i, Integral, a.changed)
			}
			if r.oldestFirst && a.found {
				r.last(i, &b, &a.summary, time.Time{})
			}
			if r.gaps == Previous && r.oldestFirst && a.found && r.carries(b.Start, a.end, &a.summary) {
				b.Values[i] = carry(b.Values[i], a.summary)
			}
			if !r.waits(i, b.Start) {
				a.open = number + 1
			}
		}
		decided = min(decided, a.open)
	}
	return r.take(decided - r.first)
}

// ahead reports whether a bucket that has a measure waits for the measure's next number.
func (r *row) ahead(measure int) bool {
	rule := &r.rules[measure]
	return rule.needsNext() || !r.oldestFirst && (rule.lasts() || rule.Aggregates.any(Delta|Increase))
}

// waits reports whether the next number of a measure may change the buckets from its anchor to the one that starts at a
// time, which does not have the measure.
func (r *row) waits(measure int, start time.Time) bool {
	a := &r.anchors[measure]
	rule := &r.rules[measure]
	if !r.oldestFirst && rule.lasts() {
		return true // for the state or the number that lasts into them
	}
	if r.gaps == Previous && !r.oldestFirst {
		for done := !a.found || !r.ahead(measure); r.maxGap > 0 && done && a.open < r.first+len(r.held); a.open++ {
			if r.held[a.open-r.first].Start.Sub(start) <= r.maxGap {
				break
			}
		}
		return true
	}
	if !a.found {
		return false
	}
	var reached time.Duration // the least time between the anchor's number and the next one
	if r.oldestFirst {
		reached = start.Sub(lastTime(&a.summary, a.end))
	} else {
		reached = firstTime(&a.summary, a.start).Sub(start)
	}
	within := func(maxGap time.Duration) bool { return maxGap == 0 || reached <= maxGap }
	if r.gaps == Linear && within(r.maxGap) {
		return true
	}
	return rule.needsNext() && within(rule.MaxGap) || !r.oldestFirst && rule.Aggregates.any(Delta|Increase)
}

// reach fills and joins what is between the anchor of a measure and the next bucket that has it.
func (r *row) reach(measure int, b anchor) {
	a := &r.anchors[measure]
	held := func(n int) *Bucket {
		if n < r.first || n >= r.first+len(r.held) {
			return nil
		}
		return &r.held[n-r.first]
	}
	upTo, from := min(b.number, r.first+len(r.held)), a.open
	if a.found {
		from = max(from, a.number+1)
	}
	for n := from; n < upTo; n++ {
		gap := held(n)
		s := &gap.Values[measure]
		switch {
		case r.gaps == Previous && !r.oldestFirst:
			if r.carries(gap.Start, b.end, &b.summary) {
				*s = carry(*s, b.summary)
			}
		case r.gaps == Linear && a.found && r.bridges(a, &b):
			at := instant.Seconds(a.start, gap.Start) / instant.Seconds(a.start, b.start)
			*s = between(*s, a.summary, b.summary, min(max(at, 0), 1))
		}
	}
	rule := &r.rules[measure]
	if rule.lasts() {
		r.lastBetween(measure, a, &b)
	}
	if !a.found || !rule.Aggregates.any(joined) {
		return
	}
	older, newer := a, &b
	if !r.oldestFirst {
		older, newer = newer, older
	}
	last, first := older.summary.last(), newer.summary.first()
	if at := held(newer.number); at != nil {
		at.Values[measure].follow(rule, last)
		if rule.Aggregates.any(Durations) {
			at.Values[measure].States.enter(older.summary.States.last, newer.summary.States.first)
		}
	}
	if !rule.needsNext() || !rule.connected(last, first) {
		return
	}
	for n := max(a.number, r.first); n <= b.number; n++ {
		if at := held(n); at != nil {
			start, end := r.clip(at)
			at.Values[measure].cover(rule, last, first, start, end)
		}
	}
}

// clip returns the span of a bucket in the interval.
func (r *row) clip(b *Bucket) (from, to time.Time) { return clip(b.Start, b.End, r.from, r.to) }

// clip returns the part of a span of time in another one, which the zero time leaves open at either end.
func clip(from, to, start, end time.Time) (time.Time, time.Time) {
	if from.Before(start) {
		from = start
	}
	if !end.IsZero() && end.Before(to) {
		to = end
	}
	return from, to
}

// carries reports whether Previous fills a bucket that starts at a time from an older summary.
func (r *row) carries(start, olderEnd time.Time, older *Summary) bool {
	return r.maxGap == 0 || start.Sub(lastTime(older, olderEnd)) <= r.maxGap
}

// bridges reports whether Linear fills the buckets between two that have the measure.
func (r *row) bridges(a, b *anchor) bool {
	if !r.oldestFirst {
		a, b = b, a
	}
	return r.maxGap == 0 || firstTime(&b.summary, b.start).Sub(lastTime(&a.summary, a.end)) <= r.maxGap
}

// lastTime and firstTime return the time of a summary's newest and oldest number, or the edge of its bucket if it does
// not have them.
func lastTime(s *Summary, edge time.Time) time.Time {
	if s.LastTime.IsZero() {
		return edge
	}
	return s.LastTime
}

func firstTime(s *Summary, edge time.Time) time.Time {
	if s.FirstTime.IsZero() {
		return edge
	}
	return s.FirstTime
}

// giveUp returns the first n buckets as they are, although a later number may change them.
func (r *row) giveUp(n int) []Bucket {
	for i := range r.anchors {
		r.anchors[i].open = max(r.anchors[i].open, r.first+n)
	}
	return r.take(n)
}

// rest returns the remaining buckets; their gaps stay.
func (r *row) rest() []Bucket { return r.take(len(r.held)) }

func (r *row) take(n int) []Bucket {
	r.ready = append(r.ready[:0], r.held[:n]...)
	for i := range r.rules {
		if r.rules[i].Aggregates.any(Durations) {
			for j := range r.ready {
				from, to := r.clip(&r.ready[j])
				states := r.ready[j].Values[i].States
				states.Unknown = spanOf(from, to).sub(states.known())
			}
		}
	}
	r.held = slices.Delete(r.held, 0, n)
	r.first += n
	return r.ready
}

func isGap(s Summary) bool { return s.Count == 0 }

// carry fills a gap with the aggregates of another bucket.
func carry(gap, from Summary) Summary {
	gap = between(gap, from, from, 0)
	if x := from.exact; x != nil {
		gap.exact = &exactNumbers{Min: x.Min, Max: x.Max, First: x.First, Last: x.Last}
	}
	return gap
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
