package codec

import "github.com/tidemark-go/tidemark/internal/codecerr"

// Codec converts values of one Go type to stored bytes and back. Its tag is stored with each payload and selects the
// decoder of a read. So a tag is a contract: once stored data has it, it must mean the same bytes forever.
//
// A Codec must be safe for concurrent use, and must not change after its first use. Append and Decode must not panic on
// any input. A codec for your own type needs three methods; see the package example. One that reads more tags than it
// writes also has a method Readers() []Reader[T], which lists the formats to read, the written one first.
//
// A codec that wraps another one and stores its protobuf messages unchanged passes on the other's method
// Messages() map[string]protoreflect.MessageDescriptor: the messages by tag, whose fields package tsdb/dynamic reads.
type Codec[T any] interface {
	// Tag names the stored format. It is constant: 1 to 24 bytes, words of a-z and 0-9 with a single '.', '+' or '-'
	// between two words. By convention, '+' joins the tag of a payload and a transformation of it, as in "json+zstd".
	Tag() string

	// Append appends the encoding of v to dst and returns the extended slice, as the built-in append does. Equal
	// values have equal bytes. It must not retain dst or parts of v. On an error the caller drops the appended bytes.
	// Any error will do: callers wrap it, so that it matches [ErrEncode].
	Append(dst []byte, v T) ([]byte, error)

	// Decode decodes one value from the whole of src. Remaining bytes are an error. The result must not share memory
	// with src, which the caller may overwrite. Any error will do: callers wrap it, so that it
	// matches [ErrCorrupt].
	Decode(src []byte) (T, error)
}

// Reader decodes the payloads of one tag. The zero Reader is invalid. A Reader returned by [Readers] is safe for
// concurrent use.
type Reader[T any] struct {
	// Tag is the stored tag that selects this reader.
	Tag string
	// Decode decodes one payload with that tag, under the rules of [Codec].
	Decode func(src []byte) (T, error)
	// Number returns how the field with a name is read as a number from payloads with that tag, without decoding them:
	// with [Lookup] and [Value.AsNumber]. Rollups read measures with it that are declared by a field. It is nil if no
	// field of the payloads can be read. [Readers] sets it for the formats of this package, except for protobuf, which
	// needs package dynamic; a [Codec] of another format may have a method Number.
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

// bareReaders is Readers without the guarantee about errors.
func bareReaders[T any](c Codec[T]) []Reader[T] {
	if c == nil {
		return nil
	}
	if m, ok := c.(interface{ Readers() []Reader[T] }); ok {
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

// Append appends the encoding of v to dst, as c.Append does, with two more guarantees: an error matches [ErrEncode]
// for every codec, and with an error dst is returned unchanged. It adds no allocation.
func Append[T any](c Codec[T], dst []byte, v T) ([]byte, error) {
	if c == nil {
		return dst, codecerr.NewEncode("", Check(c))
	}
	out, err := c.Append(dst, v)
	if err != nil {
		return dst, asEncode(c.Tag(), err)
	}
	if len(out) < len(dst) {
		return dst, codecerr.NewEncode(c.Tag(), errShrunk)
	}
	return out, nil
}
