package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
)

// csvWriter converts the export of one dataset to CSV as in RFC 4180, except that lines end with \n alone: otherwise package csv
// would change values that contain line ends. The columns are the key fields, by name, then time, class, tag, json and base64,
// and the id if points have an identity. A payload is in either json or base64.
type csvWriter struct {
	out  io.WriteCloser
	rows *csv.Writer
	view *inspect.View // which knows the kinds of key fields
	rest []byte        // of a line that is not whole
}

func newCSV(out io.WriteCloser, v *inspect.View) *csvWriter {
	return &csvWriter{out: out, rows: csv.NewWriter(out), view: v}
}

// Write takes some of an export.
func (w *csvWriter) Write(b []byte) (int, error) {
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
func (w *csvWriter) line(text []byte) error {
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
		Base64   string
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	d := w.view.Describe()
	var id []string // a column at the end, where there are IDs
	switch {
	case l.Tidemark != "":
		if d.Identity {
			id = []string{"id"}
		}
		return w.rows.Write(slices.Concat(d.Key, []string{"time", "class", "tag", "json", "base64"}, id))
	case l.Dataset != "":
		if l.Units != nil {
			l.Time = fmt.Sprint(*l.Units) // after the year 9999, in units of the dataset's precision
		}
		if d.Identity {
			id = []string{l.ID}
		}
		return w.rows.Write(slices.Concat(w.view.Values(tsdb.NewEntity(l.Entity...)), []string{l.Time, l.Class, l.Tag, string(l.JSON), l.Base64}, id))
	}
	return nil
}

func (w *csvWriter) flush() error {
	w.rows.Flush()
	return w.rows.Error()
}

// Close writes what is left, and closes the file.
func (w *csvWriter) Close() error { return errors.Join(w.flush(), w.out.Close()) }
