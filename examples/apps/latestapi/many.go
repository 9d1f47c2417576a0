package main

import (
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tsdb"
)

// many is the response to a POST of many keys. Answers are in their order. Complete is false if one has failed.
type many struct {
	Answers  []any `json:"answers"`
	Complete bool  `json:"complete"`
}

// answer is what was found of one of many entities, or the error of its read.
type answer struct {
	found any // a foundPoint or a foundFields
	err   error
}

// foundPoint is the result for a key with a point.
type foundPoint struct {
	Status string `json:"status"` // "found"
	point
}

// notFound is the result for another key: "missing" if there is no point, or "failed", with the reason.
type notFound struct {
	Status  string   `json:"status"`
	Key     key      `json:"key"`
	Problem *problem `json:"problem,omitempty"`
}

// list is the keys of a body.
type list struct {
	keys     []key
	errs     []error       // of keys that are refused
	entities []tsdb.Entity // of the others
}

// list reads the keys of a body.
func (r request) list() (l list, err error) {
	values, err := readKeys(r.Request)
	l.keys, l.errs = make([]key, len(values)), make([]error, len(values))
	for i := range values {
		var e tsdb.Entity
		if l.keys[i], e, l.errs[i] = r.dataset.keyed(values[i]); l.errs[i] == nil {
			l.entities = append(l.entities, e)
		}
	}
	return l, err
}

// many answers with what read finds of the entities of a body. Keys that are refused have a problem instead.
func (s *server) many(w http.ResponseWriter, r request, read func([]tsdb.Entity) ([]answer, error)) error {
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	l, err := r.list()
	if err != nil {
		return err
	}
	found, err := read(l.entities)
	if err != nil {
		return err
	}
	out, worst := l.answers(r, found)
	if worst != nil {
		s.log.Warn("answered in part", "path", r.URL.Path, "keys", len(l.keys), "error", worst)
	}
	return write(w, out)
}

// answers returns the response, and the last of the errors that the client did not cause: one line in the log, not a
// thousand.
func (l *list) answers(r request, found []answer) (out many, worst error) {
	out = many{Answers: make([]any, len(l.keys)), Complete: true}
	for i, k := range l.keys {
		a := answer{err: l.errs[i]}
		if a.err == nil {
			a, found = found[0], found[1:]
		}
		if p := out.set(i, k, a); p != nil && p.Status >= http.StatusInternalServerError && !hurried(r.Request, p) {
			worst = a.err
		}
	}
	return out, worst
}

// set sets the result for a key, and returns its problem.
func (m *many) set(i int, k key, a answer) *problem {
	switch {
	case a.err == nil:
		m.Answers[i] = a.found
	case errors.Is(a.err, tsdb.ErrNotFound):
		m.Answers[i] = notFound{Status: "missing", Key: k}
	default:
		p := problemOf(a.err)
		m.Answers[i], m.Complete = notFound{"failed", k, p}, false
		return p
	}
	return nil
}
