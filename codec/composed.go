package codec

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// composed is a codec that is made of others.
type composed[T any] struct {
	tag      string
	err      error // why it was made wrongly; it then neither reads nor writes
	check    error // why it cannot write, if it was made well
	readers  []Reader[T]
	messages map[string]protoreflect.MessageDescriptor
	layouts  map[string]layout.Of[T]
	append   func(dst []byte, v T) ([]byte, error)
	decode   func(src []byte) (T, error)
}

func (c *composed[T]) Tag() string { return c.tag }

// Check returns why the codec cannot write, or nil. Function Check calls it.
func (c *composed[T]) Check() error { return cmp.Or(c.err, c.check) }

// Readers returns a reader for each tag that the codec reads. Function Readers calls it.
func (c *composed[T]) Readers() []Reader[T] { return slices.Clone(c.readers) }

// Messages returns the messages of protobuf payloads by their tags.
func (c *composed[T]) Messages() map[string]protoreflect.MessageDescriptor {
	return maps.Clone(c.messages)
}

// Layouts says which fields payloads have, by their tags. Package tsdb calls it.
func (c *composed[T]) Layouts() map[string]layout.Of[T] { return maps.Clone(c.layouts) }

func (c *composed[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.err != nil {
		return dst, codecerr.NewEncode(c.tag, c.err)
	}
	return c.append(dst, v)
}

func (c *composed[T]) Decode(src []byte) (T, error) {
	if c.err != nil {
		var zero T
		return zero, codecerr.NewCorrupt(c.tag, src, c.err)
	}
	return c.decode(src)
}
