package main

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxColumns is the largest number of columns of one response.
const maxColumns = 10_000

// source says what a line is read from: all points, but for those between two times, where buckets of a rollup are
// read.
type source struct {
	Rollup string    `json:"rollup,omitempty"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Exact  bool      `json:"exact"` // the samples draw the same pixels as all points
}

// chart answers GET: the samples for a line through an entity's points, for a chart of the given number of columns.
func (s *server) chart(w http.ResponseWriter, r request) error {
	p := r.params
	e, in := p.entity(r.dataset), p.bounded()
	measures := r.dataset.numbers()
	if len(measures) == 0 {
		p.refuse("dataset", "without numbers", "one with a measure that is a number")
		return p.check()
	}
	measure := p.one("measure", measures...)
	method := p.one("method", "m4", "lttb")
	opts := window.LineOptions{LTTB: method == "lttb", Columns: p.integer("columns", 1000, maxColumns), MaxGap: p.duration("max_gap")}
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	line, err := r.dataset.chart(r.Context(), r.tenant, e, in, measure, opts)
	if err != nil {
		return err
	}
	answer := struct {
		Source     source              `json:"source"`
		Samples    []window.LineSample `json:"samples"`
		Unreadable int                 `json:"unreadable,omitempty"` // points that do not decode
	}{Source: source{line.Rollup, line.From, line.To, line.Exact}, Samples: []window.LineSample{}}
	for sample, err := range line.Samples {
		if _, unreadable := errors.AsType[*tsdb.PointError](err); unreadable {
			answer.Unreadable++
			continue
		}
		if err != nil {
			return err
		}
		answer.Samples = append(answer.Samples, sample)
	}
	if as == asJSON {
		return write(w, answer)
	}
	var rows [][]string
	for _, s := range answer.Samples {
		rows = append(rows, []string{aggregate.Instant(s.Time), decimal(&s.Value), strconv.FormatBool(s.Break), strconv.FormatBool(s.Approx)})
	}
	return s.sendCSV(w, r, []string{"time", "value", "break", "approx"}, whole(rows))
}

// one reads one of the known names; the default is the first.
func (p *params) one(name string, known ...string) string {
	text, ok := p.text(name)
	if !ok {
		return known[0]
	}
	if !slices.Contains(known, text) {
		p.refuse(name, shown(text), "one of "+strings.Join(known, ", "))
	}
	return text
}

// duration reads a duration; the default is 0.
func (p *params) duration(name string) time.Duration {
	text, ok := p.text(name)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		p.refuse(name, shown(text), "a duration of 0s or more")
	}
	return d
}
