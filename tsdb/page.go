package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Page is one page of points and the cursor of the next page. The zero Page is an empty last page.
type Page[T any] struct {
	// Points are the points of the page: size of them, or fewer at the end or if the payloads are large.
	Points []Point[T] `json:"points"`
	// Next is the cursor of the next page: printable text that needs no escaping in a URL. It is empty on the last
	// page.
	Next string `json:"next,omitempty"`
}

// Page returns one page of the points of an entity in an interval, newest first by default; it takes an Order. An empty
// cursor means the first page; the Next of a page continues after it. size is 1 to 10,000 and may differ from page to
// page. A page is shorter at the end, or if its payloads would exceed 32 MiB. Only an empty Next means that there are
// no more points.
//
// A cursor marks the last point of its page by time and ID. Points that are written, deleted or expire between two
// pages therefore never cause a repeated or a skipped point. A point that arrives in the part that was already read
// does not appear later: newest first, new points do not appear; oldest first, they do. Each page decides which points
// have expired. A cursor holds no state on the server and does not expire.
//
// A cursor is valid only for the tenant, dataset, entity, interval and order of its page; otherwise the error is
// ErrCursor. It does not contain them, so pass the same arguments for each page. Intervals are compared by their times:
// compute an interval that depends on the current time once, for the first page.
//
// With CursorKeys in StoreOptions, cursors are sealed: a client can neither read, make nor change one, and the store
// refuses unsealed ones. Without keys, a cursor shows the time of its page's last point and can be forged. A forged
// cursor can start a page elsewhere in the same interval of the same entity and tenant, and reaches nothing else.
//
// A point whose payload does not decode keeps its place, with a zero value; the error is then PointErrors, and the page
// and its Next are valid. For any other error there is no page. It costs one request for size+1 rows; the payload of
// the last row is transferred but not decoded. The read timeout bounds it, and memory is that of the page.
func (r *Repository[T]) Page(ctx context.Context, e Entity, in Interval, size int, cursor string, opts ...ReadOption) (page Page[T], err error) {
	ctx, op := r.part().begin(ctx, telemetry.Page)
	defer func() {
		op.Returned(len(page.Points))
		op.End(err)
	}()
	pg, done, err := r.part().beginPage(ctx, e, in, size, cursor, opts)
	if err != nil {
		return Page[T]{}, err
	}
	defer done()
	h := History[T]{Points: make([]Point[T], 0, min(size, 64))}
	next, err := pg.Read(ctx, func(hit dataset.Hit) { r.add(&h, hit) })
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Points: h.Points, Next: next}, h.Err
}

func (a *access) beginPage(ctx context.Context, e Entity, in Interval, size int, cursor string, opts []ReadOption) (pg points.Page, done func(), err error) {
	s, _, err := a.spanOf(ctx, e, in, orderOption, opts)
	if err == nil {
		pg, err = a.rows.OpenPage(s, size, cursor)
	}
	if err == nil {
		done, err = a.readSpan(in)
	}
	return pg, done, err
}
