package codec

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Lookup returns one field of a payload with a tag, without decoding the rest: of a sensor's twenty fields, the one
// that a chart shows. A field that the payload does not have is the zero [Value].
//
//   - json: the field below the names of nested objects, the outermost first, joined by dots: motor.temp_c. A dot may
//     also be a part of a name. If several fields have the same joined names, the longest name of the outermost object
//     counts, so the field "motor.temp_c" hides the field "temp_c" of "motor". As in encoding/json, the last of equal
//     names counts. A payload that is no object has the name "". An object is no field.
//   - rec: the field with the name.
//   - f64, i64, str and raw: the payload itself, which has the name "".
//
// A number of JSON is what [ParseNumber] returns for it. NaN and the infinities are numbers in f64 and rec; JSON has
// none.
//
// The error matches [ErrCorrupt] for a payload that its codec does not decode, and for a field with a number in JSON
// that is too large for a float64; and [ErrUnknownTag] for other tags: pb needs the type of the message, and compressed
// payloads need package codec/zstd. Package dynamic has both. It allocates nothing, except for the value of a text,
// bytes or a list, and for a number of more than 32 characters.
func Lookup(tag string, payload []byte, name string) (v Value, err error) {
	switch tag {
	case tagJSON:
		if v, err = lookupJSON(payload, name); err != nil {
			return Value{}, codecerr.NewCorrupt(tag, payload, err)
		}
		return v, nil
	case tagRecord:
		if v, err = lookupRecord(payload, name); err != nil {
			return Value{}, codecerr.NewCorrupt(tag, payload, err)
		}
		return v, nil
	case tagFloat64:
		var f float64
		f, err = float64Codec{}.Decode(payload)
		v = Float(f)
	case tagInt64:
		var i int64
		i, err = int64Codec{}.Decode(payload)
		v = Int(i)
	case tagString:
		var s string
		s, err = stringCodec{}.Decode(payload)
		v = Str(s)
	case tagBytes:
		if name == "" {
			v = ValueOf(payload)
		}
	default:
		err = invalid.New(ErrUnknownTag, "tag", invalid.Quote(tag), "one of f64, i64, json, rec, str and raw")
	}
	if err != nil || name != "" {
		return Value{}, err
	}
	return v, nil
}

// numberOf is Reader.Number of the formats that [Lookup] reads.
func numberOf(tag string) func(name string) func([]byte) (Value, error) {
	if _, err := Lookup(tag, nil, ""); errors.Is(err, ErrUnknownTag) {
		return nil
	}
	return func(name string) func([]byte) (Value, error) {
		return func(payload []byte) (Value, error) {
			v, err := Lookup(tag, payload, name)
			return v.AsNumber(), err
		}
	}
}

// lookupRecord returns the field of a record.
func lookupRecord(src []byte, name string) (v Value, err error) {
	d := recordDecoder{src: src}
	n, err := d.count()
	var f rawField
	for range n {
		if err := d.next(&f); err != nil {
			return Value{}, err
		}
		if string(src[f.name.from:f.name.to]) == name {
			v = Value{kind: f.kind, bits: f.bits}
			if f.kind == KindStr {
				v.str = string(src[f.text.from:f.text.to])
			}
		}
	}
	if err == nil {
		err = d.end()
	}
	return v, err
}
