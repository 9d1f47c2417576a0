package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/tsdb"
)

// maxKeys is the largest number of entities of one request.
const maxKeys = 1000

// latest answers GET: the newest point of one entity.
func (s *server) latest(w http.ResponseWriter, r request) error {
	e := r.params.entity(r.dataset)
	opts := r.params.reads()
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	p, err := r.dataset.latest(r.Context(), r.tenant, e, opts...)
	if err != nil {
		return err
	}
	return write(w, p)
}

// many is the response to a POST. Answers are in the order of the keys. Complete is false if one has failed.
type many struct {
	Answers  []one `json:"answers"`
	Complete bool  `json:"complete"`
}

// one is the result for one key: "found", "missing" if there is no point, or "failed", with the reason.
type one struct {
	Status string `json:"status"`
	point
}

// MarshalJSON omits empty members.
func (o one) MarshalJSON() ([]byte, error) {
	if o.Status == "found" {
		return json.Marshal(struct {
			Status string `json:"status"`
			point
		}{o.Status, o.point})
	}
	return json.Marshal(struct {
		Status  string   `json:"status"`
		Key     key      `json:"key"`
		Problem *problem `json:"problem,omitempty"`
	}{o.Status, o.Key, o.Problem})
}

// latestMany answers POST: the newest point of each of many entities. Entities that could not be read in time are
// marked as failed; the others have their points.
func (s *server) latestMany(w http.ResponseWriter, r request) error {
	opts := r.params.reads()
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	keys, err := readKeys(r.Request)
	if err != nil {
		return err
	}
	answers := many{Answers: make([]one, len(keys)), Complete: true}
	var entities []tsdb.Entity
	var at []int // index of an entity's answer
	for i, fields := range keys {
		k, err := keyOf(r.dataset.fields(), fields)
		answers.Answers[i].Key = k
		var e tsdb.Entity
		if err == nil {
			e, err = r.dataset.entity(k.parts)
		}
		if err != nil {
			answers.failed(i, err)
			continue
		}
		entities = append(entities, e)
		at = append(at, i)
	}
	found, err := r.dataset.latestMany(r.Context(), r.tenant, entities, opts...)
	if err != nil {
		return err
	}
	var worst error // the most severe error that the client did not cause: one line in the log, not a thousand
	for j, a := range found {
		switch o := &answers.Answers[at[j]]; {
		case a.err == nil:
			o.Status, o.point = "found", a.point
		case errors.Is(a.err, tsdb.ErrNotFound):
			o.Status = "missing"
		default:
			p := answers.failed(at[j], a.err)
			if p.Status >= http.StatusInternalServerError && !hurried(r.Request, p) {
				worst = a.err
			}
		}
	}
	if worst != nil {
		s.log.Warn("answered in part", "path", r.URL.Path, "keys", len(keys), "error", worst)
	}
	return write(w, answers)
}

func (m *many) failed(i int, err error) *problem {
	p := problemOf(err)
	m.Complete = false
	m.Answers[i].Status, m.Answers[i].Problem = "failed", p
	return p
}

// readKeys reads a body: {"keys":[{"site":"berlin","device":"roof-7"}]}.
func readKeys(r *http.Request) ([]map[string]string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != asJSON {
		return nil, bodyType.problem().with("set Content-Type: " + asJSON)
	}
	var asked struct {
		Keys []map[string]string `json:"keys"`
	}
	body, err := io.ReadAll(r.Body) // the body is in memory
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) { // the decoder would change the key
		return nil, refused("body", "not UTF-8", "JSON in UTF-8")
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	err = in.Decode(&asked)
	if err == nil {
		if _, more := in.Token(); more != io.EOF {
			err = errors.New("there is something after it")
		}
	}
	if err != nil {
		return nil, refused("body", "not understood", `like {"keys":[{"site":"berlin","device":"roof-7"}]}, with the fields of the dataset`)
	}
	if n := len(asked.Keys); n < 1 || n > maxKeys {
		return nil, refused("keys", fmt.Sprintf("%d keys", n), fmt.Sprintf("1 to %d keys", maxKeys))
	}
	return asked.Keys, nil
}

// keyOf returns the key that a client's fields name or, with an error, the valid part of it.
func keyOf(fields []string, values map[string]string) (key, error) {
	k := key{fields: fields}
	for _, name := range fields {
		part, ok := values[name]
		switch {
		case !ok:
			return k, refused(name, "missing", "a value: a key has "+strings.Join(fields, ", "))
		case part == "":
			return k, refused(name, "empty", "at least one byte")
		}
		k.parts = append(k.parts, part)
	}
	if len(values) > len(fields) {
		return k, refused("key", "with other fields", "of "+strings.Join(fields, ", "))
	}
	return k, nil
}
