package main

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// rows prints the rows of a query as --output says: as text in columns, as one object of JSON per line, or as CSV. The
// columns depend on the command line, and not on what is stored.
type rows struct {
	app     *app
	csv     *csv.Writer
	text    *tabwriter.Writer
	printed int
}

// flushed is after how many rows text is printed. The columns are as wide as they need for these.
const flushed = 100

// rows begins with the names of the columns.
func (a *app) rows(columns ...string) (*rows, error) {
	r := &rows{app: a}
	switch a.form {
	case "json":
		return r, nil
	case "csv":
		r.csv = csv.NewWriter(a.std.out)
		return r, r.csv.Write(columns)
	}
	r.text = tabwriter.NewWriter(a.std.out, 0, 8, 2, ' ', 0)
	_, err := fmt.Fprintln(r.text, strings.ToUpper(strings.Join(columns, "\t")))
	return r, err
}

// add prints a row: as JSON v, and otherwise one text for each column.
func (r *rows) add(v any, fields ...string) error {
	r.printed++
	switch {
	case r.csv != nil:
		return r.csv.Write(fields)
	case r.text == nil:
		return json.NewEncoder(r.app.std.out).Encode(v)
	}
	for i, f := range fields {
		if fields[i] = cell(f); f == "" {
			fields[i] = "-"
		}
	}
	if _, err := fmt.Fprintln(r.text, strings.Join(fields, "\t")); err != nil || r.printed%flushed > 0 {
		return err
	}
	return r.text.Flush()
}

// end prints what is left. After an error, the last line of CSV says that rows are missing. It has only one field, so
// that strict readers refuse the file.
func (r *rows) end(err error) error {
	switch {
	case r.csv != nil:
		if err != nil {
			_ = r.csv.Write([]string{"incomplete: " + err.Error()})
		}
		r.csv.Flush()
		if err == nil {
			err = r.csv.Error()
		}
	case r.text != nil:
		if ferr := r.text.Flush(); err == nil {
			err = ferr
		}
	}
	return err
}

// pointRows prints the points of a query.
type pointRows struct {
	to      pointSink
	printed int
}

// points returns what prints points as --output says. Measures are the columns of a table; without any, these are the
// fields.
func (a *app) points(v *dynamic.View, measures ...measure) (*pointRows, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	p := &pointRows{to: printedPoints{a, a.std.out, a.form, r, v}}
	switch a.form {
	case "parquet":
		p.to, err = newTable(newParquet(a.std.out, described(v).Name, precisions[described(v).Precision]), r, v, measures, false)
	case "csv":
		p.to, err = newTable(newCSV(a.std.out), r, v, measures, false)
	}
	return p, err
}

func (p *pointRows) add(of dynamic.Point) error {
	p.printed++
	return p.to.add(of)
}

func (p *pointRows) end(err error) error { return p.to.end(err) }

// printedPoints prints each point on a line: as JSON, or its time, its key, its tag and its payload.
type printedPoints struct {
	app  *app
	out  io.Writer
	form string
	read reader
	view *dynamic.View
}

func (p printedPoints) add(of dynamic.Point) error {
	s := p.shown(of)
	if p.form == "json" {
		return json.NewEncoder(p.out).Encode(s)
	}
	text := s.Error
	if text == "" {
		text = string(s.JSON) + base64.StdEncoding.EncodeToString(s.Base64) // only one of them is there
	}
	id := ""
	if of.ID != "" {
		id = "  " + of.ID
	}
	_, err := fmt.Fprintln(p.out, cell(fmt.Sprintf("%s%s  %s  %s  %s", instant.Text(of.Time.UTC()), id, of.Entity, of.Tag, text)))
	return err
}

func (printedPoints) end(err error) error { return err }

// shownPoint is a point as it is printed. Its payload is JSON, or base64 where nothing reads it.
type shownPoint struct {
	Dataset string            `json:"dataset"`
	Key     map[string]string `json:"key"`
	Time    instant.Time      `json:"time"`
	ID      string            `json:"id,omitempty"`
	Class   string            `json:"class,omitempty"`
	Tag     string            `json:"tag,omitempty"`
	JSON    json.RawMessage   `json:"json,omitempty"`
	Base64  []byte            `json:"base64,omitempty"`
	Error   string            `json:"error,omitempty"`
}

func (p printedPoints) shown(of dynamic.Point) shownPoint {
	d := described(p.view)
	out := shownPoint{Dataset: d.Name, Key: map[string]string{}, Time: instant.Time{Time: of.Time.UTC()}, ID: of.ID, Class: of.Class, Tag: of.Tag}
	for i, value := range p.view.Values(of.Entity) {
		out.Key[d.Key[i].Name] = value
	}
	var err error
	if out.JSON, out.Base64, err = p.read.json(of); err != nil {
		out.Error = err.Error()
	}
	return out
}
