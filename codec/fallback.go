package codec

import (
	"errors"
	"maps"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/layout"
	"google.golang.org/protobuf/reflect/protoreflect"
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
	c := &composed[T]{}
	if write != nil {
		c.tag, c.append, c.decode = write.Tag(), write.Append, write.Decode
	}
	if c.err = Check(write); c.err != nil {
		return c
	}
	c.readers, c.messages = bareReaders(write), maps.Clone(messagesOf(write))
	c.layouts = make(map[string]layout.Of[T])
	maps.Copy(c.layouts, layout.ByTag[T](write))
	for _, o := range old {
		if err := Check(o); err != nil && !errors.Is(err, codecerr.ErrReadOnly) {
			c.err = err
			return c
		}
		c.readers = append(c.readers, bareReaders(o)...)
		if c.messages == nil {
			c.messages = make(map[string]protoreflect.MessageDescriptor)
		}
		maps.Copy(c.messages, messagesOf(o))
		maps.Copy(c.layouts, layout.ByTag[T](o))
	}
	c.err = checkReaders(c.tag, c.readers)
	return c
}
