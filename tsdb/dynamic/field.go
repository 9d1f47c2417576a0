package dynamic

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Field is the place of one number in payloads of any tag that Options decode. The zero Field is the payload itself, for payloads
// that are numbers. It is immutable and safe for concurrent use.
type Field struct {
	names []string
	tags  tags
	paths map[string]protoPath // of messages, by tag; nil if the message has no number there
}

// NewField returns the field with these names: of nested objects or messages, the outermost first, and joined by dots of a record.
// Without names it is the payload itself. The error matches ErrInvalid for Options that contradict themselves. Payloads decide
// whether the field exists.
func NewField(names []string, opts Options) (Field, error) {
	t, err := opts.tags()
	if err != nil {
		return Field{}, err
	}
	f := Field{names: slices.Clone(names), tags: t, paths: make(map[string]protoPath, len(t.messages))}
	for tag, m := range t.messages {
		f.paths[tag] = pathIn(m.of, names)
	}
	return f, nil
}

// String returns the names joined by dots.
func (f Field) String() string { return strings.Join(f.names, ".") }

// Number returns the number of the field in a payload with a tag, without decoding the rest, as codec.Number does. It allocates
// nothing, except for compressed payloads, tags of Options.Decoders, and text of more than 32 characters of a number in JSON.
//
// A bool is 0 or 1. ok is false if the payload has no number there. Of protobuf, a field that the message does not contain is 0,
// as in the message itself, unless the message says whether the field is set. The error matches codec.ErrCorrupt or
// codec.ErrUnknownTag. Of protobuf, only the fields on the way are checked.
func (f Field) Number(tag string, payload []byte) (x float64, ok bool, err error) {
	if decode := f.tags.decoders[tag]; decode != nil {
		v, err := decode(payload)
		if err != nil {
			return 0, false, codec.NewCorruptError(tag, payload, err)
		}
		x, ok = numberIn(v, f.names)
		return x, ok, nil
	}
	if path, known := f.paths[tag]; known {
		if x, ok, err = path.number(payload); err != nil {
			err = codec.NewCorruptError(tag, payload, err)
		}
		return x, ok, err
	}
	if inner, packed := strings.CutSuffix(tag, zstd.Suffix); packed && f.tags.decoder(tag) != nil {
		plain, err := unpack(payload)
		if err == nil {
			x, ok, err = f.Number(inner, plain)
		}
		if bad, corrupt := errors.AsType[*codec.CorruptError](err); corrupt {
			err = codec.NewCorruptError(tag, payload, bad.Err)
		}
		return x, ok, err
	}
	return codec.Number(tag, payload, f.names...)
}

// unpack returns a compressed payload as it was before.
var unpack = unpacked(tagBytes, func(src []byte) ([]byte, error) { return src, nil })

// Number is one number of a payload.
type Number struct {
	Value float64
	OK    bool // the payload has the number
}

// Of returns the number and OK, for the field Of of a window.Measure.
func (n Number) Of() (float64, bool) { return n.Value, n.OK }

// Numbers returns a schema whose values are one number of each payload, as Field.Number reads it. All else is as in Schema. A query
// of one field is several times as fast as with Schema.
func Numbers(d tsdb.Dataset, f Field) (*tsdb.Schema[Number], error) {
	return schemaOf(d, func(tag string) func([]byte) (Number, error) {
		if f.tags.decoder(tag) == nil {
			return nil
		}
		return func(src []byte) (Number, error) {
			x, ok, err := f.Number(tag, src)
			return Number{x, ok}, err
		}
	})
}
