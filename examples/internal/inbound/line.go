package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErrBlank is the error of a record without anything: an empty line, a comment, or an object with nothing but null.
var ErrBlank = errors.New("blank")

// errSeveral is the error of a text in which the decoder finds another end of a quoted text.
var errSeveral = errors.New("a quoted text ends in an odd place")

// Clock is how lines of line protocol state the time.
type Clock struct {
	Unit time.Duration
	// Guess says that the size of a number gives its unit, as InfluxDB 3 documents it, and not Unit.
	Guess bool
	// Now is the time of lines without one. Use one value per request, so that such lines of one series merge. If it is
	// zero, they are refused.
	Now time.Time
}

// ParseLine parses one line of line protocol. The error is ErrBlank, or an *Error if the line can never be stored as it
// is.
func (ds *Datasets) ParseLine(ctx context.Context, id tenant.ID, text []byte, c Clock) (Point, error) {
	return ds.parseLine(ctx, id, text, nil, c)
}

// Line parses a message that is one line of line protocol, as ParseLine does. The route must read line protocol.
func (r *Route) Line(ctx context.Context, ds *Datasets, id tenant.ID, m Message) (Point, error) {
	return ds.parseLine(ctx, id, m.Payload, m.Names, r.clock(m))
}

func (ds *Datasets) parseLine(ctx context.Context, id tenant.ID, text []byte, tags map[string]string, c Clock) (Point, error) {
	if !utf8.Valid(text) {
		return Point{}, unparsable(errors.New("the line is not valid UTF-8"))
	}
	d := lineprotocol.NewDecoderWithBytes(text)
	if !d.Next() {
		return Point{}, ErrBlank
	}
	p, err := ds.readLine(ctx, id, d, tags, c)
	if err == nil && d.Next() {
		return Point{}, unparsable(errSeveral)
	}
	return p, err
}

// readLine reads the decoder's line, with more tags than it has itself.
func (ds *Datasets) readLine(ctx context.Context, id tenant.ID, d *lineprotocol.Decoder, tags map[string]string, c Clock) (Point, error) {
	measurement, err := d.Measurement()
	if err != nil {
		return Point{}, unparsable(err)
	}
	name := string(measurement)
	dataset, err := ds.Find(ctx, id, cmp.Or(ds.lines.Line(name), name))
	if err != nil {
		return Point{}, err
	}
	b := dataset.NewPoint()
	b.measurement(name)
	if err := b.addNames(tags); err != nil {
		return Point{}, err
	}
	if err := ds.readTags(d, b); err != nil {
		return Point{}, err
	}
	if err := readFields(d, b); err != nil {
		return Point{}, err
	}
	at, err := readTime(d, c)
	if err != nil {
		return Point{}, err
	}
	return b.Point(at)
}

// readLines reads a payload of line protocol. Comments and empty lines store nothing.
func (r *Route) readLines(ctx context.Context, ds *Datasets, id tenant.ID, m Message) ([]Event, error) {
	c := r.clock(m)
	var events []Event
	d := lineprotocol.NewDecoderWithBytes(m.Payload)
	for n := 1; d.Next(); n++ {
		if n > maxEvents {
			return nil, badSyntax("the payload has more than %d lines", maxEvents)
		}
		p, err := ds.readLine(ctx, id, d, m.Names, c)
		if err == nil {
			err = r.checkNamed(p.Dataset)
		}
		if refused, ok := errors.AsType[*Error](err); ok {
			return nil, &Error{refused.Reason, fmt.Errorf("line %d: %w", n, err)}
		}
		if err != nil {
			return nil, err
		}
		p.change = r.change
		events = append(events, Event{Point: p})
	}
	if len(events) == 0 {
		return nil, badSyntax("the payload has no line")
	}
	return events, nil
}

// clock returns how the lines of a message state the time.
func (r *Route) clock(m Message) Clock {
	c := Clock{Unit: r.unit}
	if r.time == timeArrival {
		c.Now = m.Arrived
	}
	return c
}

func unparsable(err error) error {
	if de, ok := errors.AsType[*lineprotocol.DecodeError](err); ok {
		err = fmt.Errorf("column %d: %w", de.Column, de.Err) // the decoder sees only this line
	}
	return &Error{ReasonSyntax, err}
}

// readTags adds the tags, of which some are the key.
func (ds *Datasets) readTags(d *lineprotocol.Decoder, b *PointBuilder) error {
	for {
		name, value, err := d.NextTag()
		if err != nil {
			return unparsable(err)
		}
		if name == nil {
			return b.CheckKey()
		}
		if ds.lines.Drops(string(name)) {
			continue
		}
		if err := b.Tag(string(name), string(value)); err != nil {
			return err
		}
	}
}

func readFields(d *lineprotocol.Decoder, b *PointBuilder) error {
	for n := 0; ; n++ {
		name, value, err := d.NextField()
		switch {
		case err != nil:
			return unparsable(err)
		case name == nil && n == 0:
			return unparsable(errors.New("the line has no fields"))
		case name == nil:
			return nil
		}
		if err := b.Field(string(name), valueOf(value)); err != nil {
			return err
		}
	}
}

// valueOf keeps a value's type.
func valueOf(v lineprotocol.Value) codec.Value {
	switch v.Kind() {
	case lineprotocol.Float:
		return codec.Float(v.FloatV())
	case lineprotocol.Int:
		return codec.Int(v.IntV())
	case lineprotocol.Uint:
		return codec.Uint(v.UintV())
	case lineprotocol.Bool:
		return codec.Bool(v.BoolV())
	default:
		return codec.Str(v.StringV())
	}
}

func readTime(d *lineprotocol.Decoder, c Clock) (Stamp, error) {
	text, err := d.TimeBytes()
	switch {
	case err != nil:
		return Stamp{}, unparsable(err)
	case len(text) == 0 && c.Now.IsZero():
		return Stamp{}, badTime("the line has no time, and the route does not say time=arrival")
	case len(text) == 0:
		return At(c.Now), nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return Stamp{}, unparsable(fmt.Errorf("the time %.64q does not fit 64 bits", text))
	}
	if c.Guess {
		return Unix(n, guess(n)), nil
	}
	return Unix(n, c.Unit), nil
}

// guess returns the unit in which a number is about a time from 1970 to 2128, as InfluxDB 3 guesses it.
func guess(n int64) time.Duration {
	switch {
	case -5e9 < n && n < 5e9:
		return time.Second
	case -5e12 < n && n < 5e12:
		return time.Millisecond
	case -5e15 < n && n < 5e15:
		return time.Microsecond
	}
	return time.Nanosecond
}
