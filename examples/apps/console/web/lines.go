package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const (
	// maxColumns is how many columns of pixels a chart has at most.
	maxColumns = 4_000
	// perColumn is how many points a column has at most in a line of points: a line through more is a solid block.
	perColumn = 4
)

// linesQuery asks for lines through numbers of an entity.
type linesQuery struct {
	entity   tsdb.Entity
	names    []string
	from, to time.Time
	columns  int
	gap      time.Duration // the longest time between two points that a line bridges; 0 for any
}

// lines are lines through numbers of an entity.
type lines struct {
	Window float64 `json:"window_ms"` // the width of what a sample stands for; 0 for single points
	Gap    float64 `json:"gap_ms"`
	Bad    int     `json:"bad,omitempty"` // points that do not decode
	Lines  []line  `json:"lines"`         // in the order of the fields that the request names
}

// line is a line through one number. NaN is a gap.
type line struct {
	Rollup string  `json:"rollup,omitempty"` // what it is read from; "" for the points
	Times  numbers `json:"t"`                // in milliseconds since 1970
	Values numbers `json:"v"`                // the numbers of points, or the means of windows
	// Low and High are the lowest and the highest number of each window. Lines of points have none.
	Low  numbers `json:"lo,omitempty"`
	High numbers `json:"hi,omitempty"`
	// Figures are those of all points behind a line of windows. A page computes those of a line of points itself.
	Figures *lineFigures `json:"figures,omitempty"`
	last    time.Time    // up to which the line goes
}

// lineFigures are what a legend says of a line of windows.
type lineFigures struct {
	// From and To are the interval that the figures stand for, in milliseconds since 1970. It is that of the query, or
	// that of the buckets of a rollup which the query touches.
	From  float64  `json:"from"`
	To    float64  `json:"to"`
	Count int64    `json:"n"`
	Min   float64  `json:"min"`
	Max   float64  `json:"max"`
	Mean  float64  `json:"mean"`
	Last  *float64 `json:"last"` // the newest number of the interval; nil if it was not found
	sum   float64
}

// add adds a window that has numbers.
func (f *lineFigures) add(v *window.Summary) {
	if f.Count == 0 {
		f.Min, f.Max = v.Min, v.Max
	}
	f.Count, f.sum = f.Count+v.Count, f.sum+v.Sum
	f.Min, f.Max = min(f.Min, v.Min), max(f.Max, v.Max)
	f.Mean = min(f.Max, max(f.Min, f.sum/float64(f.Count)))
}

// numbers are finite, or NaN for null.
type numbers []float64

// MarshalJSON implements json.Marshaler.
func (n numbers) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, x := range n {
		if i > 0 {
			text = append(text, ',')
		}
		if math.IsNaN(x) {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendFloat(text, x, 'g', -1, 64)
		}
	}
	return append(text, ']'), nil
}

// lines answers with lines through numbers of an entity, all in one pass over its points. A line has all points if a
// chart of some columns can show them. Otherwise it has the mean, the lowest and the highest number of windows of time,
// from a rollup where the program knows one.
func (s *Console) lines(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	q := linesQuery{entity: r.params.entity(), names: r.params.fields(maxFields)}
	if len(q.names) == 0 {
		r.params.refuse("field", "missing", "at least one field")
	}
	q.from, q.to, _ = r.params.interval()
	q.columns = r.params.integer("columns", 800, maxColumns)
	var auto bool
	q.gap, auto = r.params.gap()
	if err := r.params.check(); err != nil {
		return err
	}
	var step time.Duration
	if auto {
		if q.gap, step, err = gapOf(r.Context(), repo, q.entity, q.from, q.to, q.columns); err != nil {
			return err
		}
	}
	var out *lines
	if step == 0 || q.to.Sub(q.from)/step <= time.Duration(perColumn*q.columns) {
		out, err = q.points(r.Context(), repo)
	}
	if out == nil && (err == nil || d.known != nil && errors.Is(err, limit.ErrExceeded)) { // a rollup may be longer than what the tenant may read of points
		out, err = s.windows(r.Context(), r.tenant, d, repo, q)
	}
	if err != nil {
		return err
	}
	out.Gap = inMillis(q.gap)
	return encode(w, out)
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// points returns lines of all points. It returns nil if there are too many.
func (q linesQuery) points(ctx context.Context, repo *tsdb.Repository[codec.Record]) (*lines, error) {
	out := &lines{Lines: make([]line, len(q.names))}
	n, most := 0, perColumn*q.columns
	for p, err := range repo.Range(ctx, q.entity, tsdb.Between(q.from, q.to), tsdb.OldestFirst, tsdb.Limit(most+1)) {
		if n++; n > most {
			return nil, nil
		}
		if bad(err) {
			out.Bad++
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, name := range q.names {
			if x, ok := number(p.Value, name); ok {
				l := &out.Lines[i]
				if q.gap > 0 && !l.last.IsZero() && p.Time.Sub(l.last) > q.gap {
					l.breakBefore(p.Time)
				}
				l.Times, l.Values = append(l.Times, millis(p.Time)), append(l.Values, x)
				l.last = p.Time
			}
		}
	}
	return out, nil
}

// breakBefore interrupts a line in the middle between its last sample and a time.
func (l *line) breakBefore(t time.Time) {
	l.Times, l.Values = append(l.Times, (millis(l.last)+millis(t))/2), append(l.Values, math.NaN())
	if l.Low != nil {
		l.Low, l.High = append(l.Low, math.NaN()), append(l.High, math.NaN())
	}
}
