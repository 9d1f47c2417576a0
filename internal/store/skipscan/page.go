package skipscan

import (
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// Pager cuts the entities that Query finds into pages.
type Pager struct {
	Query Query

	rows  *points.Rows
	scope cursor.Scope
	size  int
	found int
	bytes int
	last  string
}

// OpenPage returns the page of entities below a prefix that begins after a cursor; an empty cursor means the first
// page. The kind is cursor.Newest, with payloads, or cursor.Entities.
func OpenPage(r *points.Rows, kind cursor.Kind, prefix string, size int, text string) (Pager, error) {
	if err := points.CheckPageSize(size); err != nil {
		return Pager{}, err
	}
	p := Pager{rows: r, scope: r.Scope(kind, prefix), size: size, Query: Query{Prefix: prefix, Few: size + 1, Values: kind == cursor.Newest}}
	if text == "" {
		return p, nil
	}
	place, err := r.Cursors.Read(p.scope, text)
	if err != nil {
		return Pager{}, err
	}
	path := string(place)
	if !r.CanHold(prefix, path) {
		return Pager{}, invalid.New(cursor.ErrCursor, "cursor", "outside of the query", "a cursor from a page of the same tenant, dataset and prefix")
	}
	p.Query.After = path
	return p, nil
}

// Add adds an entity to the page. If the page is full, it does not, and returns the cursor of the next page.
func (p *Pager) Add(h dataset.Hit) (next string, full bool) {
	p.bytes += len(h.Payload)
	if p.found == p.size || p.found > 0 && p.bytes > points.PageBytes {
		return p.rows.Cursors.Write(p.scope, []byte(p.last)), true
	}
	p.found++
	p.last = h.Path
	return "", false
}
