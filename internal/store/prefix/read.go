// Package prefix reads the points of all entities under a prefix between two times: by entity or by time.
package prefix

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// Read is a read of the points under a prefix. The caller has admitted it and counted it against the tenant's limits.
type Read struct {
	Rows           *points.Rows
	Prefix         string // the path of the prefix; "" is all entities
	Oldest, Newest int64  // in units, both included
	Reverse        bool   // oldest first
	Most           int    // how many points the caller takes at most; 0 is all
	After          *Place // ByEntity starts behind it; nil is the first point
	Options        points.Options
	// Slots holds an element for each request of NewestOfEach under way, if visit sends requests of its own; nil for
	// none.
	Slots skipscan.Slots

	Slice int64 // how many points ByTime holds at most; 0 is sliceRows
}

// Place is the place of a point in the order of ByEntity.
type Place struct {
	Path  string
	Units int64
	ID    string
}

// NewestOfEach yields the n newest visible points of each entity, in the order of entities and newest first, until
// visit returns false. Without values the points have no payloads.
func (r *Read) NewestOfEach(ctx context.Context, n int, values bool, visit func(dataset.Hit) bool) error {
	return skipscan.Scan(ctx, r.Rows, skipscan.Query{Prefix: r.Prefix, Each: n, Values: values, Slots: r.Slots, Options: r.Options}, visit)
}

// entities calls visit with the newest point, without its payload, of each entity that may have points in the interval.
// The entities are in order. If few is not 0, the first few are searched for without many more; the others are where
// these have no points in the interval, and there may be many such.
func (r *Read) entities(ctx context.Context, after string, few int, slots skipscan.Slots, visit func(dataset.Hit) bool) error {
	found, last, stopped := 0, after, false
	scan := func(few int) error {
		q := skipscan.Query{Prefix: r.Prefix, After: last, Few: few, Slots: slots, Options: r.Options}
		return skipscan.Scan(ctx, r.Rows, q, func(h dataset.Hit) bool {
			found, last = found+1, h.Path
			stopped = h.Units >= r.Oldest && !visit(h)
			return !stopped && found != few
		})
	}
	if few > 0 {
		if err := scan(few); err != nil || stopped || found < few {
			return err
		}
	}
	return scan(0)
}

// span returns the points of an entity between two times.
func (r *Read) span(path string, oldest, newest int64) points.Span {
	return points.Span{Path: path, Oldest: oldest, Newest: newest, Reverse: r.Reverse, Long: true}
}

// behind returns the points of the place's entity behind the place.
func (r *Read) behind(p *Place) points.Span {
	s := r.span(p.Path, r.Oldest, r.Newest)
	switch {
	case r.Rows.D.Identity:
		s.After = r.Rows.Key(p.Path, p.Units, p.ID) // other points of this time may follow
	case !r.Reverse:
		s.Newest = p.Units - 1
	case p.Units == r.Newest: // the next unit may overflow
		s.Oldest, s.Newest = 1, 0
	default:
		s.Oldest = p.Units + 1
	}
	return s
}
