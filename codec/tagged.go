package codec

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// Tagged returns a codec that stores the bytes of c with another tag. Use it for a second structure in a format that
// is already in use, which must not be read as the first one:
//
//	codec.Fallback(
//		codec.Tagged("json.v2", codec.JSON[Reading]()),
//		codec.Convert(codec.JSON[readingV1](), readingFromV1, nil),
//	)
//
// [Check] rejects a tag that cannot be stored, and a c that reads several tags. Errors have the new tag. The codec
// costs nothing more than c, and is safe for concurrent use.
func Tagged[T any](tag string, c Codec[T]) Codec[T] {
	out := &composed[T]{tag: tag}
	if out.err = codecerr.CheckTag(tag); out.err != nil {
		return out
	}
	if c == nil {
		out.err = invalid.New(codecerr.ErrInvalid, "codec", "nil", "a codec")
		return out
	}
	readers := Readers(c)
	if n := len(readers); n > 1 {
		out.err = invalid.New(codecerr.ErrInvalid, "codec", fmt.Sprintf("a reader of %d tags", n), "a reader of one tag")
		return out
	}
	out.check = Check(c)
	out.decode = func(src []byte) (v T, err error) {
		if v, err = c.Decode(src); err != nil {
			if inner, ok := err.(*codecerr.Corrupt); ok { // only an error of the codec itself
				err = inner.Err
			}
			var zero T
			return zero, codecerr.NewCorrupt(tag, src, err)
		}
		return v, nil
	}
	out.append = func(dst []byte, v T) ([]byte, error) {
		all, err := c.Append(dst, v)
		if err != nil {
			if inner, ok := err.(*codecerr.Encode); ok { // only an error of the codec itself
				err = inner.Err
			}
			return dst, codecerr.NewEncode(tag, err)
		}
		return all, nil
	}
	r := Reader[T]{Tag: tag, Decode: out.decode}
	if len(readers) == 1 {
		r.Number = readers[0].Number
	}
	out.readers = []Reader[T]{r}
	if m, ok := messagesOf(c)[c.Tag()]; ok {
		out.messages = map[string]protoreflect.MessageDescriptor{tag: m}
	}
	if l, ok := layout.ByTag[T](c)[c.Tag()]; ok {
		out.layouts = map[string]layout.Of[T]{tag: l}
	}
	return out
}
