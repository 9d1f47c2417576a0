package main

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
)

// tableWriter converts the export of one dataset to a table for other programs: to Parquet, or to CSV as in RFC 4180, except that lines
// end with \n alone: otherwise package csv would change values that contain line ends. The columns of CSV are the key fields, by name,
// then time, class, tag, json and base64, and the id if points have an identity. A payload is in either json or base64.
type tableWriter struct {
	out     io.WriteCloser
	rows    *csv.Writer
	parquet *parquetWriter // or nil for CSV
	view    *inspect.View  // which knows the kinds of key fields
	rest    []byte         // of a line that is not whole
}

func newCSV(out io.WriteCloser, v *inspect.View) *tableWriter {
	return &tableWriter{out: out, rows: csv.NewWriter(out), view: v}
}

// Write takes some of an export.
func (w *tableWriter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			w.rest = append(w.rest, b...)
			return n, nil
		}
		if err := w.line(append(w.rest, line...)); err != nil {
			return 0, err
		}
		w.rest, b = w.rest[:0], rest
	}
}

// line takes a line of an export: its header, a point, or a sum.
func (w *tableWriter) line(text []byte) error {
	var l struct {
		Tidemark string
		Dataset  string
		Entity   []string
		Time     string
		Units    *int64
		ID       string
		Class    string
		Tag      string
		JSON     json.RawMessage
		Base64   []byte
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	d := w.view.Describe()
	at, err := timeOfLine(l.Time, l.Units, d.Precision)
	if err != nil {
		return err
	}
	if w.parquet != nil {
		if l.Dataset == "" {
			return nil
		}
		p := inspect.Point{Entity: tsdb.NewEntity(l.Entity...), ID: l.ID, Class: l.Class, Tag: l.Tag, Payload: l.JSON}
		if l.JSON == nil {
			p.Payload = l.Base64
		}
		p.Time = at
		return w.parquet.add(p)
	}
	var id []string // a column at the end, where there are IDs
	switch {
	case l.Tidemark != "":
		if d.Identity {
			id = []string{"id"}
		}
		return w.rows.Write(slices.Concat(d.Key, []string{"time", "class", "tag", "json", "base64"}, id))
	case l.Dataset != "":
		if d.Identity {
			id = []string{l.ID}
		}
		return w.rows.Write(slices.Concat(w.view.Values(tsdb.NewEntity(l.Entity...)), []string{aggregate.Instant(at), l.Class, l.Tag, string(l.JSON), base64.StdEncoding.EncodeToString(l.Base64)}, id))
	}
	return nil
}

// timeOfLine returns the time of a point's line; zero for other lines. After the year 9999 a line has units of the dataset's precision.
func timeOfLine(text string, units *int64, in tsdb.Precision) (time.Time, error) {
	switch {
	case units == nil && text == "":
		return time.Time{}, nil
	case units == nil:
		return time.Parse(time.RFC3339Nano, text)
	case in == tsdb.Microseconds:
		return time.UnixMicro(*units), nil
	}
	return time.UnixMilli(*units), nil
}

// end writes what is left of a table that is complete. Of one that is not, CSV has the rows so far, and Parquet no end.
func (w *tableWriter) end(failed error) error {
	switch {
	case w.parquet == nil:
		w.rows.Flush()
		return w.rows.Error()
	case failed == nil:
		return w.parquet.end()
	}
	return nil
}

// Close writes the end of a table that is complete, and closes the file.
func (w *tableWriter) Close() error { return errors.Join(w.end(nil), w.out.Close()) }
