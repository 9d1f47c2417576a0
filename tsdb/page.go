package tsdb

import (
	"context"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Page is some of the points of an entity in an interval, in an order, and where the next page starts. The zero Page is that of
// an interval without points.
type Page[T any] struct {
	// Points are as many as were asked for, or fewer where the query ends or the payloads are large.
	Points []Point[T] `json:"points"`
	// Next is the cursor of the next page: printable text that needs no escaping in a URL. It is empty where the query has
	// no more points.
	Next string `json:"next,omitempty"`
}

// A page ends early, and another one follows, where its payloads would be more bytes than maxPageBytes together.
const (
	maxPage      = 10_000
	maxPageBytes = 32 << 20
)

// Page returns the first points of an entity in an interval, newest first or in another Order; with the cursor of a page, those
// that come after it. size is how many, 1 to 10,000; a page has fewer where there are no more, or where their payloads are
// over 32 MiB together. The size may change from page to page. Only Next says whether there are more, not the number of points.
//
// A cursor marks the last point of its page by its time, and its ID where it has one. So points that arrive, are deleted or
// expire between two pages repeat no point and skip none: newest first, what arrives in front of the page is not seen, and the pages do not shift;
// oldest first, they go on into what has arrived until they reach the end as it then is. What is visible is decided page by
// page. A cursor holds nothing on the server and does not expire.
//
// A cursor works for the tenant, the dataset, the entity, the interval and the order that it came from, and is refused for any
// other, with ErrCursor. It does not contain them: give the same ones with each page. Intervals are compared by their times. One
// that is computed from the current time differs with each call; compute it once, for the first page.
//
// With CursorKeys in the store's configuration cursors are sealed: a client can neither read nor make nor change one. Without
// keys a cursor shows the time of its page's last point and can be forged. A forged one starts a page elsewhere within the
// same interval of the same entity and tenant, and reaches nothing outside of it. A store with keys refuses cursors without a seal.
//
// A point whose payload does not decode keeps its place, with a zero value, and the error is then PointErrors: the page and
// its Next are good. With any other error there is no page. It costs one request for one row more than size, whose payload
// is transferred and not decoded: it tells whether there are more. It is bounded by the timeout of reads, and its memory by
// the page.
func (r *Repository[T]) Page(ctx context.Context, e Entity, in Interval, size int, cursor string, opts ...ReadOption) (page Page[T], err error) {
	ctx, op := r.begin(ctx, telemetry.Page)
	defer func() {
		op.Returned(len(page.Points))
		op.End(err)
	}()
	o, err := r.readOptions(ctx, e, orderOption, opts)
	if err == nil {
		err = checkPage(in, size)
	}
	if err != nil {
		return Page[T]{}, err
	}
	scope := r.scope(e, in, o.order)
	s := points.Span{Path: e.path, Oldest: scope.Oldest, Newest: scope.Newest, Limit: size + 1, Reverse: scope.Reverse}
	if cursor != "" {
		if err := r.resume(&s, scope, cursor); err != nil {
			return Page[T]{}, err
		}
	}
	done, err := r.readSpan(in)
	if err != nil {
		return Page[T]{}, err
	}
	defer done()
	list := make([]Point[T], 0, min(size, 64))
	var bad PointErrors
	bytes, more := 0, false
	err = r.rows.Scan(ctx, s, func(f *points.Found) bool {
		bytes += len(f.Payload)
		if more = len(list) == size || len(list) > 0 && bytes > maxPageBytes; more {
			return false
		}
		p, err := r.decode(f.Hit)
		list = append(list, p)
		if err != nil {
			bad = append(bad, err)
		}
		return true
	})
	if err != nil {
		return Page[T]{}, err
	}
	page = Page[T]{Points: list}
	if more {
		last, err := r.schema.d.Precision.Units(list[len(list)-1].Time)
		if err != nil {
			return Page[T]{}, err
		}
		page.Next = r.store.cursors.WriteEvent(scope, last, list[len(list)-1].ID)
	}
	if bad != nil {
		return page, bad
	}
	return page, nil
}

// checkPage refuses an interval that ends before it starts, and a size that is out of bounds.
func checkPage(in Interval, size int) error {
	if err := in.Check(); err != nil {
		return err
	}
	return checkPageSize(size)
}

func checkPageSize(size int) error {
	if size < 1 || size > maxPage {
		return invalid.New(ErrInvalid, "size", strconv.Itoa(size), "1 to "+strconv.Itoa(maxPage))
	}
	return nil
}

// resume cuts off of s what comes up to the place of a cursor.
func (r *Repository[T]) resume(s *points.Span, scope cursor.Scope, text string) error {
	if r.schema.d.Identity {
		at, id, err := r.store.cursors.ReadEvent(scope, text)
		if err == nil {
			s.After = r.rows.Key(s.Path, at, id) // others of that time may come behind it
		}
		return err
	}
	at, err := r.store.cursors.ReadTime(scope, text)
	switch {
	case err != nil:
		return err
	case !scope.Reverse:
		s.Newest = at - 1
	case at == scope.Newest: // which may be the last time there is
		s.Oldest, s.Newest = 1, 0
	default:
		s.Oldest = at + 1
	}
	return nil
}
