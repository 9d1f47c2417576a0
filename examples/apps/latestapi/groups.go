package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// groupWindows is the windows of the entities that share the first fields of their keys.
type groupWindows struct {
	Key      key                `json:"key"`
	Entities int                `json:"entities"`
	Buckets  []aggregate.Bucket `json:"buckets"`
	rows     []window.Bucket
}

// groups answers GET: the windows of groups of entities. The windows of a group add up those of its entities. As one
// JSON object they have up to maxBuckets windows in all. As lines, one for each group, and as CSV all are sent while
// they are computed.
func (s *server) groups(w http.ResponseWriter, r request) error {
	p := r.params
	fields := r.dataset.fields()
	parts := p.key(fields)
	share := p.shared(fields, len(parts))
	q := p.windowQuery(r.dataset)
	as, err := r.accepted(asJSON, asLines, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	prefix, err := r.dataset.prefix(parts)
	if err != nil {
		return err
	}
	found, columns, err := r.dataset.groups(r.Context(), r.tenant, prefix, share-len(parts), q)
	if err != nil {
		return p.explain(err)
	}
	switch as {
	case asCSV:
		header := slices.Insert(append(slices.Clone(fields[:share]), columns.Header()...), share+2, "entities") // behind start and end
		return s.sendCSV(w, r, header, func(yield func([]string, error) bool) {
			for g, err := range found {
				if err != nil {
					yield(nil, err)
					return
				}
				for i := range g.rows {
					row := append(slices.Clone(g.Key.parts), columns.Row(&g.rows[i])...)
					if !yield(slices.Insert(row, share+2, strconv.FormatInt(g.rows[i].Entities, 10)), nil) {
						return
					}
				}
			}
		})
	case asLines:
		return sendLines(s, w, r, found, 0)
	}
	answer := struct {
		Groups []groupWindows `json:"groups"`
	}{[]groupWindows{}}
	left := maxBuckets
	for g, err := range found {
		if left -= 1 + len(g.Buckets); err == nil && left < 0 { // a group counts, too
			err = window.ErrTooManyFilled
		}
		if err != nil {
			return err
		}
		answer.Groups = append(answer.Groups, g)
	}
	return write(w, answer)
}

// shared reads by, the last key field that the entities of a group share, and returns how many they share. By default
// they share the given ones.
func (p *params) shared(fields []string, given int) int {
	if given == len(fields) {
		p.refuse(fields[given-1], "present", "no value: for one entity, ask for its windows")
		return given
	}
	if _, ok := p.values["by"]; !ok {
		return given
	}
	allowed := fields[max(given-1, 0) : len(fields)-1]
	if len(allowed) == 0 {
		p.refuse("by", "present", "left out: the key has one field, so all entities are one group")
		return given
	}
	return slices.Index(fields, p.one("by", allowed...)) + 1
}

func (s served[T]) groups(ctx context.Context, id tenant.ID, prefix tsdb.Prefix, fields int, q windowQuery) (iter.Seq2[groupWindows, error], aggregate.Columns, error) {
	by, columns, err := s.aggregator(q)
	if err != nil {
		return nil, nil, err
	}
	repo := s.schema.For(s.store, id)
	return func(yield func(groupWindows, error) bool) {
		for g, err := range by.ReadGroups(ctx, repo.Under(prefix), fields, q.In, q.Order) {
			out := groupWindows{Key: s.keyOfPrefix(g.Prefix), Entities: g.Entities, Buckets: []aggregate.Bucket{}, rows: g.Buckets}
			for i := range g.Buckets {
				out.Buckets = append(out.Buckets, columns.Bucket(&g.Buckets[i]))
			}
			if !yield(out, err) {
				return
			}
		}
	}, columns, nil
}

// keyOfPrefix returns the first fields of a key as clients read them.
func (s served[T]) keyOfPrefix(p tsdb.Prefix) key {
	parts := p.Parts()
	whole := s.keyOf(tsdb.NewEntity(append(parts, slices.Repeat([]string{"0"}, len(s.names)-len(parts))...)...))
	return key{s.names, whole.parts[:len(parts)]}
}
