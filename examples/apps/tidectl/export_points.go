package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// pointSink takes points in the form that a user wants. After end it is not used again.
type pointSink interface {
	add(p dynamic.Point) error
	end(failed error) error
}

// exportedPoints gives the points of an export of one dataset to a sink, and writes the sink's file.
type exportedPoints struct {
	out  io.WriteCloser
	to   pointSink
	in   tsdb.Precision
	rest []byte // of a line that is not whole
}

// Write takes some of an export.
func (e *exportedPoints) Write(b []byte) (int, error) {
	n := len(b)
	for {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			e.rest = append(e.rest, b...)
			return n, nil
		}
		if err := e.line(append(e.rest, line...)); err != nil {
			return 0, err
		}
		e.rest, b = e.rest[:0], rest
	}
}

// line takes a line of an export: its header, a point, or a sum.
func (e *exportedPoints) line(text []byte) error {
	var l struct {
		Dataset string
		Entity  []string
		Time    string
		Units   *int64
		ID      string
		Class   string
		Tag     string
		JSON    json.RawMessage
		Base64  []byte
	}
	if err := json.Unmarshal(text, &l); err != nil || l.Dataset == "" {
		return err
	}
	at, err := timeOfLine(l.Time, l.Units, e.in)
	if err != nil {
		return err
	}
	p := dynamic.Point{Entity: tsdb.NewEntity(l.Entity...), Time: at, ID: l.ID, Class: l.Class, Tag: l.Tag, Payload: l.JSON}
	if l.JSON == nil {
		p.Payload = l.Base64
	}
	return e.to.add(p)
}

// timeOfLine returns the time of a point's line. After the year 9999 a line has units of the dataset's precision.
func timeOfLine(text string, units *int64, in tsdb.Precision) (time.Time, error) {
	switch {
	case units == nil:
		return time.Parse(time.RFC3339Nano, text)
	case in == tsdb.Microseconds:
		return time.UnixMicro(*units), nil
	}
	return time.UnixMilli(*units), nil
}

// Close writes the end of a table that is complete, and closes the file.
func (e *exportedPoints) Close() error { return errors.Join(e.to.end(nil), e.out.Close()) }
