package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// MarshalJSON returns the record as a JSON object, sorted by name, for API responses. A float has a point or an
// exponent, an integer has neither, so that UnmarshalJSON can distinguish them. Bytes are text in base64, and a time is
// text as in RFC 3339. A NaN, an infinity and the zero [Value] fail with [ErrEncode].
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
			return nil, codecerr.NewEncode(tagJSON, err)
		}
		out = append(append(out, name...), ':')
		if out, err = f.Value.appendJSON(out); err != nil {
			return nil, codecerr.NewEncode(tagJSON, fmt.Errorf("field %s: %w", invalid.Quote(f.Name), err))
		}
	}
	return append(out, '}'), nil
}

// MarshalJSON returns the value as JSON, as in [Record.MarshalJSON]: a float has a point or an exponent, an integer has
// neither, and all digits of a number are exact. Bytes are text in base64, and a time is text as in RFC 3339. The zero
// Value is null. A NaN and an infinity fail with [ErrEncode].
func (v Value) MarshalJSON() ([]byte, error) {
	if v.kind == KindInvalid {
		return []byte("null"), nil
	}
	out, err := v.appendJSON(nil)
	if err != nil {
		return nil, codecerr.NewEncode(tagJSON, err)
	}
	return out, nil
}

func (v Value) appendJSON(out []byte) ([]byte, error) {
	switch v.kind {
	case KindFloat:
		f, _ := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, invalid.New(errRecord, "value", v.String(), "a finite number")
		}
		text := v.String()
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		if math.Abs(f) >= 1<<53 {
			if n, _ := ParseNumber(text); n != v { // the shortest text is an integer that no float64 has
				text = strconv.FormatFloat(f, 'f', 1, 64)
			}
		}
		return append(out, text...), nil
	case KindInt:
		return strconv.AppendInt(out, int64(v.bits), 10), nil
	case KindUint:
		return strconv.AppendUint(out, v.bits, 10), nil
	case KindBool, KindNull, KindList:
		return append(out, v.String()...), nil
	case KindStr:
		text, err := json.Marshal(v.str)
		return append(out, text...), err
	case KindBytes, KindTime:
		return strconv.AppendQuote(out, v.String()), nil
	default:
		return nil, invalid.New(errRecord, "value", "the zero Value", "a value")
	}
}

var errNotRecord = errors.New("want a JSON object of numbers, strings, true, false and null")

// UnmarshalJSON sets r to a JSON object of numbers, strings, true and false. A field that is null is left out. A number
// is what [ParseNumber] returns for it: an integer without a point and an exponent is an int, or a uint above the
// largest int, or the nearest float if it is longer. A list, an object and a number that is too large for a float64 are
// an error, which names the first such field in the order of the names. As for other types, null changes nothing. r
// must not be in use by another goroutine.
func (r *Record) UnmarshalJSON(data []byte) error {
	if r == nil {
		return invalid.New(codecerr.ErrInvalid, "record", "nil", "a pointer to a Record")
	}
	if string(data) == "null" {
		return nil
	}
	plain, err := decodeJSON(data)
	if err != nil {
		return fmt.Errorf("codec: record: %w", err)
	}
	object, ok := plain.(map[string]any)
	if !ok {
		return fmt.Errorf("codec: record: %w", errNotRecord)
	}
	fields := make([]Field, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch v := ValueOf(object[name]); v.kind {
		case KindNull:
		case KindInvalid, KindList:
			err := errNotRecord
			if _, isNumber := object[name].(json.Number); isNumber {
				err = errTooLarge
			}
			return fmt.Errorf("codec: record: field %s: %w", invalid.Quote(name), err)
		default:
			fields = append(fields, Field{name, v})
		}
	}
	*r = NewRecord(fields...)
	return nil
}

// decodeJSON returns the plain value of JSON text, with a json.Number for each number.
func decodeJSON(src []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errLeftOverJSON
	}
	return v, nil
}
