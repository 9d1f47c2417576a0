package codec

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// Proto returns a codec that stores a generated protobuf message in its wire format. T is the pointer type that
// protoc-gen-go generates: codec.Proto[*pb.Reading](). Its tag is "pb".
//
// Messages are written deterministically: the same program writes the same bytes for the same message. Fields that
// the program does not know survive a read and a write. An empty payload is a message without fields. A nil message,
// a message without a required field, and text that is not valid UTF-8 fail with [ErrEncode]. [Check] rejects a T
// that is not a generated message.
//
// A write allocates the payload, a read the message and its contents. The codec is safe for concurrent use.
func Proto[T proto.Message]() Codec[T] {
	typ, err := messageType[T]()
	return protoCodec[T]{typ: typ, err: err}
}

const tagProto = "pb"

var (
	errNilMessage = errors.New("nil message")

	protoWrite = proto.MarshalOptions{Deterministic: true}
	protoRead  = proto.UnmarshalOptions{Merge: true} // into a new message, so there is nothing to reset
)

type protoCodec[T proto.Message] struct {
	typ protoreflect.MessageType
	err error
}

func (protoCodec[T]) Tag() string { return tagProto }

func (c protoCodec[T]) Check() error { return c.err }

// Messages returns the descriptor of T. Function Messages calls it.
func (c protoCodec[T]) Messages() map[string]protoreflect.MessageDescriptor {
	if c.err != nil {
		return nil
	}
	return map[string]protoreflect.MessageDescriptor{tagProto: c.typ.Descriptor()}
}

// Layouts says which fields payloads have. Package tsdb calls it.
func (c protoCodec[T]) Layouts() map[string]layout.Of[T] {
	if c.err != nil {
		return nil
	}
	return map[string]layout.Of[T]{tagProto: {Fields: layout.Fields{Format: tagProto, Message: c.typ.Descriptor()}}}
}

func (c protoCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.err != nil {
		return dst, codecerr.NewEncode(tagProto, c.err)
	}
	if !v.ProtoReflect().IsValid() {
		return dst, codecerr.NewEncode(tagProto, errNilMessage)
	}
	out, err := protoWrite.MarshalAppend(dst, v)
	if err != nil {
		return dst, codecerr.NewEncode(tagProto, err)
	}
	return out, nil
}

func (c protoCodec[T]) Decode(src []byte) (T, error) {
	var zero T
	if c.err != nil {
		return zero, codecerr.NewCorrupt(tagProto, src, c.err)
	}
	v := c.typ.New().Interface().(T) // messageType has checked it
	if err := protoRead.Unmarshal(src, v); err != nil {
		return zero, codecerr.NewCorrupt(tagProto, src, err)
	}
	return v, nil
}

// messageType returns how to make a new T. It checks only the type, once. So a type that is not a generated message,
// and whose methods may panic on a nil receiver, is an error here instead of at the first payload.
func messageType[T proto.Message]() (typ protoreflect.MessageType, err error) {
	t := reflect.TypeFor[T]()
	refused := invalid.New(codecerr.ErrInvalid, "message type", fmt.Sprint(t), "a pointer to a generated message")
	defer func() {
		if recover() != nil {
			typ, err = nil, refused
		}
	}()
	if t.Kind() != reflect.Pointer {
		return nil, refused
	}
	var zero T
	typ = zero.ProtoReflect().Type()
	if _, ok := typ.New().Interface().(T); !ok {
		return nil, refused
	}
	return typ, nil
}

// messagesOf returns, by tag, the types of the payloads of c that are plain protobuf messages. Package tsdb/dynamic
// reads their fields. A codec that wraps another one and stores its payloads unchanged has a method Messages too.
func messagesOf[T any](c Codec[T]) map[string]protoreflect.MessageDescriptor {
	if own, ok := c.(interface {
		Messages() map[string]protoreflect.MessageDescriptor
	}); ok {
		return own.Messages()
	}
	return nil
}
