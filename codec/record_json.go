package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// MarshalJSON returns the record as a JSON object, sorted by name, for API responses. A float has a point or an
// exponent, an integer has neither, so that UnmarshalJSON can distinguish them. A NaN, an infinity and the zero
// [Value] fail with [ErrEncode].
//
// Do not store this JSON, because it does not distinguish signed from unsigned integers: use [Records].
func (r Record) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range r.fields {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, NewEncodeError(tagJSON, err)
		}
		out = append(append(out, name...), ':')
		switch f.Value.kind {
		case KindFloat:
			text := f.Value.String()
			if v, _ := f.Value.Float(); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, NewEncodeError(tagJSON,
					invalid.New(errRecord, "field "+invalid.Quote(f.Name), text, "a finite number"))
			}
			if !strings.ContainsAny(text, ".e") {
				text += ".0"
			}
			out = append(out, text...)
		case KindInt:
			out = strconv.AppendInt(out, int64(f.Value.bits), 10)
		case KindUint:
			out = strconv.AppendUint(out, f.Value.bits, 10)
		case KindStr:
			text, err := json.Marshal(f.Value.str)
			if err != nil {
				return nil, NewEncodeError(tagJSON, err)
			}
			out = append(out, text...)
		case KindBool:
			out = strconv.AppendBool(out, f.Value.bits == 1)
		default:
			return nil, NewEncodeError(tagJSON,
				invalid.New(errRecord, "field "+invalid.Quote(f.Name), "the zero Value", "a value"))
		}
	}
	return append(out, '}'), nil
}

var errNotRecord = errors.New("want a JSON object of numbers, strings, true and false")

// UnmarshalJSON sets r to a JSON object of numbers, strings, true and false. A number with a point or an exponent
// becomes a float, any other an int, or a uint if it is above the largest int. A number that fits neither is an
// error. As for other types, null changes nothing. r must not be in use by another goroutine.
func (r *Record) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return fmt.Errorf("codec: record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("codec: record: %w", errNotRecord)
	}
	values := make(map[string]Value, len(object))
	for name, v := range object {
		value, err := valueOfJSON(v)
		if err != nil {
			return fmt.Errorf("codec: record: field %s: %w", invalid.Quote(name), err)
		}
		values[name] = value
	}
	*r = RecordOf(values)
	return nil
}

func valueOfJSON(v any) (Value, error) {
	switch v := v.(type) {
	case string:
		return Str(v), nil
	case bool:
		return Bool(v), nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, err := v.Float64()
			return Float(f), err
		}
		if i, err := v.Int64(); err == nil {
			return Int(i), nil
		}
		u, err := strconv.ParseUint(v.String(), 10, 64)
		return Uint(u), err
	default:
		return Value{}, errNotRecord
	}
}
