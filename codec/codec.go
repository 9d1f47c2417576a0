package codec

import (
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Codec converts values of one Go type to stored bytes and back. Its tag is stored with each payload and selects the
// decoder of a read. So a tag is a contract: once stored data has it, it must mean the same bytes forever.
//
// A Codec must be safe for concurrent use, and must not change after its first use. Append and Decode must not panic
// on any input. A codec for your own type needs three methods; see the package example.
type Codec[T any] interface {
	// Tag names the stored format. It is constant and satisfies [CheckTag].
	Tag() string

	// Append appends the encoding of v to dst and returns the extended slice, as the built-in append does. Equal
	// values have equal bytes. It must not retain dst or parts of v. On an error the caller drops the appended bytes.
	// Use [NewEncodeError] for errors.
	Append(dst []byte, v T) ([]byte, error)

	// Decode decodes one value from the whole of src. Remaining bytes are an error. The result must not share memory
	// with src, which the caller may overwrite. Use [NewCorruptError] for errors.
	Decode(src []byte) (T, error)
}

// Multi is implemented by a [Codec] that reads more tags than it writes, such as one made by [Fallback].
type Multi[T any] interface {
	// Readers lists the formats to read, the written one first. The caller may change the slice.
	Readers() []Reader[T]
}

// Reader decodes the payloads of one tag. The zero Reader is invalid. A Reader returned by [Readers] is safe for
// concurrent use.
type Reader[T any] struct {
	// Tag is the stored tag that selects this reader.
	Tag string
	// Decode decodes one payload with that tag, under the rules of [Codec].
	Decode func(src []byte) (T, error)
	// Number returns how the field with a name is read as a number from payloads with that tag, without decoding them: with
	// [Lookup] and [Value.AsNumber]. Rollups read measures with it that are declared by a field. It is nil if no field of the
	// payloads can be read. [Readers] sets it for the formats of this package, except for protobuf, which needs package
	// dynamic; a [Codec] of another format may have a method Number.
	Number func(name string) func(payload []byte) (Value, error)
}

// Readers lists the formats that c can read, the written one first. Errors of each Decode match [ErrCorrupt], even if
// the codec's own errors do not, and come with a zero value. Readers allocates: call it once and keep the result.
func Readers[T any](c Codec[T]) []Reader[T] {
	readers := bareReaders(c)
	for i, r := range readers {
		readers[i].Decode = func(src []byte) (T, error) {
			v, err := r.Decode(src)
			if err != nil {
				var zero T
				return zero, asCorrupt(r.Tag, src, err)
			}
			return v, nil
		}
		if r.Number == nil {
			readers[i].Number = numberOf(r.Tag)
		}
	}
	return readers
}

// numberOf is Reader.Number of the formats that [Lookup] reads.
func numberOf(tag string) func(name string) func([]byte) (Value, error) {
	switch tag {
	case tagFloat64, tagInt64, tagJSON, tagRecord, tagString, tagBytes:
		return func(name string) func([]byte) (Value, error) {
			return func(payload []byte) (Value, error) {
				v, err := Lookup(tag, payload, name)
				return v.AsNumber(), err
			}
		}
	}
	return nil
}

// bareReaders is Readers without the guarantee about errors.
func bareReaders[T any](c Codec[T]) []Reader[T] {
	if c == nil {
		return nil
	}
	if m, ok := c.(Multi[T]); ok {
		return m.Readers()
	}
	r := Reader[T]{Tag: c.Tag(), Decode: c.Decode}
	if n, ok := c.(interface {
		Number(name string) func(payload []byte) (Value, error)
	}); ok {
		r.Number = n.Number
	}
	return []Reader[T]{r}
}

// Tags lists the tags that c reads, the written one first. It allocates: call it once and keep the result.
func Tags[T any](c Codec[T]) []string {
	readers := bareReaders(c)
	tags := make([]string, len(readers))
	for i, r := range readers {
		tags[i] = r.Tag
	}
	return tags
}

// Decoder returns the function that decodes payloads with a tag. If c does not read the tag, the error matches
// [ErrUnknownTag] and names the tag. The function costs as much as the codec's own decoder and is safe for concurrent
// use. Its errors match [ErrCorrupt]. Decoder itself allocates: call it once per tag.
func Decoder[T any](c Codec[T], tag string) (func(src []byte) (T, error), error) {
	readers := Readers(c)
	i := slices.IndexFunc(readers, func(r Reader[T]) bool { return r.Tag == tag })
	if i < 0 {
		return nil, invalid.New(ErrUnknownTag, "tag", invalid.Quote(tag), "one of "+strings.Join(Tags(c), ", "))
	}
	return readers[i].Decode, nil
}

// DecodeTag decodes one payload stored with tag. Errors match [ErrUnknownTag] or [ErrCorrupt]. It looks up the tag
// each time; to decode many payloads, keep the function that [Decoder] returns.
func DecodeTag[T any](c Codec[T], tag string, src []byte) (T, error) {
	decode, err := Decoder(c, tag)
	if err != nil {
		var zero T
		return zero, err
	}
	return decode(src)
}

// Append appends the encoding of v to dst, as c.Append does, with two more guarantees: an error matches [ErrEncode]
// for every codec, and with an error dst is returned unchanged. It adds no allocation.
func Append[T any](c Codec[T], dst []byte, v T) ([]byte, error) {
	if c == nil {
		return dst, NewEncodeError("", Check(c))
	}
	out, err := c.Append(dst, v)
	if err != nil {
		return dst, asEncode(c.Tag(), err)
	}
	if len(out) < len(dst) {
		return dst, NewEncodeError(c.Tag(), errShrunk)
	}
	return out, nil
}
