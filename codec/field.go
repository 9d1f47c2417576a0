package codec

import (
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Number returns one number of a payload with a tag, without decoding the rest: of a sensor's twenty fields, the one that a
// chart shows. It allocates nothing, except for the text of a number of more than 32 characters in JSON.
//
//   - f64 and i64: the number itself, for an empty path.
//   - json: the number below the names of nested objects, the outermost first, or the payload itself for an empty path. As in
//     encoding/json, the last of equal names counts.
//   - rec: the field whose name is the path joined by dots.
//   - str and raw: none.
//
// A bool is 0 or 1. ok is false if there is no number: the path leads to nothing, to null, text, an array or an object. An integer
// above 2^53 is the nearest float64. NaN and the infinities are numbers in f64 and rec; JSON has none.
//
// The error matches [ErrCorrupt] for a payload that its codec does not decode, and for a number in JSON that no float64 holds,
// and [ErrUnknownTag] for other tags: pb needs the type of the message, and compressed payloads need package codec/zstd.
func Number(tag string, payload []byte, path ...string) (x float64, ok bool, err error) {
	switch tag {
	case tagFloat64:
		x, err = float64Codec{}.Decode(payload)
		ok = err == nil && len(path) == 0
	case tagInt64:
		var i int64
		i, err = int64Codec{}.Decode(payload)
		x, ok = float64(i), err == nil && len(path) == 0
	case tagJSON:
		if x, ok, err = jsonNumber(payload, path); err != nil {
			err = NewCorruptError(tag, payload, err)
		}
	case tagRecord:
		if x, ok, err = recordNumber(payload, path); err != nil {
			err = NewCorruptError(tag, payload, err)
		}
	case tagString, tagBytes:
	default:
		err = invalid.New(ErrUnknownTag, "tag", invalid.Quote(tag), "one of f64, i64, json, rec, str and raw")
	}
	if !ok || err != nil {
		return 0, false, err
	}
	return x, true, nil
}

// recordNumber returns the number of a record's field.
func recordNumber(src []byte, path []string) (x float64, ok bool, err error) {
	d := recordDecoder{src: src}
	n, err := d.count()
	var f rawField
	for range n {
		if err := d.next(&f); err != nil {
			return 0, false, err
		}
		if !isJoined(src[f.name.from:f.name.to], path) {
			continue
		}
		if ok = f.kind != KindStr; f.kind == KindBool {
			x = float64(f.bits)
		} else if ok {
			x, _ = Value{kind: f.kind, bits: f.bits}.Number()
		}
	}
	if err == nil {
		err = d.end()
	}
	return x, ok, err
}

// isJoined reports whether a name is the parts of a path joined by dots.
func isJoined(name []byte, path []string) bool {
	for i, part := range path {
		if i > 0 {
			if len(name) == 0 || name[0] != '.' {
				return false
			}
			name = name[1:]
		}
		if len(name) < len(part) || string(name[:len(part)]) != part {
			return false
		}
		name = name[len(part):]
	}
	return len(path) > 0 && len(name) == 0
}

// jsonNumber returns the number at a path of JSON text.
func jsonNumber(src []byte, path []string) (x float64, ok bool, err error) {
	s := jsonScanner{src: src}
	found, err := s.value(path, true)
	if err == nil {
		if s.space(); s.at < len(src) {
			err = errLeftOverJSON
		}
	}
	text := src[found.from:found.to]
	switch {
	case err != nil || len(text) == 0:
		return 0, false, err
	case text[0] == 't':
		return 1, true, nil
	case text[0] == 'f':
		return 0, true, nil
	}
	if x, err = strconv.ParseFloat(string(text), 64); err != nil || math.IsInf(x, 0) {
		return 0, false, errTooLarge
	}
	return x, true, nil
}
