package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/chart"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxColumns is how many columns of pixels a chart has at most.
const maxColumns = 4_000

// lineQuery is the line of one field of one entity.
type lineQuery struct {
	entity tsdb.Entity
	field  string
	in     tsdb.Interval
	opts   chart.Options
}

// line answers with the samples for a line through a field of an entity: those that a chart of some columns shows. They come from a
// rollup where the program knows one.
func (s *Console) line(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	q := lineQuery{entity: r.params.entity()}
	names := r.params.fields(maxFields)
	if len(names) != 1 {
		r.params.refuse("field", "not given once", "one field")
	}
	from, to, in := r.params.interval()
	q.in = in
	gap, auto := r.params.gap()
	q.opts = chart.Options{Columns: r.params.integer("columns", 800, maxColumns), MaxGap: gap}
	if err := r.params.check(); err != nil {
		return err
	}
	if auto {
		if q.opts.MaxGap, err = gapOf(r.Context(), repo, q.entity, from, to, q.opts.Columns); err != nil {
			return err
		}
	}
	q.field = names[0]
	line, err := s.lineOf(r.Context(), r.tenant, d, q)
	if err != nil {
		return err
	}
	out := struct {
		Source chart.Source `json:"source"`
		Times  []float64    `json:"t"`      // in milliseconds since 1970
		Values []*float64   `json:"v"`      // null is a gap
		Gap    float64      `json:"gap_ms"` // the longest time between two points that the line bridges; 0 for any
		Approx int          `json:"approx,omitempty"`
		Bad    int          `json:"bad,omitempty"` // points that do not decode
	}{line.Source, []float64{}, []*float64{}, inMillis(q.opts.MaxGap), 0, 0}
	for sample, err := range line.Samples {
		if bad(err) {
			out.Bad++
			continue
		}
		if err != nil {
			return err
		}
		at := millis(sample.Time)
		if n := len(out.Times); sample.Break && n > 0 {
			out.Times, out.Values = append(out.Times, (out.Times[n-1]+at)/2), append(out.Values, nil)
		}
		if sample.Approx {
			out.Approx++
		}
		value := sample.Value
		out.Times, out.Values = append(out.Times, at), append(out.Values, &value)
	}
	return encode(w, out)
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *Console) lineOf(ctx context.Context, id tenant.ID, d *dataset, q lineQuery) (chart.Line, error) {
	if d.known != nil {
		line, found, err := d.known.line(ctx, s.Store, id, q)
		if err != nil || found {
			return line, err
		}
	}
	field, err := dynamic.NewField(q.field, dynamic.Options{})
	if err != nil {
		return chart.Line{}, err
	}
	schema, err := dynamic.Numbers(d.Dataset, field)
	if err != nil {
		return chart.Line{}, err
	}
	measure := window.Measure[codec.Value]{Name: shownField(q.field), Of: codec.Value.Number}
	return chart.ReadM4(ctx, schema.For(s.Store, id), q.entity, q.in, measure, q.opts)
}
