package codec

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
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
	out := &tagged[T]{tag: tag, inner: c}
	if out.err = codecerr.CheckTag(tag); out.err != nil {
		return out
	}
	if c == nil {
		out.err = invalid.New(ErrInvalid, "codec", "nil", "a codec")
	} else if n := len(bareReaders(c)); n > 1 {
		out.err = invalid.New(ErrInvalid, "codec", fmt.Sprintf("a reader of %d tags", n), "a reader of one tag")
	}
	return out
}

type tagged[T any] struct {
	tag   string
	inner Codec[T]
	err   error
}

func (c *tagged[T]) Tag() string { return c.tag }

func (c *tagged[T]) Check() error {
	if c.err != nil {
		return c.err
	}
	return Check(c.inner)
}

// Readers returns the reader of the other codec. Function Readers calls it.
func (c *tagged[T]) Readers() []Reader[T] {
	if c.err != nil {
		return nil
	}
	r := Reader[T]{Tag: c.tag, Decode: c.Decode}
	for _, inner := range Readers(c.inner) { // there is one, unless Check refuses the codec
		r.Number = inner.Number
	}
	return []Reader[T]{r}
}

func (c *tagged[T]) Messages() map[string]protoreflect.MessageDescriptor {
	if c.err != nil {
		return nil
	}
	m, ok := messagesOf(c.inner)[c.inner.Tag()]
	if !ok {
		return nil
	}
	return map[string]protoreflect.MessageDescriptor{c.tag: m}
}

func (c *tagged[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.err != nil {
		return dst, codecerr.NewEncode(c.tag, c.err)
	}
	out, err := c.inner.Append(dst, v)
	if err != nil {
		if inner, ok := err.(*codecerr.Encode); ok { // only an error of the codec itself
			err = inner.Err
		}
		return dst, codecerr.NewEncode(c.tag, err)
	}
	return out, nil
}

func (c *tagged[T]) Decode(src []byte) (T, error) {
	var zero T
	if c.err != nil {
		return zero, codecerr.NewCorrupt(c.tag, src, c.err)
	}
	v, err := c.inner.Decode(src)
	if err != nil {
		if inner, ok := err.(*codecerr.Corrupt); ok { // only an error of the codec itself
			err = inner.Err
		}
		return zero, codecerr.NewCorrupt(c.tag, src, err)
	}
	return v, nil
}
