package dynamic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
)

var errMore = errors.New("bytes after the value")

func decodeJSON(src []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errMore
	}
	return withNumbers(v)
}

// withNumbers replaces each json.Number in a value by a number.
func withNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return numberOf(v.String())
	case map[string]any:
		for name, of := range v {
			if v[name], err = withNumbers(of); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = withNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// numberOf returns the number of JSON text: an integer if it fits 64 bits, and else the nearest float64.
func numberOf(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return u, nil
		}
	}
	return strconv.ParseFloat(text, 64)
}

func decodeRecord(src []byte) (any, error) {
	r, err := codec.Records().Decode(src)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, r.Len())
	for name, v := range r.All() {
		fields[name] = fieldOf(v)
	}
	return fields, nil
}

func fieldOf(v codec.Value) any {
	switch v.Kind() {
	case codec.KindFloat:
		f, _ := v.Float()
		return f
	case codec.KindInt:
		i, _ := v.Int()
		return i
	case codec.KindUint:
		u, _ := v.Uint()
		return u
	case codec.KindBool:
		b, _ := v.Bool()
		return b
	}
	s, _ := v.Str()
	return s
}

// numberIn returns the number of a decoded value below names: a bool is 0 or 1.
func numberIn(v any, names []string) (float64, bool) {
	for _, name := range names {
		fields, ok := v.(map[string]any)
		if !ok {
			return 0, false
		}
		if v, ok = fields[name]; !ok {
			return 0, false
		}
	}
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}
