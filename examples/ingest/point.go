package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
)

// errBlank is the error of a line without anything: empty, or a comment.
var errBlank = errors.New("blank")

// errSeveral is the error of a text in which the decoder finds another end of a quoted text.
var errSeveral = errors.New("a quoted text ends in an odd place")

// clock is how lines state the time.
type clock struct {
	unit time.Duration
	now  time.Time // of lines without a time; one value per request, so that such lines of one series merge
}

// parseLine parses one line. The error is an *inbound.Error if the line can never be stored as it is.
func parseLine(ctx context.Context, ds *inbound.Datasets, id tenant.ID, text []byte, c clock) (inbound.Point, error) {
	if !utf8.Valid(text) {
		return inbound.Point{}, unparsable(errors.New("the line is not valid UTF-8"))
	}
	d := lineprotocol.NewDecoderWithBytes(text)
	if !d.Next() {
		return inbound.Point{}, errBlank
	}
	measurement, err := d.Measurement()
	if err != nil {
		return inbound.Point{}, unparsable(err)
	}
	dataset, err := ds.Find(ctx, id, string(measurement))
	if err != nil {
		return inbound.Point{}, err
	}
	b := dataset.NewPoint()
	if err := readTags(d, b); err != nil {
		return inbound.Point{}, err
	}
	if err := readFields(d, b); err != nil {
		return inbound.Point{}, err
	}
	at, err := readTime(d, c)
	if err != nil {
		return inbound.Point{}, err
	}
	if d.Next() {
		return inbound.Point{}, unparsable(errSeveral)
	}
	return b.Point(at)
}

func unparsable(err error) error {
	if de, ok := errors.AsType[*lineprotocol.DecodeError](err); ok {
		err = fmt.Errorf("column %d: %w", de.Column, de.Err) // the decoder sees only this line
	}
	return &inbound.Error{Reason: inbound.ReasonSyntax, Err: err}
}

// readTags adds the tags, of which some are the key.
func readTags(d *lineprotocol.Decoder, b *inbound.PointBuilder) error {
	for {
		name, value, err := d.NextTag()
		if err != nil {
			return unparsable(err)
		}
		if name == nil {
			return b.CheckKey()
		}
		if err := b.Tag(string(name), string(value)); err != nil {
			return err
		}
	}
}

func readFields(d *lineprotocol.Decoder, b *inbound.PointBuilder) error {
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

func readTime(d *lineprotocol.Decoder, c clock) (time.Time, error) {
	text, err := d.TimeBytes()
	if err != nil {
		return time.Time{}, unparsable(err)
	}
	if len(text) == 0 {
		return c.now, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n > math.MaxInt64/int64(c.unit) || n < math.MinInt64/int64(c.unit) {
		return time.Time{}, unparsable(fmt.Errorf("the time %.64q is not one in nanoseconds of 64 bits", text))
	}
	return time.Unix(0, n*int64(c.unit)), nil
}
