package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxSeries is how many series window.Align takes.
const maxSeries = 100

// series is a measure of an entity, one column of the aligned rows.
type series struct {
	Key     key    `json:"key"`
	Measure string `json:"measure"`
}

// alignQuery is the aligned rows that a request asks for. Each entity has all measures.
type alignQuery struct {
	Entities []tsdb.Entity
	Names    []string // of the measures
	In       tsdb.Interval
	Grid     window.Grid // zero for a row at the time of each point
	Opts     window.AlignOptions
}

// align answers POST: the values of several entities at the same times, those of a grid or of their points.
func (s *server) align(w http.ResponseWriter, r request) error {
	p := r.params
	q := alignQuery{In: p.bounded(), Opts: window.AlignOptions{MaxAge: p.duration("max_age"), Order: p.order(tsdb.OldestFirst)}}
	if _, ok := p.values["every"]; ok {
		q.Grid = p.grid()
	}
	if numbers := r.dataset.numbers(); len(numbers) == 0 {
		p.refuse("dataset", "without numbers", "one with a measure that is a number")
	} else {
		q.Names = p.list("measures", numbers)
	}
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	keys, err := readKeys(r.Request)
	if err != nil {
		return err
	}
	if n := len(keys) * len(q.Names); n > maxSeries {
		return refused("keys", fmt.Sprintf("%d keys with %d measures", len(keys), len(q.Names)), fmt.Sprintf("up to %d series: one for each measure of each key", maxSeries))
	}
	answer := struct {
		Series []series              `json:"series"`
		Rows   []window.Row[float64] `json:"rows"`
	}{}
	header := []string{"time"}
	for _, fields := range keys {
		k, e, err := r.dataset.keyed(fields)
		if err != nil {
			return err
		}
		q.Entities = append(q.Entities, e)
		for _, name := range q.Names {
			answer.Series = append(answer.Series, series{k, name})
			header = append(header, strings.Join(k.parts, "/")+" "+name)
		}
	}
	rows := readable(r.dataset.align(r.Context(), r.tenant, q))
	if as == asCSV {
		return s.sendCSV(w, r, header, rowsOf(rows, func(row window.Row[float64]) []string { return aggregate.AlignedRow(&row) }))
	}
	answer.Rows, err = collected(rows)
	if err != nil {
		return err
	}
	return write(w, answer)
}

func (s served[T]) align(ctx context.Context, id tenant.ID, q alignQuery) iter.Seq2[window.Row[float64], error] {
	repo := s.schema.For(s.store, id)
	var all []window.Series[float64]
	for _, e := range q.Entities {
		for _, name := range q.Names {
			m := s.of[slices.IndexFunc(s.of, func(m window.Measure[T]) bool { return m.Name == name })]
			all = append(all, window.NewSeries(repo, e, func(v T) (float64, bool) { return numberOf(&m, v) }))
		}
	}
	return window.Align(ctx, q.Grid, q.In, all, q.Opts)
}

// numberOf returns the number of a value for a measure.
func numberOf[T any](m *window.Measure[T], v T) (float64, bool) {
	if m.Int == nil {
		return m.Of(v)
	}
	units, ok := m.Int(v)
	return float64(units) / math.Pow10(m.Decimals), ok
}
