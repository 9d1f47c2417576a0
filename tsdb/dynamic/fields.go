package dynamic

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// Fields returns a codec like c that also reads fields of its protobuf payloads, as [Field.Number] does. A rollup needs
// that for a measure that is declared by a field (rollup.Measure.Field), and codec.Proto alone does not have it:
//
//	zstd.Wrap(dynamic.Fields(codec.Proto[*pb.Reading]()), zstd.Options{})
//
// Everything else is that of c. It is safe for concurrent use.
func Fields[T any](c codec.Codec[T]) codec.Codec[T] {
	if c == nil {
		return nil
	}
	return fielded[T]{c}
}

type fielded[T any] struct{ codec.Codec[T] }

// Check returns what function Check says of the other codec.
func (c fielded[T]) Check() error { return codec.Check(c.Codec) }

// Messages returns, by tag, the types of the payloads of the other codec that are plain protobuf messages, such as
// those of codec.Proto.
func (c fielded[T]) Messages() map[string]protoreflect.MessageDescriptor {
	if own, ok := c.Codec.(interface {
		Messages() map[string]protoreflect.MessageDescriptor
	}); ok {
		return own.Messages()
	}
	return nil
}

// Layouts says which fields the payloads of the other codec have. Package tsdb calls it.
func (c fielded[T]) Layouts() map[string]layout.Of[T] { return layout.ByTag[T](c.Codec) }

// Readers returns the readers of the other codec. Function Readers calls it.
func (c fielded[T]) Readers() []codec.Reader[T] {
	readers, messages := codec.Readers(c.Codec), c.Messages()
	for i, r := range readers {
		m := messages[r.Tag]
		if r.Number != nil || m == nil {
			continue
		}
		t := tags{messages: map[string]*message{r.Tag: {m}}}
		readers[i].Number = func(name string) func([]byte) (codec.Value, error) { return t.number(r.Tag, name) }
	}
	return readers
}

// number returns the function that reads a field of payloads with a tag as a number.
func (t tags) number(tag, name string) func([]byte) (codec.Value, error) {
	field := t.field(name)
	return func(payload []byte) (codec.Value, error) { return field.Number(tag, payload) }
}
