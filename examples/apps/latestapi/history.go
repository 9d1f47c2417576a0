package main

import (
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tsdb"
)

// defaultPage and maxPage are the default and the largest number of points of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

// history answers GET: the points of an entity, page by page. Each page has the address of the next one. Its cursor is
// sealed, and valid only for this query and tenant. As lines or CSV, all points are sent.
func (s *server) history(w http.ResponseWriter, r request) error {
	q := selection{
		Entity: r.params.entity(r.dataset),
		In:     r.params.interval(),
		Order:  r.params.order(tsdb.NewestFirst),
	}
	as, err := r.accepted(asJSON, asLines, asCSV)
	size, cursor := r.params.size(as)
	if err := errors.Join(r.params.check(), err); err != nil {
		return err
	}
	if as != asJSON {
		return s.sendPoints(w, r, as, r.dataset.history(r.Context(), r.tenant, q, size), size)
	}
	page, err := r.dataset.page(r.Context(), r.tenant, q, size, cursor)
	if err != nil {
		return err
	}
	return writePage(w, r, page)
}

// writePage writes a page of points and the address of the next one.
func writePage(w http.ResponseWriter, r request, p page) error {
	return write(w, struct {
		Points []point `json:"points"`
		Next   string  `json:"next,omitempty"`
	}{p.points, link(w, r, p.next)})
}

// link returns the address of the next page, with the other parameters of this request, and puts it into the Link
// header. It returns "" after the last page.
func link(w http.ResponseWriter, r request, cursor string) string {
	if cursor == "" {
		return ""
	}
	query := r.URL.Query()
	query.Set("cursor", cursor)
	address := r.URL.EscapedPath() + "?" + query.Encode()
	w.Header().Set("Link", "<"+address+`>; rel="next"`)
	return address
}
