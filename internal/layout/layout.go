// Package layout says how payloads of a codec are split into fields: what package codec and packages around it know of
// a codec's types, for package tsdb.
package layout

import (
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Of is the layout of the payloads with one tag, whose values are a T. The zero Of is that of payloads that are one
// field.
type Of[T any] struct {
	Fields
	// Decode decodes what Unpack returns; nil for the codec's own function.
	Decode func(plain []byte) (T, error)
}

// Fields says where the fields of a payload are.
type Fields struct {
	// Format is a format of package fields; empty if a payload is one field.
	Format string
	// JSON is the type whose fields payloads of JSON have; nil for payloads that each have their own.
	JSON reflect.Type
	// Message is the type of payloads of protobuf.
	Message protoreflect.MessageDescriptor
	// Unpack returns a payload before it was compressed; nil if it was not.
	Unpack func(payload []byte) ([]byte, error)
	// Has reports whether the payload has its one field; nil if each has.
	Has func(payload []byte) bool
}

// Same reports whether fields of both layouts may be joined.
func (f *Fields) Same(other *Fields) bool {
	return f.Format == other.Format && f.JSON == other.JSON && name(f.Message) == name(other.Message)
}

func name(m protoreflect.MessageDescriptor) protoreflect.FullName {
	if m == nil {
		return ""
	}
	return m.FullName()
}

// ByTag returns the layouts that a codec of T knows. A codec without them stores payloads that are one field.
func ByTag[T any](codec any) map[string]Of[T] {
	if c, ok := codec.(interface{ Layouts() map[string]Of[T] }); ok {
		return c.Layouts()
	}
	return nil
}
