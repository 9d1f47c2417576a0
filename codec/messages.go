package codec

import "google.golang.org/protobuf/reflect/protoreflect"

// Messages returns, by tag, the types of the payloads of c that are plain protobuf messages, such as those of [Proto]. Package
// tsdb/dynamic reads the fields of such payloads (dynamic.Fields). Tags with other payloads, also compressed messages, are missing; the map is nil
// if no payload is a plain message. Messages allocates; the caller may change the map.
//
// If a codec has a method Messages() map[string]protoreflect.MessageDescriptor, Messages returns its result. Codecs of this
// package that wrap others ask those. A codec of your own that wraps another one and stores its payloads unchanged should do
// the same.
func Messages[T any](c Codec[T]) map[string]protoreflect.MessageDescriptor {
	if own, ok := c.(interface {
		Messages() map[string]protoreflect.MessageDescriptor
	}); ok {
		return own.Messages()
	}
	return nil
}
