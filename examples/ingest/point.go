package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// lineError is the reason why a line can never be stored as it is.
type lineError struct {
	reason string // for the counts of refused lines
	err    error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

// point is a parsed line.
type point struct {
	dataset *dataset
	entity  tsdb.Entity
	time    time.Time
	record  codec.Record
}

// errBlank is the error of a line without anything: empty, or a comment.
var errBlank = errors.New("blank")

// errSeveral is the error of a text in which the decoder finds another end of a quoted text.
var errSeveral = errors.New("a quoted text ends in an odd place")

// clock is how lines state the time.
type clock struct {
	unit time.Duration
	now  time.Time // of lines without a time; one value per request, so that such lines of one series merge
}

// parse parses one line.
func (ds *datasets) parse(ctx context.Context, id tenant.ID, text []byte, c clock) (point, error) {
	if !utf8.Valid(text) {
		return point{}, unparsable(errors.New("the line is not valid UTF-8"))
	}
	d := lineprotocol.NewDecoderWithBytes(text)
	if !d.Next() {
		return point{}, errBlank
	}
	measurement, err := d.Measurement()
	if err != nil {
		return point{}, unparsable(err)
	}
	p := point{}
	if p.dataset, err = ds.find(ctx, id, measurement); err != nil {
		return point{}, err
	}
	fields, err := p.readTags(d)
	if err != nil {
		return point{}, err
	}
	if fields, err = readFields(d, fields); err != nil {
		return point{}, err
	}
	p.record = codec.NewRecord(fields...)
	if p.time, err = readTime(d, c); err != nil {
		return point{}, err
	}
	if d.Next() {
		return point{}, unparsable(errSeveral)
	}
	return p, nil
}

func unparsable(err error) error {
	if de, ok := errors.AsType[*lineprotocol.DecodeError](err); ok {
		err = fmt.Errorf("column %d: %w", de.Column, de.Err) // the decoder sees only this line
	}
	return &lineError{"it cannot be parsed", err}
}

// readTags makes the entity from the key tags, and returns the other tags as fields.
func (p *point) readTags(d *lineprotocol.Decoder) (others []codec.Field, err error) {
	key := make([]string, len(p.dataset.tags), len(p.dataset.tags)+1)
	given := make([]bool, len(key))
	for {
		name, value, err := d.NextTag()
		if err != nil {
			return nil, unparsable(err)
		}
		if name == nil {
			break
		}
		if i := slices.Index(p.dataset.tags, string(name)); i >= 0 {
			if given[i] {
				return nil, unparsable(fmt.Errorf("the tag %q comes twice", name))
			}
			key[i], given[i] = string(value), true
			continue
		}
		tag := codec.Field{Name: tagPrefix + string(name), Value: codec.Str(string(value))}
		if slices.ContainsFunc(others, func(f codec.Field) bool { return f.Name == tag.Name }) {
			return nil, unparsable(fmt.Errorf("the tag %q comes twice", name))
		}
		if len(others) == codec.MaxFields {
			return nil, unparsable(fmt.Errorf("more than %d tags", codec.MaxFields))
		}
		others = append(others, tag)
	}
	if i := slices.Index(given, false); i >= 0 {
		return nil, &lineError{
			"it lacks the key tag " + p.dataset.tags[i],
			fmt.Errorf("the tag %q is missing, which is part of the key of %s", p.dataset.tags[i], p.dataset.name),
		}
	}
	if p.dataset.rest {
		key, others = append(key, series(others)), nil
	}
	p.entity = tsdb.NewEntity(key...)
	return others, nil
}

// series returns tags as one text, in the order of their names and escaped, so that no two sets of tags have the same.
func series(tags []codec.Field) string {
	if len(tags) == 0 {
		return "-"
	}
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`)
	slices.SortFunc(tags, func(a, b codec.Field) int { return strings.Compare(a.Name, b.Name) })
	parts := make([]string, len(tags))
	for i, t := range tags {
		value, _ := t.Value.Str()
		parts[i] = escape.Replace(strings.TrimPrefix(t.Name, tagPrefix)) + "=" + escape.Replace(value)
	}
	return strings.Join(parts, ",")
}

func readFields(d *lineprotocol.Decoder, fields []codec.Field) ([]codec.Field, error) {
	tags := len(fields)
	for {
		name, value, err := d.NextField()
		if err != nil {
			return nil, unparsable(err)
		}
		if name == nil {
			break
		}
		if bytes.HasPrefix(name, []byte(tagPrefix)) {
			return nil, &lineError{"a field has a tag's name", fmt.Errorf("the field %.64q starts with %q, which tags are stored under", name, tagPrefix)}
		}
		fields = append(fields, codec.Field{Name: string(name), Value: valueOf(value)})
	}
	if len(fields) == tags {
		return nil, unparsable(errors.New("the line has no fields"))
	}
	return fields, nil
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
