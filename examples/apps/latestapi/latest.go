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

// latestMany answers POST: the newest point of each of many entities. Entities that could not be read in time are
// marked as failed; the others have their points.
func (s *server) latestMany(w http.ResponseWriter, r request) error {
	opts := r.params.reads()
	return s.many(w, r, func(entities []tsdb.Entity) ([]answer, error) {
		return r.dataset.latestMany(r.Context(), r.tenant, entities, opts...)
	})
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
