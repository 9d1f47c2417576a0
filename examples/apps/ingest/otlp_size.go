package main

import (
	"bytes"
	"errors"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxMessages bounds the messages in one request: data points, attributes, values, buckets and those around them. An
// empty one takes two bytes on the wire and about messageBytes once it is decoded, so the bytes of the body do not
// bound the memory. A number in a list may take one byte on the wire and numberBytes in memory: enough of them count as
// a message.
const (
	maxMessages  = 1_000_000
	messageBytes = 100
	numberBytes  = 8
)

var requestDescriptor = (&collectorpb.ExportMetricsServiceRequest{}).ProtoReflect().Descriptor()

// maxMessages is less if -max-body is small: a request that takes more memory than all requests together could never be
// decoded.
func (s *server) maxMessages() int {
	return int(min(maxMessages, memoryOf(s.limits)/2/messageBytes))
}

// countMessages returns how many messages decoding a request would create, or more. It stops above most.
func countMessages(body []byte, isJSON bool, most int) (int, error) {
	if isJSON {
		return bytes.Count(body, []byte("{")) + bytes.Count(body, []byte(","))*numberBytes/messageBytes, nil
	}
	n := 0
	err := walkMessages(body, requestDescriptor, &n, most, protowire.DefaultRecursionLimit)
	return n, err
}

var errTooDeep = errors.New("its messages are nested too deep")

func walkMessages(b []byte, d protoreflect.MessageDescriptor, n *int, most, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	fields := d.Fields()
	for len(b) > 0 && *n <= most {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(number, kind, b); size < 0 {
			return protowire.ParseError(size)
		}
		value := b[:size]
		b = b[size:]
		f := fields.ByNumber(number)
		if f == nil || f.Message() == nil && !f.IsList() {
			continue
		}
		*n++
		if kind != protowire.BytesType {
			continue // one number of a list
		}
		inner, _ := protowire.ConsumeBytes(value)
		if f.Message() == nil {
			if f.Kind() == protoreflect.Uint64Kind { // others take as many bytes in memory as on the wire
				*n += len(inner) * numberBytes / messageBytes
			}
			continue
		}
		if err := walkMessages(inner, f.Message(), n, most, depth-1); err != nil {
			return err
		}
	}
	return nil
}
