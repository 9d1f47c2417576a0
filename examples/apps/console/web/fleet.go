package web

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

const (
	// maxFleet is how many entities a list has at most. A live stream has as many.
	maxFleet = 10_000
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
}

func (d *dataset) row(p tsdb.Point[codec.Record], names []string, most int, err error) row {
	return row{Entity: p.Entity, Parts: d.parts(p.Entity), Time: millis(p.Time), Values: d.valuesOf(names, p.Value, most), Bad: err != nil}
}

func millis(t time.Time) float64 {
	return float64(t.UnixMilli()) + float64(t.Nanosecond()%int(time.Millisecond))/float64(time.Millisecond)
}

// fields answers with the fields of one entity's newest points; or with those of the dataset, and how many of the newest
// points below a prefix have each.
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

// latest answers with the newest point of each entity below a prefix, in the order of their keys, and the newest value of
// each field that the point lacks.
func (s *Console) latest(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	prefix, names := r.params.prefix(d), r.params.fields(maxListFields)
	most := r.params.integer("limit", maxFleet, maxFleet)
	if err := r.params.check(); err != nil {
		return err
	}
	out := struct {
		Rows []row   `json:"rows"`
		More bool    `json:"more"` // there are more entities
		Now  float64 `json:"now"`  // the server's clock
	}{Rows: []row{}, Now: millis(time.Now())}
	lacking := map[tsdb.Entity]int{} // the rows of points that lack a field
	for p, err := range repo.Under(prefix).Latest(r.Context()) {
		if err != nil && !bad(err) {
			return err
		}
		if out.More = len(out.Rows) == most; out.More {
			break
		}
		if d.lacks(p.Value, names) {
			lacking[p.Entity] = len(out.Rows)
		}
		out.Rows = append(out.Rows, d.row(p, names, maxListed, err))
	}
	if len(lacking) > 0 {
		if err := d.newestValues(r.Context(), repo, prefix, names, out.Rows, lacking); err != nil {
			return err
		}
	}
	return encode(w, out)
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

// spark is the newest points of an entity, oldest first, for a small line.
type spark struct {
	Entity tsdb.Entity `json:"id"`
	Times  []float64   `json:"t"`
	Values []any       `json:"v"` // numbers, or null
}

// sparks answers with the newest points of a few entities: those that a user sees.
func (s *Console) sparks(w http.ResponseWriter, r request) error {
	_, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	entities, names, n := r.params.entities(maxSparks), r.params.fields(maxFields), r.params.integer("points", 60, maxSpark)
	if len(names) != 1 {
		r.params.refuse("field", "not given once", "one field")
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
		one := spark{history.Entity, []float64{}, []any{}}
		for _, p := range slices.Backward(history.Points) {
			one.Times = append(one.Times, millis(p.Time))
			if x, ok := number(p.Value, names[0]); ok {
				one.Values = append(one.Values, x)
			} else {
				one.Values = append(one.Values, nil)
			}
		}
		out = append(out, one)
	}
	return encode(w, map[string]any{"sparks": out})
}
