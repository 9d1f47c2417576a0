package inside

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Points are one tenant's points of one dataset as they are stored, for code that moves them without their Go type.
type Points interface {
	// Read visits the visible points of a selection in the order of their rows, until visit returns an error, which
	// Read returns. A point's payload is valid only during the visit. ctx bounds the whole call, and the timeout of
	// scans each of its requests, including the visits during it.
	Read(ctx context.Context, s Selection, visit func(Point) error) error
	// Write stores points, no two of them in one row, on the path of all writes, and returns their outcomes in order. A
	// point that cannot be stored does not affect the others. With dry it only checks them and sends nothing.
	Write(ctx context.Context, points []Point, dry bool) []bt.Outcome
}

// Point is one point as it is stored.
type Point struct {
	Path       string // of the entity
	Units      int64  // the time in units of the dataset's precision
	ID         string // in a dataset whose points have an identity; else empty
	Class, Tag string // of the payload
	Payload    []byte
	Unread     error // why no tag of the payload is known to the catalogue; Payload is nil then
}

// Selection says which points to read.
type Selection struct {
	Entity         string // the path of the only entity; empty for all
	Oldest, Newest int64  // in units, both inclusive
	After          *Point // the last point read; nil means from the start. Only its path, time and ID count
}
