package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// silence is an entity without points since a time, as clients see it.
type silence struct {
	Key  key          `json:"key"`
	Last instant.Time `json:"last"`
}

// silent answers GET: the entities below the first fields of a key, or of all of them, that have sent nothing since a
// time, the longest silence first.
func (s *server) silent(w http.ResponseWriter, r request) error {
	prefix := r.params.prefix(r.dataset)
	limit := r.params.integer("limit", maxGroup, maxGroup)
	since, ok := r.params.instant("since")
	if !ok {
		r.params.refuse("since", "missing", "the time since which an entity has sent nothing")
	}
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(r.params.check(), err); err != nil {
		return err
	}
	found, err := r.dataset.silent(r.Context(), r.tenant, prefix, since, limit+1)
	if err != nil {
		return err
	}
	more := len(found) > limit
	if as == asCSV {
		w.Header().Set("X-More", strconv.FormatBool(more))
		var rows [][]string
		for _, f := range found[:min(limit, len(found))] {
			rows = append(rows, append(slices.Clone(f.Key.parts), aggregate.Instant(f.Last.Time)))
		}
		return s.sendCSV(w, r, append(slices.Clone(r.dataset.fields()), "last"), whole(rows))
	}
	return write(w, struct {
		Silent []silence `json:"silent"`
		More   bool      `json:"more"`
	}{found[:min(limit, len(found))], more})
}

func (s served[T]) silent(ctx context.Context, id tenant.ID, p tsdb.Prefix, since time.Time, n int) ([]silence, error) {
	found, err := s.schema.For(s.store, id).Under(p).Silent(ctx, since, n)
	out := make([]silence, len(found))
	for i, f := range found {
		out[i] = silence{s.keyOf(f.Entity), instant.Time{Time: f.Last}}
	}
	return out, err
}
