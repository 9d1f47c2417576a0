package dynamic

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ErrInvalid is tsdb.ErrInvalid: invalid argument. A *tsdb.InvalidError names the field, the value and what is allowed.
var ErrInvalid = tsdb.ErrInvalid

// Options say how payloads are decoded, by their codec tags. The zero Options read the formats json, rec, f64, i64, str and raw of
// package codec, and each of them compressed by package codec/zstd.
type Options struct {
	// Descriptors describe the messages of protobuf payloads. "protoc --include_imports --descriptor_set_out" writes them. Nil is
	// for none.
	Descriptors *descriptorpb.FileDescriptorSet
	// Messages are the full names of messages in Descriptors, by tag: {"pb": "acme.v1.Reading"}. A payload does not say which
	// message it is. The name of pb is also that of pb+zstd.
	Messages map[string]string
	// Decoders decode the payloads of other tags, or of these in another way. A decoder returns a value of the types that Schema
	// lists, must not keep or change the payload, and is called by many goroutines at once.
	Decoders map[string]func(payload []byte) (any, error)
}

// Schema returns a schema that reads a dataset of tsdb.Store.Datasets without its Go type: with Schema.For, as any other schema,
// in all calls of tsdb.Repository and of the packages under, window, chart and follow. Rollups reads its rollups.
//
// A value has one of these types:
//
//   - f64: float64. i64: int64. str: string. raw: []byte.
//   - json: nil, bool, string, []any, map[string]any, and for numbers int64, uint64 if it is above the largest int64, or float64
//     if it has a point or an exponent or is larger still. A number that no float64 holds makes the payload corrupt.
//   - rec: map[string]any of float64, int64, uint64, string and bool, by the names of the fields.
//   - protobuf: map[string]any by the names of the fields in the .proto file; []any for repeated fields and map[string]any for maps.
//     Enums are their names, or int64 if they have none. Fields that are not set have their default, or are left out if the
//     message says whether they are set.
//
// The schema only reads: its writes and deletions fail with codec.ErrReadOnly, before anything is sent. It knows the entry as
// Datasets read it: if a program adds a tag later, points with it are a *tsdb.PointError with codec.ErrUnknownTag until the
// schema is made again.
//
// The error matches codec.ErrUnknownTag and names all tags that nothing decodes, or ErrInvalid for nil, the zero Schema, and
// Options that contradict themselves. It does no I/O.
func Schema(d tsdb.Dataset, opts Options) (*tsdb.Schema[any], error) {
	t, err := opts.tags()
	if err != nil {
		return nil, err
	}
	return schemaOf(d, t.decoder)
}

// schemaOf returns the schema of a dataset whose payloads are decoded by tag. decoder returns nil for an unknown tag.
func schemaOf[T any](d tsdb.Dataset, decoder func(tag string) func(src []byte) (T, error)) (*tsdb.Schema[T], error) {
	of, err := inside.OfDataset(d)
	if err != nil {
		return nil, err
	}
	var unknown []string
	c := inside.ReadOnly(of.Tags, func(tag string) func([]byte) (T, error) {
		decode := decoder(tag)
		if decode == nil {
			unknown = append(unknown, invalid.Quote(tag))
		}
		return decode
	})
	if unknown != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(of.Name),
			invalid.New(codec.ErrUnknownTag, "codec tag", strings.Join(unknown, ", "), "a tag of package codec, of Messages or of Decoders"))
	}
	schema := new(tsdb.Schema[T])
	inside.FromCatalog(schema, of, c)
	return schema, nil
}

// decodeFunc decodes a payload into a value of the types that Schema lists.
type decodeFunc = func(src []byte) (any, error)

// tags are the checked Options.
type tags struct {
	messages map[string]*message // by tag
	decoders map[string]func(payload []byte) (any, error)
}

// decoder returns the decoder of a tag; nil for none.
func (t tags) decoder(tag string) decodeFunc {
	if decode := t.decoders[tag]; decode != nil {
		return decode
	}
	if m := t.messages[tag]; m != nil {
		return m.decode
	}
	if inner, packed := strings.CutSuffix(tag, zstd.Suffix); packed {
		if decode := t.decoder(inner); decode != nil {
			return unpacked(inner, decode)
		}
		return nil
	}
	switch tag {
	case tagFloat64:
		return decoded(codec.Float64())
	case tagInt64:
		return decoded(codec.Int64())
	case tagString:
		return decoded(codec.String())
	case tagBytes:
		return decoded(codec.Bytes())
	case tagJSON:
		return decodeJSON
	case tagRecord:
		return decodeRecord
	}
	return nil
}

// The tags of package codec.
var (
	tagFloat64, tagInt64 = codec.Float64().Tag(), codec.Int64().Tag()
	tagString, tagBytes  = codec.String().Tag(), codec.Bytes().Tag()
	tagJSON, tagRecord   = codec.JSON[any]().Tag(), codec.Records().Tag()
)

// decoded returns the decoder of a codec.
func decoded[T any](c codec.Codec[T]) decodeFunc {
	return func(src []byte) (any, error) {
		v, err := c.Decode(src)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
}

// unpacked returns a decoder of compressed payloads.
func unpacked[T any](tag string, decode func([]byte) (T, error)) func([]byte) (T, error) {
	return zstd.Wrap(inside.ReadOnly([]string{tag}, func(string) func([]byte) (T, error) { return decode }), zstd.Options{}).Decode
}
