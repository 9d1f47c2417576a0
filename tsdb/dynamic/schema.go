package dynamic

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Options say how payloads are decoded, by their codec tags. The zero Options read the formats json, rec, f64, i64, str
// and raw of package codec, and each of them compressed by package codec/zstd.
type Options struct {
	// Descriptors describe the messages of protobuf payloads. "protoc --include_imports --descriptor_set_out" writes
	// them. Nil is for none.
	Descriptors *descriptorpb.FileDescriptorSet
	// Messages are the full names of messages in Descriptors, by tag: {"pb": "acme.v1.Reading"}. A payload does not say
	// which message it is. The name of pb is also that of pb+zstd.
	Messages map[string]string
	// Decoders decode the payloads of other tags, or of these in another way. A decoder returns a codec.Record, or a
	// plain value: what codec.ValueOf takes, or a map[string]any of plain values for an object. It must not keep or
	// change the payload, and is called by many goroutines at once.
	Decoders map[string]func(payload []byte) (any, error)
}

// Schema returns a schema that reads a dataset of tsdb.Store.Datasets without its Go type: with Schema.For, as any
// other schema, in all calls of tsdb.Repository and of package window. Rollups reads its rollups.
//
// A value is all fields of a payload, as a record in memory: in the order of their names. The name of a field is the
// names of the objects that it is in and its own, joined by dots: "motor.temp_c". codec.Lookup says which field counts
// if two have one name. A payload that is a single value has it under the name "". Objects have no value of their own,
// and those that are within more than 16 objects are left out.
//
//   - f64, i64, str, raw: a float, an integer, text, bytes.
//   - json: what codec.Lookup returns: integers that fit 64 bits exactly, floats, text, bools, null, and a list as its
//     JSON text. A number that is too large for a float64 makes the payload corrupt.
//   - rec: the record.
//   - protobuf: the fields by the names in the .proto file, and those of a map by its keys. An enum is its name, or its
//     number if it has none. google.protobuf.Timestamp is a time, Duration a number of seconds, and a wrapper such as
//     DoubleValue its value. A field that is not set has its default, or is left out if the message says whether it is
//     set, as of a oneof.
//
// The schema only reads: its writes and deletions fail before anything is sent. It knows the
// entry as Datasets read it: if a program adds a tag later, points with it are a *tsdb.PointError with
// codec.ErrUnknownTag until the schema is made again.
//
// The error matches codec.ErrUnknownTag and names all tags that nothing decodes, or tsdb.ErrInvalid for nil, the zero
// Schema, and Options that contradict themselves. It does no I/O.
func Schema(d tsdb.Dataset, opts Options) (*tsdb.Schema[codec.Record], error) {
	t, err := opts.tags()
	if err != nil {
		return nil, err
	}
	return schemaOf(d, t.decoder, t.layout)
}

// Decoder decodes payloads of any tag into their fields. The zero Decoder is that of the zero Options. It is immutable
// and safe for concurrent use.
type Decoder struct{ tags tags }

// NewDecoder returns a decoder. The error matches tsdb.ErrInvalid for Options that contradict themselves.
func NewDecoder(opts Options) (Decoder, error) {
	t, err := opts.tags()
	return Decoder{t}, err
}

// Decode returns the fields of one payload with a tag, as [Schema] does. The error matches codec.ErrCorrupt, or
// codec.ErrUnknownTag for a tag that nothing decodes.
func (d Decoder) Decode(tag string, payload []byte) (codec.Record, error) {
	decode := d.tags.decoder(tag)
	if decode == nil {
		return codec.Record{}, unknownTag(invalid.Quote(tag))
	}
	fields, err := decode(payload)
	if _, corrupt := errors.AsType[*codecerr.Corrupt](err); err != nil && !corrupt {
		err = codecerr.NewCorrupt(tag, payload, err)
	}
	if err != nil {
		return codec.Record{}, err
	}
	return fields, nil
}

