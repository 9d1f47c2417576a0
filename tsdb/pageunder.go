package tsdb

import (
	"context"
	"strings"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// EntityPage is some of the entities below a prefix, in the order of Entity.Compare, and where the next page starts. The zero
// EntityPage is that of a prefix without entities.
type EntityPage struct {
	// Entities are as many as were asked for, or fewer where there are no more.
	Entities []Entity `json:"entities"`
	// Next is the cursor of the next page: printable text that needs no escaping in a URL. It is empty on the last page.
	Next string `json:"next,omitempty"`
}

// PageUnder returns the points of LatestUnder page by page: those of the first entities below a prefix, or with the cursor of
// a page of those that come after it. size is how many, 1 to 10,000; a page has fewer where there are no more, or where their
// payloads are over 32 MiB together. The size and the options may change from page to page. Go by Next to tell whether there
// are more.
//
// A cursor marks the last entity of its page. An entity that has a visible point all the time is on exactly one page, whatever
// is written or deleted between two pages; its point is the newest one when that page is read. An entity that appears behind
// the cursor is still seen, one that appears before it is not.
//
// A cursor works for the tenant, the dataset and the prefix that it came from, and for PageUnder alone; any other call refuses
// it, with ErrCursor. As those of Page, it is sealed where the store has CursorKeys; without them it shows the key of the last
// entity, and a forged one starts a page elsewhere below the same prefix.
//
// A point whose payload does not decode keeps its place, with a zero value, and the error is then PointErrors: the page and
// its Next are good. With any other error there is no page. The cost is that of LatestUnder over the entities of the page and
// one more, whatever else is below the prefix. Its requests are made one after the other, but for those of salts: a large page of
// long histories takes time, as it has a request for each entity.
func (r *Repository[T]) PageUnder(ctx context.Context, p Prefix, size int, cursorText string, opts ...ReadOption) (page Page[T], err error) {
	ctx, op := r.begin(ctx, telemetry.PageUnder)
	defer func() {
		op.Returned(len(page.Points))
		op.End(err)
	}()
	points := []Point[T]{} // not null in JSON
	var bad PointErrors
	next, err := r.pageUnder(ctx, p, size, cursorText, cursor.Newest, opts, func(h dataset.Hit) {
		point, err := r.decode(h)
		points = append(points, point)
		if err != nil {
			bad = append(bad, err)
		}
	})
	if err != nil {
		return Page[T]{}, err
	}
	page = Page[T]{Points: points, Next: next}
	if bad != nil {
		return page, bad
	}
	return page, nil
}

// PageEntities returns the entities of Entities page by page: those that have a visible point. Sizes, cursors and costs are
// those of PageUnder, whose cursors it refuses; no payload is sent, and a point that does not decode counts as one.
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

// pageUnder calls visit with the newest points of one page, and returns the cursor of the next one, or "".
func (r *Repository[T]) pageUnder(ctx context.Context, p Prefix, size int, text string, kind cursor.Kind, opts []ReadOption, visit func(dataset.Hit)) (next string, err error) {
	if err := r.admitPrefix(ctx, p); err != nil {
		return "", err
	}
	if err := checkPageSize(size); err != nil {
		return "", err
	}
	scope := cursor.Scope{
		Kind: kind, Tenant: r.rows.Tenant.String(), Dataset: r.schema.d.Name, Precision: byte(r.schema.d.Precision), Path: p.path,
	}
	after := ""
	if text != "" {
		if after, err = r.placeUnder(scope, text); err != nil {
			return "", err
		}
	}
	found, bytes, last := 0, 0, ""
	for h, err := range r.newestUnder(ctx, p, skipscan.Query{After: after, Few: size + 1, Values: kind == cursor.Newest}, opts) {
		if err != nil {
			return "", err
		}
		bytes += len(h.Payload)
		if found == size || found > 0 && bytes > maxPageBytes {
			return r.store.cursors.Write(scope, []byte(last)), nil
		}
		visit(h)
		found++
		last = h.Path
	}
	return "", nil
}

// placeUnder returns the path of the entity at which a cursor stands. It is one below the prefix of the scope, whatever the
// cursor says: a forged one cannot lead out of it. Its parts may be of other kinds, as those of stored entities may.
func (r *Repository[T]) placeUnder(scope cursor.Scope, text string) (string, error) {
	place, err := r.store.cursors.Read(scope, text)
	if err != nil {
		return "", err
	}
	path := string(place)
	below := scope.Path == "" || strings.HasPrefix(path, scope.Path+"#")
	if !below || r.rows.Space.WithKinds(nil).CheckPath(path) != nil || rowkey.Path(rowkey.Parts(path)...) != path {
		return "", invalid.New(ErrCursor, "cursor", "outside of the query", "the one that came with a page of the same tenant, dataset and prefix")
	}
	return path, nil
}
