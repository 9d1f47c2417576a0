package tsdb

import (
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
)

// shapeOf returns the fields of the payloads that a codec writes, or nil if each payload has its own.
func shapeOf[T any](c codec.Codec[T]) *fields.Shape {
	switch c := c.(type) {
	case interface{ JSONType() reflect.Type }:
		return fields.OfJSON(c.JSONType())
	case interface {
		Messages() map[string]protoreflect.MessageDescriptor
	}:
		if m := c.Messages()[fields.Proto]; m != nil {
			return fields.OfMessage(m)
		}
	}
	return nil
}
