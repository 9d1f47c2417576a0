package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// EntityPage is one page of entities, in the order of Entity.Compare, and the cursor of the next page. The zero EntityPage is an empty last page.
type EntityPage struct {
	// Entities are the entities of the page: size of them, or fewer at the end.
	Entities []Entity `json:"entities"`
	// Next is the cursor of the next page: printable text that needs no escaping in a URL. It is empty on the last page.
	Next string `json:"next,omitempty"`
}

// PageUnder returns the points of LatestUnder page by page. An empty cursor means the first page; the Next of a page
// continues after it. size is 1 to 10,000 entities. It and the options may differ from page to page. A page is shorter at the
// end, or if its payloads would exceed 32 MiB. Only an empty Next means that there are no more entities.
//
// A cursor marks the last entity of its page. An entity that has a visible point all the time is on exactly one page, whatever is written or deleted
// between two pages; its point is the newest one when that page is read. An entity that appears meanwhile is returned if it sorts after the cursor.
//
// A cursor is valid only for PageUnder and the tenant, dataset and prefix of its page; otherwise the error is ErrCursor. With
// CursorKeys in StoreOptions it is sealed, as those of Page are. Without keys it shows the key of the last entity, and a
// forged cursor can start a page elsewhere below the same prefix.
//
// Errors are those of Page. The cost is that of LatestUnder for the entities of the page and one more. The requests are
// sequential, except across salts, so a large page of entities with long histories takes time: one request per entity.
func (r *Repository[T]) PageUnder(ctx context.Context, p Prefix, size int, cursorText string, opts ...ReadOption) (page Page[T], err error) {
	ctx, op := r.begin(ctx, telemetry.PageUnder)
	defer func() {
		op.Returned(len(page.Points))
		op.End(err)
	}()
	h := History[T]{Points: []Point[T]{}} // not null in JSON
	next, err := r.pageUnder(ctx, p, size, cursorText, cursor.Newest, opts, func(hit dataset.Hit) { r.add(&h, hit) })
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Points: h.Points, Next: next}, h.Err
}

// PageEntities returns the entities of Entities page by page: those that have a visible point. Sizes, cursors and costs are those of PageUnder, but
// the service sends no payloads, a point that does not decode counts as a point, and the cursors of one are refused by the other.
func (r *Repository[T]) PageEntities(ctx context.Context, p Prefix, size int, cursorText string, opts ...ReadOption) (page EntityPage, err error) {
	ctx, op := r.begin(ctx, telemetry.PageEntities)
	defer func() {
		op.Returned(len(page.Entities))
		op.End(err)
	}()
	entities := []Entity{}
	next, err := r.pageUnder(ctx, p, size, cursorText, cursor.Entities, opts, func(h dataset.Hit) {
		entities = append(entities, Entity{path: h.Path})
	})
	if err != nil {
		return EntityPage{}, err
	}
	return EntityPage{Entities: entities, Next: next}, nil
}

// pageUnder calls visit for each entity of one page, and returns the cursor of the next page or "".
func (r *Repository[T]) pageUnder(ctx context.Context, p Prefix, size int, text string, kind cursor.Kind, opts []ReadOption, visit func(dataset.Hit)) (next string, err error) {
	if err := r.admitPrefix(ctx, p); err != nil {
		return "", err
	}
	page, err := skipscan.OpenPage(&r.rows, kind, p.path, size, text)
	if err != nil {
		return "", err
	}
	err = r.newestUnder(ctx, p, page.Query, opts, func(h dataset.Hit) (more bool) {
		var full bool
		if next, full = page.Add(h); !full {
			visit(h)
		}
		return !full
	})
	return next, err
}
