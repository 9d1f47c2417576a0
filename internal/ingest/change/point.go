// Package change remembers what a writer stored last of each entity, so that points that say nothing new are left out.
package change

import (
	"bytes"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Point is a point of a sink that stores on change. It is the Caller of its own write.
type Point struct {
	// Pending is its write. It is nil once the writer has taken it, or once it will not be stored.
	Pending *delivery.Pending
	// Done gets the outcome; nil if nobody waits.
	Done func(bt.Outcome)
	// Time is the time of the point.
	Time time.Time
	// Fields are the names of its fields, sorted; nil if it has all fields of its entity.
	Fields []string
	// Dataset is the dataset in the tenant's class.
	Dataset *dataset.Dataset
	// Memory is where it is compared.
	Memory *Memory

	payload []byte
	taken   tenancy.Generation
	state   state
	stream  *stream  // that it is or was part of
	before  *Point   // the last point of the stream before it, for Undo; until it has an outcome
	waiting []*Point // left out, until it has an outcome
	waits   bool     // it is in another's waiting
	waited  int      // the bytes that it counts there
	tenant  string
}

// state is what became of a point.
type state uint8

const (
	leftOut state = iota // it says nothing new
	given                // it was given to the writer, and has no outcome
	stored               // it is stored or in the journal
	failed               // it is not stored, or nobody knows
)

// Silent reports whether nobody waits for the outcome.
func (p *Point) Silent() bool { return p.Done == nil }

// Ended implements journal.Caller.
func (p *Point) Ended(o bt.Outcome) {
	p.Memory.settle(p, o.State == bt.Stored || o.State == bt.Journaled)
	if p.Done != nil {
		p.Done(o)
	}
}

// Refused ends a point that the writer has not taken. It does not call Done.
func (p *Point) Refused() { p.Memory.settle(p, false) }

func (p *Point) place() place {
	return place{p.Pending.Item.Tenant, p.Pending.Dataset(), p.Pending.Path()}
}

// overlaps reports whether two points may have a field in common.
func (p *Point) overlaps(o *Point) bool {
	if p.Fields == nil || o.Fields == nil {
		return true
	}
	return slices.ContainsFunc(p.Fields, func(name string) bool {
		_, found := slices.BinarySearch(o.Fields, name)
		return found
	})
}

// newest returns the point with the greatest time, of several the last. Nil ones do not count.
func newest(points ...*Point) (best *Point) {
	for _, p := range points {
		if p != nil && (best == nil || !p.Time.Before(best.Time)) {
			best = p
		}
	}
	return best
}

// Rule decides whether a point says something new.
type Rule struct {
	// AtLeast is the time after which a value is stored again; 0 means never.
	AtLeast time.Duration
	// Same compares the payload of the last stored point with the next point. It is not called if the payloads are
	// equal. Nil means that they have to be.
	Same func(last []byte) bool
}

// relation is what a point says after the last one of its stream.
type relation uint8

const (
	differs relation = iota
	same
	aged // the same, after AtLeast
	late // older than the last one
)

// compare returns what p says after last, which is nil if there is none.
func (r *Rule) compare(last, p *Point) relation {
	switch {
	case last == nil:
		return differs
	case p.Time.Before(last.Time):
		return late
	case bytes.Equal(last.payload, p.payload):
	case p.Time.Equal(last.Time), r.Same == nil, !r.Same(last.payload):
		return differs
	}
	if r.old(last, p) {
		return aged
	}
	return same
}

// old reports whether p comes AtLeast after another point.
func (r *Rule) old(last, p *Point) bool { return r.AtLeast > 0 && p.Time.Sub(last.Time) >= r.AtLeast }
