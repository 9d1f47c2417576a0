package codec

import (
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// Fallback returns a codec that writes the format of write and also reads the formats of old, each by its own tag. So
// a dataset can change its format without rewriting data: stored points stay readable until they expire, and new
// points have the new format. The codecs may themselves read several tags. Use [Convert] for an old format with
// another Go type, and [Tagged] for a format whose tag another codec already has.
//
// [Check] rejects a missing codec, two readers of one tag, and a read-only write; old codecs may be read-only. Append
// and Decode are those of write. The codec adds no cost to the codec that a payload selects, and is safe for
// concurrent use.
func Fallback[T any](write Codec[T], old ...Codec[T]) Codec[T] {
	c := &fallback[T]{write: write}
	if c.err = Check(write); c.err != nil {
		return c
	}
	c.readers, c.messages = bareReaders(write), maps.Clone(messagesOf(write))
	for _, o := range old {
		if err := Check(o); err != nil && !errors.Is(err, ErrReadOnly) {
			c.err = err
			return c
		}
		c.readers = append(c.readers, bareReaders(o)...)
		for tag, m := range messagesOf(o) {
			if c.messages == nil {
				c.messages = make(map[string]protoreflect.MessageDescriptor)
			}
			c.messages[tag] = m
		}
	}
	c.err = checkReaders(write.Tag(), c.readers)
	return c
}

type fallback[T any] struct {
	write    Codec[T]
	readers  []Reader[T]
	messages map[string]protoreflect.MessageDescriptor
	err      error
}

func (c *fallback[T]) Tag() string {
	if c.write == nil {
		return ""
	}
	return c.write.Tag()
}

func (c *fallback[T]) Check() error { return c.err }

func (c *fallback[T]) Readers() []Reader[T] { return slices.Clone(c.readers) }

func (c *fallback[T]) Messages() map[string]protoreflect.MessageDescriptor {
	return maps.Clone(c.messages)
}

func (c *fallback[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.err != nil {
		return dst, codecerr.NewEncode(c.Tag(), c.err)
	}
	return c.write.Append(dst, v)
}

func (c *fallback[T]) Decode(src []byte) (T, error) {
	if c.err != nil {
		var zero T
		return zero, codecerr.NewCorrupt(c.Tag(), src, c.err)
	}
	return c.write.Decode(src)
}
