package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Page returns one page of the points of Range; it takes an Order. An empty cursor means the first page; the Next of a
// page continues after it. size is 1 to 10,000 points and may differ from page to page. A page is shorter at the end,
// or if its payloads would exceed 32 MiB. Only an empty Next means that there are no more points.
//
// A cursor marks the last point of its page, as that of Repository.Page does, and is valid only for this call and the
// tenant, dataset, prefix, interval and order of its page; otherwise the error is ErrCursor. With CursorKeys in
// StoreOptions it is sealed. Without keys it shows the key of the last point, and a forged cursor can start a page
// elsewhere in the same query.
//
// A point whose payload does not decode keeps its place, with a zero value; the error is then PointErrors, and the page
// and its Next are valid. For any other error there is no page. It costs what Range costs for the points of the page
// and one more, and a request for the rest of the entity at which the page before has ended. Entities without points in
// the interval are skipped at the cost of Range, whatever the size.
func (u PrefixReader[T]) Page(ctx context.Context, in Interval, size int, cursor string, opts ...ReadOption) (page Page[T], err error) {
	ctx, c, err := u.part().beginRead(ctx, telemetry.UnderPage, in, orderOption, opts)
	defer func() {
		c.Op.Returned(len(page.Points))
		c.End(err)
	}()
	if err != nil {
		return Page[T]{}, err
	}
	p, err := c.OpenPage(size, cursor)
	if err != nil {
		return Page[T]{}, err
	}
	h := History[T]{Points: []Point[T]{}} // not null in JSON
	next, err := p.Read(ctx, func(hit dataset.Hit) { u.repo.add(&h, hit) })
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Points: h.Points, Next: next}, h.Err
}

// PageLatest returns the points of Latest page by page. An empty cursor means the first page; the Next of a page
// continues after it. size is 1 to 10,000 entities. It and the options may differ from page to page. A page is shorter
// at the end, or if its payloads would exceed 32 MiB. Only an empty Next means that there are no more entities.
//
// A cursor marks the last entity of its page. An entity that has a visible point all the time is on exactly one page,
// whatever is written or deleted between two pages; its point is the newest one when that page is read. An entity that
// appears meanwhile is returned if it sorts after the cursor.
//
// A cursor is valid only for PageLatest and the tenant, dataset and prefix of its page; otherwise the error is
// ErrCursor. With CursorKeys in StoreOptions it is sealed, as those of Page are. Without keys it shows the key of the
// last entity, and a forged cursor can start a page elsewhere under the same prefix.
//
// Errors are those of Page. The cost is that of Latest for the entities of the page and one more. The requests are
// sequential, except across salts, so a large page of entities with long histories takes time: one request per entity.
func (u PrefixReader[T]) PageLatest(ctx context.Context, size int, cursorText string, opts ...ReadOption) (page Page[T], err error) {
	ctx, c, err := u.part().beginRead(ctx, telemetry.UnderPageLatest, AllTime(), 0, opts)
	defer func() {
		c.Op.Returned(len(page.Points))
		c.End(err)
	}()
	if err != nil {
		return Page[T]{}, err
	}
	h := History[T]{Points: []Point[T]{}} // not null in JSON
	next, err := pageOfEntities(ctx, &c, cursor.Newest, size, cursorText, func(hit dataset.Hit) { u.repo.add(&h, hit) })
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Points: h.Points, Next: next}, h.Err
}

// EntityPage is one page of entities, in the order of Entity.Compare, and the cursor of the next page. The zero
// EntityPage is an empty last page.
type EntityPage struct {
	// Entities are the entities of the page: size of them, or fewer at the end.
	Entities []Entity `json:"entities"`
	// Next is the cursor of the next page: printable text that needs no escaping in a URL. It is empty on the last
	// page.
	Next string `json:"next,omitempty"`
}

// PageEntities returns the entities that have a visible point page by page. Sizes, cursors and costs are those of
// PageLatest, but the service sends no payloads, a point that does not decode counts as a point, and the cursors of one
// are refused by the other.
func (u PrefixReader[T]) PageEntities(ctx context.Context, size int, cursorText string, opts ...ReadOption) (EntityPage, error) {
	return u.part().pageEntities(ctx, size, cursorText, opts)
}

func (u under) pageEntities(ctx context.Context, size int, cursorText string, opts []ReadOption) (page EntityPage, err error) {
	ctx, c, err := u.beginRead(ctx, telemetry.UnderPageEntities, AllTime(), 0, opts)
	defer func() {
		c.Op.Returned(len(page.Entities))
		c.End(err)
	}()
	if err != nil {
		return EntityPage{}, err
	}
	entities := []Entity{}
	next, err := pageOfEntities(ctx, &c, cursor.Entities, size, cursorText, func(h dataset.Hit) {
		entities = append(entities, Entity{path: h.Path})
	})
	if err != nil {
		return EntityPage{}, err
	}
	return EntityPage{Entities: entities, Next: next}, nil
}

// pageOfEntities calls visit for each entity of one page, and returns the cursor of the next page or "".
func pageOfEntities(ctx context.Context, c *inside.PrefixRead, kind cursor.Kind, size int, text string, visit func(dataset.Hit)) (next string, err error) {
	page, err := skipscan.OpenPage(c.Rows, kind, c.Prefix, size, text)
	if err != nil {
		return "", err
	}
	page.Query.Options = c.Options
	err = skipscan.Scan(ctx, c.Rows, page.Query, func(h dataset.Hit) (more bool) {
		var full bool
		if next, full = page.Add(h); !full {
			visit(h)
		}
		return !full
	})
	return next, err
}
