package main

import (
	"encoding/csv"
	"encoding/json"
	"iter"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/examples/internal/display"
)

// formats are the media types by the names that the parameter format takes.
var formats = map[string]string{"json": asJSON, "lines": asLines, "csv": asCSV}

// accepted returns the media type of the answer: the one that the parameter format names, or the one that Accept
// prefers.
func (r request) accepted(offers ...string) (string, error) {
	name, ok := r.params.text("format")
	if !ok {
		return accepted(r.Request, offers...)
	}
	if as := formats[name]; slices.Contains(offers, as) {
		return as, nil
	}
	var names []string
	for name, as := range formats {
		if slices.Contains(offers, as) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r.params.refuse("format", shown(name), "one of "+strings.Join(names, ", "))
	return offers[0], nil
}

// started knows whether a part of the response has been sent.
type started struct {
	http.ResponseWriter
	yes bool
}

func (s *started) Write(b []byte) (int, error) {
	s.yes = true
	return s.ResponseWriter.Write(b)
}

// sendCSV answers with a line of CSV (RFC 4180, with \n) for each row, and a header. Rows are sent while they are read.
// If reading fails after a part has been sent, the connection is cut, so that no client takes that part for the whole.
func (s *server) sendCSV(w http.ResponseWriter, r request, header []string, rows iter.Seq2[[]string, error]) error {
	w.Header().Set("Content-Type", asCSV+"; charset=utf-8; header=present")
	if r.Method == http.MethodHead {
		return nil
	}
	begun := &started{ResponseWriter: w}
	out := csv.NewWriter(begun)
	_ = out.Write(header) // into a buffer
	for row, err := range rows {
		if err != nil {
			if !begun.yes {
				return err
			}
			s.note(r.Request, err)
			panic(http.ErrAbortHandler)
		}
		if out.Write(row) != nil {
			return nil // the client has gone
		}
	}
	out.Flush()
	return nil
}

// rowsOf returns the row of each element, up to the first error.
func rowsOf[T any](found iter.Seq2[T, error], row func(T) []string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for x, err := range found {
			if err != nil { // there is no element
				yield(nil, err)
				return
			}
			if !yield(row(x), nil) {
				return
			}
		}
	}
}

// sendPoints answers with points as CSV or as lines of JSON: with all, or with as many as the limit if it is not 0.
func (s *server) sendPoints(w http.ResponseWriter, r request, as string, points iter.Seq2[point, error], limit int) error {
	shown := func(yield func(point, error) bool) {
		for p, err := range points {
			if err = bad(&p, err); !yield(p, err) {
				return
			}
		}
	}
	if as == asLines {
		return sendLines(s, w, r, shown, limit)
	}
	return s.sendCSV(w, r, r.dataset.columns(), func(yield func([]string, error) bool) {
		sent := 0
		for p, err := range shown {
			if err != nil {
				yield(nil, err)
				return
			}
			if limit > 0 && sent == limit || !yield(r.dataset.row(p), nil) {
				return
			}
			sent++
		}
	})
}

// sendLines sends each value as a line of JSON when it is found: all, or as many as the limit if it is not 0. Once a
// line is sent, an error can only be reported in the last line: a response is complete if its last line is
// {"end":true}.
func sendLines[V any](s *server, w http.ResponseWriter, r request, values iter.Seq2[V, error], limit int) error {
	w.Header().Set("Content-Type", asLines)
	if r.Method == http.MethodHead {
		return nil
	}
	out := json.NewEncoder(w)
	sent := 0
	for v, err := range values {
		if err != nil {
			if sent == 0 {
				return err
			}
			if p := s.note(r.Request, err); p != nil {
				_ = out.Encode(map[string]*problem{"problem": p})
			}
			return nil
		}
		if limit > 0 && sent == limit {
			_ = out.Encode(map[string]bool{"end": true, "more": true})
			return nil
		}
		if err := out.Encode(v); err != nil {
			return nil // the client has gone
		}
		sent++
	}
	_ = out.Encode(map[string]bool{"end": true})
	return nil
}

// columns are the columns of points in CSV: the key fields, the time, the ID, and the measures. Values without measures
// are JSON.
func (s served[T]) columns() []string {
	out := append(slices.Clone(s.names), "time", "id")
	if len(s.of) == 0 {
		out = append(out, "value")
	}
	return append(append(out, s.measures()...), "problem")
}

// digits returns units times 10^-decimals with all its digits.
func digits(units int64, decimals int) string {
	text := new(big.Rat).SetFrac(big.NewInt(units), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)).FloatString(decimals)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func (s served[T]) row(p point) []string {
	out := append(slices.Clone(p.Key.parts), aggregate.Instant(p.Time.Time), p.ID)
	of, _ := p.Value.(display.Value)
	value, ok := of.Of.(T)
	if len(s.of) == 0 {
		text, err := json.Marshal(of)
		if !ok || err != nil {
			text = nil
		}
		out = append(out, string(text))
	}
	for _, m := range s.of {
		text := ""
		switch {
		case !ok:
		case m.Int != nil:
			if units, ok := m.Int(value); ok {
				text = digits(units, m.Decimals)
			}
		case m.Text != nil:
			text, _ = m.Text(value)
		case m.Of != nil:
			if x, ok := m.Of(value); ok {
				text = decimal(&x)
			}
		}
		out = append(out, text)
	}
	if p.Problem != nil {
		return append(out, p.Problem.Title)
	}
	return append(out, "")
}

// decimal returns a number in CSV: empty for none.
func decimal(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// whole returns rows that are all in memory.
func whole(rows [][]string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
