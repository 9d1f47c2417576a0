package main

import (
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tsdb"
)

// maxGroup bounds the points of a response that is one JSON object. Lines and CSV are sent as they are read, without a
// bound.
const maxGroup = 1000

// group answers GET: the newest point of every entity below the first fields of a key, or of all entities. The response
// is one JSON object with a page of points and the address of the next page, or one line of JSON or CSV per point for
// all points.
func (s *server) group(w http.ResponseWriter, r request) error {
	prefix := r.params.prefix(r.dataset)
	as, err := r.accepted(asJSON, asLines, asCSV)
	limit, cursor := 0, ""
	if as == asJSON {
		limit, cursor = r.params.integer("limit", maxGroup, maxGroup), r.params.cursor()
	} else {
		limit = r.params.integer("limit", 0, maxStreamed)
	}
	if err := errors.Join(r.params.check(), err); err != nil {
		return err
	}
	if as != asJSON {
		return s.sendPoints(w, r, as, r.dataset.latestUnder(r.Context(), r.tenant, prefix), limit)
	}
	page, err := r.dataset.pageUnder(r.Context(), r.tenant, prefix, limit, cursor)
	if err != nil {
		return err
	}
	return write(w, struct {
		Points []point `json:"points"`
		More   bool    `json:"more"`
		Next   string  `json:"next,omitempty"`
	}{page.points, page.next != "", link(w, r, page.next)})
}

// keys answers GET: the keys of the entities below the first fields of a key, or of all of them, page by page.
func (s *server) keys(w http.ResponseWriter, r request) error {
	prefix := r.params.prefix(r.dataset)
	size := r.params.integer("size", defaultPage, maxPage)
	cursor := r.params.cursor()
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	keys, next, err := r.dataset.pageKeys(r.Context(), r.tenant, prefix, size, cursor)
	if err != nil {
		return err
	}
	return write(w, struct {
		Keys []key  `json:"keys"`
		Next string `json:"next,omitempty"`
	}{keys, link(w, r, next)})
}

// bad replaces the value of a point that cannot be read by a problem, and returns any other error.
func bad(p *point, err error) error {
	if unreadable, ok := errors.AsType[*tsdb.PointError](err); ok {
		p.Value, p.Problem = nil, problemOf(unreadable)
		return nil
	}
	return err
}