func unknownTag(quoted string) error {
	return invalid.New(codec.ErrUnknownTag, "codec tag", quoted, "a tag of package codec, of Messages or of Decoders")
}

// schemaOf returns the schema of a dataset whose payloads are decoded by tag. decoder returns nil for an unknown tag.
// layouts says which fields the payloads have.
func schemaOf[T any](d tsdb.Dataset, decoder func(tag string) func(src []byte) (T, error), layouts func(tag string) layout.Of[T]) (*tsdb.Schema[T], error) {
	of, err := inside.Of(d).Shape()
	if err != nil {
		return nil, err
	}
	var unknown []string
	c := inside.ReadFields(of.Tags, func(tag string) func([]byte) (T, error) {
		decode := decoder(tag)
		if decode == nil {
			unknown = append(unknown, invalid.Quote(tag))
		}
		return decode
	}, layouts)
	if unknown != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(of.Name),
			unknownTag(strings.Join(unknown, ", ")))
	}
	return inside.Of[*tsdb.Repository[T]](nil).Schema(of, c, nil), nil
}

// decodeFunc decodes a payload into its fields.
type decodeFunc = func(src []byte) (codec.Record, error)

// tags are the checked Options.
type tags struct {
	messages map[string]*message // by tag
	decoders map[string]decodeFunc
}

// decoder returns the decoder of a tag; nil for none.
func (t tags) decoder(tag string) decodeFunc {
	if decode := t.decoders[tag]; decode != nil {
		return decode
	}
	if m := t.messages[tag]; m != nil {
		return func(src []byte) (codec.Record, error) { return m.fields(src, false) }
	}
	if inner, packed := strings.CutSuffix(tag, zstd.Suffix); packed {
		if decode := t.decoder(inner); decode != nil {
			return unpacked(inner, decode)
		}
		return nil
	}
	if formats[tag].single != codec.KindInvalid {
		return func(src []byte) (codec.Record, error) {
			v, err := codec.Lookup(tag, src, "")
			return codec.NewRecord(codec.Field{Value: v}), err
		}
	}
	return formats[tag].decode
}

// layout says which fields payloads with a tag have. What a function of Options decodes is one field.
func (t tags) layout(tag string) layout.Of[codec.Record] {
	if t.decoders[tag] != nil {
		return layout.Of[codec.Record]{}
	}
	if m := t.messages[tag]; m != nil {
		return layout.Of[codec.Record]{Fields: layout.Fields{Format: fields.Proto, Message: m.of}}
	}
	if inner, packed := strings.CutSuffix(tag, zstd.Suffix); packed {
		of := t.layout(inner)
		if of.Format == "" || of.Unpack != nil {
			return layout.Of[codec.Record]{}
		}
		of.Unpack, of.Decode = unpack, t.decoder(inner)
		return of
	}
	if fields.Named(tag) {
		return layout.Of[codec.Record]{Fields: layout.Fields{Format: tag}}
	}
	return layout.Of[codec.Record]{}
}

// formats are those of package codec by tag, except for protobuf.
var formats = map[string]struct {
	single codec.Kind // of payloads that are one value
	decode decodeFunc // of payloads with fields
}{
	codec.Float64().Tag():   {single: codec.KindFloat},
	codec.Int64().Tag():     {single: codec.KindInt},
	codec.String().Tag():    {single: codec.KindStr},
	codec.Bytes().Tag():     {single: codec.KindBytes},
	codec.JSON[any]().Tag(): {decode: decodeJSON},
	codec.Records().Tag():   {decode: codec.Records().Decode},
}

// unpacked returns a decoder of compressed payloads.
func unpacked[T any](tag string, decode func([]byte) (T, error)) func([]byte) (T, error) {
	return zstd.Wrap(inside.ReadOnly([]string{tag}, func(string) func([]byte) (T, error) { return decode }), zstd.Options{}).Decode
}
