package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/tidemark-go/tidemark/examples/internal/display"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// mostPoints is how many points of an entity a client may let a request look at.
const mostPoints = 10_000

// newest is the newest value of each field of an entity.
type newest struct {
	Key   key                     `json:"key"`
	Value any                     `json:"value,omitempty"`
	Times map[string]instant.Time `json:"times"` // of the points that have the fields
	// Missing are fields of the dataset that no point has that was looked at.
	Missing []string `json:"missing,omitempty"`
	// Back is the time of the oldest point that was looked at, if older ones may have more fields.
	Back *instant.Time `json:"back,omitempty"`
	// Unreadable are the times of points that were looked at and do not decode.
	Unreadable []instant.Time `json:"unreadable,omitempty"`
}

// foundFields is the result for one key of many with points.
type foundFields struct {
	Status string `json:"status"` // "found"
	newest
}

// fieldOptions reads at, the time of the newest points that count, and points, how many are looked at.
func (p *params) fieldOptions() tsdb.FieldOptions {
	at := p.option("at")
	return tsdb.FieldOptions{AsOf: at, MaxPoints: p.integer("points", 0, mostPoints)}
}

// newestFields answers GET: the newest value of each field of an entity or, of the first fields of a key, of each
// entity of a group.
func (s *server) newestFields(w http.ResponseWriter, r request) error {
	fields := r.dataset.fields()
	if slices.ContainsFunc(fields, func(name string) bool { return !r.params.values.Has(name) }) {
		return s.groupFields(w, r)
	}
	e, options := r.params.entity(r.dataset), r.params.fieldOptions()
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asJSON); err != nil {
		return err
	}
	found, err := r.dataset.latestFields(r.Context(), r.tenant, e, options)
	if err != nil {
		return err
	}
	return write(w, found)
}

// groupFields answers with a JSON object of up to limit entities, or a line of JSON for each.
func (s *server) groupFields(w http.ResponseWriter, r request) error {
	prefix, options := r.params.prefix(r.dataset), r.params.fieldOptions()
	as, err := r.accepted(asJSON, asLines)
	limit := 0
	if as == asJSON {
		limit = r.params.integer("limit", maxGroup, maxGroup)
	} else {
		limit = r.params.integer("limit", 0, maxStreamed)
	}
	if err := errors.Join(r.params.check(), err); err != nil {
		return err
	}
	found := r.dataset.latestFieldsUnder(r.Context(), r.tenant, prefix, options)
	if as == asLines {
		return sendLines(s, w, r, found, limit)
	}
	answer := struct {
		Entities []newest `json:"entities"`
		More     bool     `json:"more"`
	}{Entities: []newest{}}
	for f, err := range found {
		if err != nil {
			return err
		}
		if answer.More = len(answer.Entities) == limit; answer.More {
			break
		}
		answer.Entities = append(answer.Entities, f)
	}
	return write(w, answer)
}

// fieldsMany answers POST: the newest value of each field of each of many entities.
func (s *server) fieldsMany(w http.ResponseWriter, r request) error {
	options := r.params.fieldOptions()
	return s.many(w, r, func(entities []tsdb.Entity) ([]answer, error) {
		return r.dataset.latestFieldsMany(r.Context(), r.tenant, entities, options)
	})
}

// newest returns fields as clients see them, and the error of a read.
func (s served[T]) newest(f tsdb.Fields[T], err error) (newest, error) {
	unreadable, some := errors.AsType[tsdb.PointErrors](err)
	if err != nil && !some {
		return newest{Key: s.keyOf(f.Entity)}, err
	}
	out := newest{Key: s.keyOf(f.Entity), Times: map[string]instant.Time{}, Missing: f.Missing}
	for name, at := range f.Times.All() {
		out.Times[name] = instant.Time{Time: at}
	}
	if f.Times.Len() > 0 {
		out.Value = display.Value{Of: f.Value}
	}
	if !f.Back.IsZero() {
		out.Back = &instant.Time{Time: f.Back}
	}
	for _, one := range unreadable {
		out.Unreadable = append(out.Unreadable, instant.Time{Time: one.Time})
	}
	return out, nil
}

func (s served[T]) latestFields(ctx context.Context, id tenant.ID, e tsdb.Entity, options tsdb.FieldOptions) (newest, error) {
	return s.newest(s.schema.For(s.store, id).LatestFields(ctx, e, options))
}

func (s served[T]) latestFieldsMany(ctx context.Context, id tenant.ID, entities []tsdb.Entity, options tsdb.FieldOptions) ([]answer, error) {
	found, err := s.schema.For(s.store, id).LatestFieldsMany(ctx, entities, options)
	if _, some := errors.AsType[*tsdb.ReadError](err); err != nil && !some {
		return nil, err
	}
	answers := make([]answer, len(found))
	for i, f := range found {
		one, err := s.newest(f, f.Err)
		if err == nil && len(one.Times) == 0 && one.Unreadable == nil && one.Back == nil {
			err = tsdb.ErrNotFound
		}
		answers[i] = answer{foundFields{"found", one}, err}
	}
	return answers, nil
}

func (s served[T]) latestFieldsUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix, options tsdb.FieldOptions) iter.Seq2[newest, error] {
	return func(yield func(newest, error) bool) {
		for f, err := range s.schema.For(s.store, id).Under(p).LatestFields(ctx, options) {
			if one, err := s.newest(f, err); !yield(one, err) {
				return
			}
		}
	}
}
