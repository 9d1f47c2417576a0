package inside

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Points are one tenant's points of one dataset as they are stored, for those who move them without their Go type.
type Points interface {
	// Read visits the visible points of a selection in the order of their rows, until visit returns an error, which it
	// returns. A point's payload is only the visitor's during the visit. It is bounded by ctx, each of its requests by the
	// timeout of scans, which includes what the visits take.
	Read(ctx context.Context, s Selection, visit func(Point) error) error
	// Write stores points, of which no two have one row, by the way of all writes, and returns what became of each, in their
	// order. One that cannot be stored does not hinder the others. With dry it checks them, and sends nothing.
	Write(ctx context.Context, points []Point, dry bool) []bt.Outcome
}

// Point is one point as it is stored.
type Point struct {
	Path       string // of the entity
	Units      int64  // the time in units of the dataset's precision
	ID         string // in a dataset whose points have an identity; else empty
	Class, Tag string // of the payload
	Payload    []byte
	Unread     error // why the payload is of no tag that the catalogue knows; Payload is nil then
}

// Selection is which points to read.
type Selection struct {
	Entity         string // the path of the only entity; empty for all
	Oldest, Newest int64  // in units, both included
	After          *Point // the last one that was read; nil from the start. Only path, time and ID count
}
