package dynamic

import (
	"errors"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/layout"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Field is the place of one value in payloads of any tag that Options decode. The zero Field is the payload itself, for
// payloads that are a number or text. It is immutable and safe for concurrent use.
type Field struct {
	name  string
	tags  tags
	paths map[string]protoPath // of messages, by tag
}

// NewField returns the field with a name, as [Schema] and [codec.Lookup] name fields: names of nested objects or
// messages joined by dots, the outermost first, such as "motor.temp_c". The name "" is the payload itself. The error
// matches tsdb.ErrInvalid for Options that contradict themselves. Payloads decide whether the field exists.
func NewField(name string, opts Options) (Field, error) {
	t, err := opts.tags()
	if err != nil {
		return Field{}, err
	}
	return t.field(name), nil
}

func (t tags) field(name string) Field {
	f := Field{name: name, tags: t, paths: make(map[string]protoPath, len(t.messages))}
	for tag, m := range t.messages {
		f.paths[tag] = pathIn(m.of, name)
	}
	return f
}

// Value returns the value of the field in a payload with a tag, without decoding the rest. It is the zero Value if the
// payload does not have the field, and equals what Schema has under the name. It allocates nothing, except for the
// value of a text, bytes or a list, for compressed payloads, tags of Options.Decoders, maps of messages in protobuf,
// and a number of more than 32 characters in JSON.
//
// The error matches codec.ErrCorrupt or codec.ErrUnknownTag. Of protobuf, only the fields on the way are checked.
func (f Field) Value(tag string, payload []byte) (codec.Value, error) {
	return f.read(tag, payload, false)
}

// Number is Value for a field that a user has named as a number, such as a measure: it returns an integer or a float,
// or the zero Value if the payload has no number there. It is codec.Value.AsNumber of the value: a bool is 0 or 1,
// decimal text is its number, and a time the seconds since 1970. An enum is its number.
func (f Field) Number(tag string, payload []byte) (codec.Value, error) {
	v, err := f.read(tag, payload, true)
	return v.AsNumber(), err
}

// read is Value. Enums are their numbers if those are asked for.
func (f Field) read(tag string, payload []byte, numbers bool) (v codec.Value, err error) {
	if decode := f.tags.decoders[tag]; decode != nil {
		fields, err := decode(payload)
		if err != nil {
			return v, codecerr.NewCorrupt(tag, payload, err)
		}
		v, _ = fields.Lookup(f.name)
		return v, nil
	}
	if path, known := f.paths[tag]; known {
		if path.decoded {
			var fields codec.Record
			if fields, err = f.tags.messages[tag].fields(payload, numbers); err == nil {
				v, _ = fields.Lookup(f.name)
			}
		} else {
			v, err = path.value(payload, numbers)
		}
		if err != nil {
			return codec.Value{}, codecerr.NewCorrupt(tag, payload, err)
		}
		return v, nil
	}
	if inner, packed := strings.CutSuffix(tag, zstd.Suffix); packed && f.tags.decoder(tag) != nil {
		plain, err := unpack(payload)
		if err == nil {
			v, err = f.read(inner, plain, numbers)
		}
		if bad, corrupt := errors.AsType[*codecerr.Corrupt](err); corrupt {
			err = codecerr.NewCorrupt(tag, payload, bad.Err)
		}
		return v, err
	}
	return codec.Lookup(tag, payload, f.name)
}

// unpack returns a compressed payload as it was before.
var unpack = unpacked(codec.Bytes().Tag(), func(src []byte) ([]byte, error) { return src, nil })

// Numbers returns a schema whose values are one field of each payload, which a user has named as a number, as
// Field.Number reads it: the zero Value where a payload does not have it. codec.Value.Number has them as float64. All
// else is as in Schema. A query of one field is several times as fast as with Schema.
func Numbers(d tsdb.Dataset, f Field) (*tsdb.Schema[codec.Value], error) {
	return schemaOf(d, func(tag string) func([]byte) (codec.Value, error) {
		if f.tags.decoder(tag) == nil {
			return nil
		}
		return func(src []byte) (codec.Value, error) { return f.Number(tag, src) }
	}, func(tag string) layout.Of[codec.Value] {
		return layout.Of[codec.Value]{Fields: layout.Fields{Has: func(src []byte) bool {
			v, err := f.Number(tag, src)
			return err == nil && v.Kind() != codec.KindInvalid
		}}}
	})
}
