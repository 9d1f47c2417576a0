package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tsdb"
)

// maxGroup bounds the points of a response that is one JSON object. Lines are sent as they are read, without a bound.
const maxGroup = 1000

// group answers GET: the newest point of every entity below the first fields of a key, or of all entities. The response is one
// JSON object with a page of points and the address of the next page, or one line of JSON per point for all points.
func (s *server) group(w http.ResponseWriter, r request) error {
	prefix := r.params.prefix(r.dataset)
	as, err := accepted(r.Request, asJSON, asLines)
	limit, cursor := 0, ""
	if as == asLines {
		limit = r.params.integer("limit", 0, 1_000_000)
	} else {
		limit, cursor = r.params.integer("limit", maxGroup, maxGroup), r.params.cursor()
	}
	if err := errors.Join(r.params.check(), err); err != nil {
		return err
	}
	if as == asLines {
		return s.groupLines(w, r, prefix, limit)
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

// groupLines sends each point when it is found. Once a line is sent, an error can only be reported in the last line: a response
// is complete if its last line is {"end":true}.
func (s *server) groupLines(w http.ResponseWriter, r request, prefix tsdb.Prefix, limit int) error {
	w.Header().Set("Content-Type", asLines)
	if r.Method == http.MethodHead {
		return nil
	}
	out := json.NewEncoder(w)
	sent := 0
	for p, err := range r.dataset.latestUnder(r.Context(), r.tenant, prefix) {
		if err := bad(&p, err); err != nil {
			if sent == 0 {
				return err
			}
			if p := s.note(r.Request, err); p != nil {
				_ = out.Encode(map[string]*problem{"problem": p})
			}
			return nil
		}
		if limit > 0 && sent == limit {
			_ = out.Encode(map[string]bool{"end": true, "more": true})
			return nil
		}
		if err := out.Encode(p); err != nil {
			return nil // the client has gone
		}
		sent++
	}
	_ = out.Encode(map[string]bool{"end": true})
	return nil
}

// bad replaces the value of a point that cannot be read by a problem, and returns any other error.
func bad(p *point, err error) error {
	if unreadable, ok := errors.AsType[*tsdb.PointError](err); ok {
		p.Value, p.Problem = nil, problemOf(unreadable)
		return nil
	}
	return err
}
