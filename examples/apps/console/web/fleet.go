package web

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

const (
	// sampled is how many points show which fields a dataset has.
	sampled = 200
	// maxSparks is how many entities' newest points one request reads, and maxSpark how many points of each.
	maxSparks = 40
	maxSpark  = 120
)

// row is the newest point of an entity.
type row struct {
	Entity tsdb.Entity `json:"id"`
	Parts  []string    `json:"parts,omitempty"`
	Time   float64     `json:"t"` // in milliseconds since 1970
	Values []any       `json:"v"`
	Times  numbers     `json:"at,omitempty"`  // of values that are from other points, or NaN
	Bad    bool        `json:"bad,omitempty"` // it does not decode
	value  codec.Record
	cut    bool // older points, which were not looked at, may have values that it lacks
}

func (d *dataset) row(p tsdb.Point[codec.Record], names []string, most int, err error) row {
	return row{Entity: p.Entity, Parts: d.parts(p.Entity), Time: millis(p.Time), Values: d.valuesOf(names, p.Value, most), Bad: err != nil, value: p.Value}
}

func millis(t time.Time) float64 {
	return float64(t.UnixMilli()) + float64(t.Nanosecond()%int(time.Millisecond))/float64(time.Millisecond)
}

// fields answers with the fields of one entity's newest points; or with those of the dataset, and how many of the
// newest points below a prefix have each.
func (s *Console) fields(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	_, ofEntity := r.params.values["entity"]
	var e tsdb.Entity
	var prefix tsdb.Prefix
	if ofEntity {
		e = r.params.entity()
	} else {
		prefix = r.params.prefix(d)
	}
	if err := r.params.check(); err != nil {
		return err
	}
	found := map[string]*field{}
	if ofEntity {
		newest, err := repo.LatestN(r.Context(), e, sampled)
		if err != nil && !bad(err) {
			return err
		}
		for _, p := range newest {
			countFields(found, p.Value)
		}
	} else {
		n := 0
		for p, err := range repo.Under(prefix).Latest(r.Context()) {
			if err != nil && !bad(err) {
				return err
			}
			countFields(found, p.Value)
			if n++; n == sampled {
				break
			}
		}
		list, err := dynamic.FieldsOf(r.Context(), s.Store, r.tenant, d)
		if err != nil {
			return err
		}
		addKnown(found, list)
	}
	all := []*field{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return encode(w, map[string]any{"fields": all})
}

// silent answers with the entities below a prefix that have sent nothing since a time, the longest silence first.
func (s *Console) silent(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	prefix, since, most := r.params.prefix(d), r.params.instant("since"), r.params.integer("limit", 1000, 1000)
	if err := r.params.check(); err != nil {
		return err
	}
	found, err := repo.Under(prefix).Silent(r.Context(), since, most)
	if err != nil {
		return err
	}
	rows := []row{}
	for _, one := range found {
		rows = append(rows, row{Entity: one.Entity, Parts: d.parts(one.Entity), Time: millis(one.Last), Values: []any{}})
	}
	return encode(w, map[string]any{"rows": rows})
}

// spark is the newest points of an entity, oldest first, for a small line of each of its fields.
type spark struct {
	Entity tsdb.Entity `json:"id"`
	Times  []float64   `json:"t"`
	Values []numbers   `json:"v"` // by field; NaN where a point has no number
}

// sparks answers with the newest points of a few entities: those that a user sees.
func (s *Console) sparks(w http.ResponseWriter, r request) error {
	_, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	entities, names, n := r.params.entities(maxSparks), r.params.fields(maxListFields), r.params.integer("points", 60, maxSpark)
	if len(names) == 0 {
		r.params.refuse("field", "missing", "at least one field")
	}
	if err := r.params.check(); err != nil {
		return err
	}
	found, err := repo.LatestMany(r.Context(), entities, n)
	if err != nil && !bad(err) {
		return err
	}
	out := []spark{}
	for _, history := range found {
		out = append(out, sparkOf(history, names))
	}
	return encode(w, map[string]any{"sparks": out})
}

func sparkOf(history tsdb.History[codec.Record], names []string) spark {
	one := spark{history.Entity, []float64{}, make([]numbers, len(names))}
	for _, p := range slices.Backward(history.Points) {
		one.Times = append(one.Times, millis(p.Time))
		for i, name := range names {
			x, ok := number(p.Value, name)
			if !ok {
				x = math.NaN()
			}
			one.Values[i] = append(one.Values[i], x)
		}
	}
	return one
}
