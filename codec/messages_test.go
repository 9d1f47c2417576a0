package codec_test

import (
	"maps"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
)

// TestMessages: the types are found behind each wrapper that stores payloads unchanged, under the tag that is stored.
func TestMessages(t *testing.T) {
	duration, stamp := codec.Proto[*durationpb.Duration](), codec.Proto[*timestamppb.Timestamp]()
	fromStamp := func(s *timestamppb.Timestamp) (*durationpb.Duration, error) {
		return &durationpb.Duration{Seconds: s.Seconds}, nil
	}
	for name, tc := range map[string]struct {
		c    codec.Codec[*durationpb.Duration]
		want map[string]string
	}{
		"nil":        {nil, nil},
		"proto":      {duration, map[string]string{"pb": "google.protobuf.Duration"}},
		"tagged":     {codec.Tagged("pb.v2", duration), map[string]string{"pb.v2": "google.protobuf.Duration"}},
		"converted":  {codec.Convert(stamp, fromStamp, nil), map[string]string{"pb": "google.protobuf.Timestamp"}},
		"json":       {codec.JSON[*durationpb.Duration](), nil},
		"compressed": {zstd.Wrap(duration, zstd.Options{}), nil},
		"fallback": {
			codec.Fallback(codec.Tagged("pb.v2", duration), codec.Convert(stamp, fromStamp, nil), codec.JSON[*durationpb.Duration](), zstd.Wrap(duration, zstd.Options{})),
			map[string]string{"pb.v2": "google.protobuf.Duration", "pb": "google.protobuf.Timestamp"},
		},
		"fallback from JSON": {codec.Fallback(codec.JSON[*durationpb.Duration](), duration), map[string]string{"pb": "google.protobuf.Duration"}},
		"bad tag":            {codec.Tagged("A", duration), nil},
		"tagged nil":         {codec.Tagged[*durationpb.Duration]("a", nil), nil},
		"converted nil":      {codec.Convert[*timestamppb.Timestamp, *durationpb.Duration](nil, fromStamp, nil), nil},
	} {
		got := map[string]string{}
		for tag, m := range messagesOf(tc.c) {
			got[tag] = string(m.FullName())
		}
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	c := codec.Fallback(duration)
	delete(messagesOf(c), "pb")
	if len(messagesOf(c)) != 1 {
		t.Error("a caller changed the codec")
	}
}

// messagesOf returns the messages of a codec, as package tsdb/dynamic reads them.
func messagesOf(c codec.Codec[*durationpb.Duration]) map[string]protoreflect.MessageDescriptor {
	if own, ok := c.(interface {
		Messages() map[string]protoreflect.MessageDescriptor
	}); ok {
		return own.Messages()
	}
	return nil
}
