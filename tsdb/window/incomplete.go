package window

import (
	"math"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// Incomplete is what is stored of a bucket that the program cannot compute. A program that reads a rollup by the
// catalogue, without its Go type, lacks the functions of the measures (see package dynamic). So it does not know the
// numbers of a bucket that is open, or that changed since a worker stored it. The bucket's own Values then have these
// aggregates in Summary.Missing.
//
// The neighbours of such a bucket are incomplete where an aggregate also depends on its numbers: Delta and Increase of
// the bucket after it, and Integral of both.
type Incomplete struct {
	// Changed is when points of the bucket, or of its neighbour, were last written or deleted. It is rounded up to the
	// minute, and to the end of a bucket that was still open then, but it is never later than the read.
	Changed time.Time
	// Points and Bad are those of the stored bucket; 0 if none is stored.
	Points, Bad int64
	// Values are the summaries of the stored bucket. They only have its own numbers: Delta, Increase and Integral lack
	// what joins them with the neighbours.
	Values []Summary
}

// incompleteJSON is an Incomplete in JSON.
type incompleteJSON struct {
	Changed instant.Time       `json:"changed"`
	Points  int64              `json:"points"`
	Bad     int64              `json:"bad,omitempty"`
	Values  map[string]Summary `json:"values"`
}

func (n *Incomplete) json() *incompleteJSON {
	if n == nil {
		return nil
	}
	return &incompleteJSON{instant.Time{Time: n.Changed}, n.Points, n.Bad, byName(n.Values)}
}

// changed returns when a bucket changed whose numbers are not known; the zero time if they are only older than the
// measure.
func (b *Bucket) changed() time.Time {
	if b.Incomplete == nil {
		return time.Time{}
	}
	return b.Incomplete.Changed
}

// lack marks aggregates of a measure as not known, since a neighbour changed.
func (b *Bucket) lack(measure int, lost Aggregates, changed time.Time) {
	s := &b.Values[measure]
	if lost &= s.Aggregates &^ s.Missing; lost == 0 {
		return
	}
	if b.Incomplete == nil {
		b.Incomplete = &Incomplete{Points: b.Points, Bad: b.Bad, Values: slices.Clone(b.Values)}
	}
	if changed.After(b.Incomplete.Changed) {
		b.Incomplete.Changed = changed
	}
	nan := math.NaN()
	s.Missing |= lost
	s.Aggregates &^= lost
	var exact exactNumbers
	if s.exact != nil {
		exact = *s.exact
		s.exact = &exact
	}
	if lost.any(Delta) {
		s.Delta, exact.Delta = nan, decimal{}
	}
	if lost.any(Increase) {
		s.Increase, s.Rate, s.Resets, exact.Increase = nan, nan, 0, decimal{}
	}
	if lost.any(Delta | Increase) {
		s.Since = time.Time{}
	}
	if lost.any(Integral) {
		s.Integral, s.TimeMean, s.Covered = nan, nan, Span{}
	}
}

// part marks what the held buckets lack because the numbers that come next are not known.
func (r *row) part(measure int, changed time.Time) {
	a := &r.anchors[measure]
	if changed.IsZero() {
		return
	}
	from := a.open
	if a.found {
		from = a.number
	}
	for n := max(from, r.first); n < r.first+len(r.held); n++ {
		r.held[n-r.first].lack(measure, r.lost(n == a.number && a.found && !r.oldestFirst), changed)
	}
}

// lost returns the aggregates that are not known next to unknown numbers. after says that the bucket has the next
// number after these.
func (r *row) lost(after bool) Aggregates {
	if after {
		return joined
	}
	return Integral
}
