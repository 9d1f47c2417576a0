package main

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
)

// rows prints the rows of a query as --output says: as text in columns, as one object of JSON per line, or as CSV. The columns
// depend on the command line, and not on what is stored.
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
		if f == "" {
			fields[i] = "-"
		}
	}
	if _, err := fmt.Fprintln(r.text, strings.Join(fields, "\t")); err != nil || r.printed%flushed > 0 {
		return err
	}
	return r.text.Flush()
}

// end prints what is left. After an error, the last line of CSV says that rows are missing. It has only one field, so that strict
// readers refuse the file.
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

// pointRows prints points: as printPoint does, as Parquet, or as CSV with the columns of an export, except for the class.
type pointRows struct {
	app     *app
	view    *inspect.View
	csv     *rows
	parquet *parquetWriter
	printed int
}

func (a *app) points(v *inspect.View, measures ...measure) (p *pointRows, err error) {
	p = &pointRows{app: a, view: v}
	switch a.form {
	case "parquet":
		p.parquet, err = newParquet(a.std.out, v, measures)
	case "csv":
		p.csv, err = a.rows(append(slices.Clone(v.Describe().Key), "time", "id", "tag", "json", "base64", "error")...)
	}
	return p, err
}

func (p *pointRows) add(of inspect.Point) error {
	p.printed++
	if p.parquet != nil {
		return p.parquet.add(of)
	}
	if p.csv == nil {
		return p.app.printPoint(p.view, of)
	}
	s := shown(p.view, of)
	return p.csv.add(nil, append(p.view.Values(of.Entity),
		aggregate.Instant(s.Time.Time), s.ID, s.Tag, string(s.JSON), base64.StdEncoding.EncodeToString(s.Base64), s.Error)...)
}

func (p *pointRows) end(err error) error {
	if p.parquet != nil && err == nil {
		return p.parquet.end()
	}
	if p.csv == nil {
		return err
	}
	return p.csv.end(err)
}
