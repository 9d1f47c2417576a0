package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxPage is how many points a page of a table has at most.
const maxPage = 1_000

// tableRow is a point of a table.
type tableRow struct {
	Time instant.Time `json:"time"`
	ID   string       `json:"id,omitempty"`
	// Values are those of the fields that the request names.
	Values []any `json:"v"`
	Bad    bool  `json:"bad,omitempty"` // it does not decode
}

// points answers with a page of an entity's points.
func (s *Console) points(w http.ResponseWriter, r request) error {
	_, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	e, names := r.params.entity(), r.params.fields(maxFields)
	_, _, in := r.params.interval()
	size, cursor := r.params.integer("size", 100, maxPage), r.params.text("cursor", "")
	order := tsdb.NewestFirst
	switch text := r.params.text("order", "newest"); text {
	case "newest":
	case "oldest":
		order = tsdb.OldestFirst
	default:
		r.params.refuse("order", shown(text), "newest or oldest")
	}
	if err := r.params.check(); err != nil {
		return err
	}
	page, err := repo.Page(r.Context(), e, in, size, cursor, order)
	damaged := map[time.Time]bool{}
	if all, ok := errors.AsType[tsdb.PointErrors](err); ok {
		for _, one := range all {
			damaged[one.Time] = true
		}
	} else if err != nil {
		return err
	}
	rows := []tableRow{}
	for _, p := range page.Points {
		rows = append(rows, tableRow{instant.Time{Time: p.Time}, p.ID, valuesOf(names, p.Value, maxText), damaged[p.Time] && p.Value.Len() == 0})
	}
	return encode(w, map[string]any{"points": rows, "next": page.Next})
}

// asof answers with the newest point of each entity at a time or before it, and the newest value of each field that the
// point lacks.
func (s *Console) asof(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	entities, names, at := r.params.entities(maxEntities), r.params.fields(maxFields), r.params.instant("time")
	if err := r.params.check(); err != nil {
		return err
	}
	rows := []row{}
	for _, e := range entities {
		p, err := repo.AsOf(r.Context(), e, at)
		if errors.Is(err, tsdb.ErrNotFound) {
			continue // there is no point that early
		}
		if err != nil && !bad(err) {
			return err
		}
		one := d.row(p, names, maxText, err)
		if d.lacks(p.Value, names) {
			f, err := repo.LatestFields(r.Context(), e, tsdb.FieldOptions{AsOf: at})
			if err != nil && !bad(err) && !errors.Is(err, tsdb.ErrNotFound) {
				return err
			}
			d.complete(&one, names, &f, maxText)
		}
		rows = append(rows, one)
	}
	return encode(w, map[string]any{"rows": rows})
}
