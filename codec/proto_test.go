package codec_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/codec"
)

func protoEqual[T proto.Message](a, b T) bool { return proto.Equal(a, b) }

func TestProto(t *testing.T) {
	contract(t, codec.Proto[*durationpb.Duration](), protoEqual, []stored[*durationpb.Duration]{
		{"empty", &durationpb.Duration{}, ""},
		{"fields", &durationpb.Duration{Seconds: 300, Nanos: 7}, "\x08\xac\x02\x10\x07"},
	}, []string{"\x08", "\xff\xff\xff", "\x0b" + strings.Repeat("\x0b", 20_000)})
}

func TestProtoIsDeterministic(t *testing.T) {
	c := codec.Proto[*structpb.Struct]()
	var first []byte
	for i := range 50 {
		v, err := structpb.NewStruct(map[string]any{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got
		}
		if string(got) != string(first) {
			t.Fatalf("the same message gave %q and %q", first, got)
		}
	}
}

func TestProtoKeepsUnknownFields(t *testing.T) {
	newer, err := codec.Proto[*durationpb.Duration]().Append(nil, &durationpb.Duration{Seconds: 1, Nanos: 2})
	if err != nil {
		t.Fatal(err)
	}
	older := codec.Proto[*wrapperspb.Int64Value]() // knows only field 1
	v, err := older.Decode(newer)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := older.Append(nil, v); err != nil || string(got) != string(newer) {
		t.Errorf("read and written again = %q, %v, want %q", got, err, newer)
	}
}

func TestProtoRefuses(t *testing.T) {
	out, err := codec.Proto[*durationpb.Duration]().Append(nil, nil)
	wantEncode(t, out, err, "pb", "nil message")

	out, err = codec.Proto[*wrapperspb.StringValue]().Append(nil, wrapperspb.String("\xff"))
	wantEncode(t, out, err, "pb", "UTF-8")

	required := codec.Proto[*descriptorpb.UninterpretedOption_NamePart]()
	out, err = required.Append(nil, &descriptorpb.UninterpretedOption_NamePart{})
	wantEncode(t, out, err, "pb", "required")
	_, err = required.Decode(nil)
	wantCorrupt(t, err, "pb", "")
}

// embedded has the methods of a message, but is none.
type embedded struct{ *durationpb.Duration }

func TestProtoRefusesTypesThatAreNoMessages(t *testing.T) {
	t.Run("interface", func(t *testing.T) { refusedType[proto.Message](t, &durationpb.Duration{}) })
	t.Run("embedded", func(t *testing.T) { refusedType[embedded](t, embedded{}) })
	t.Run("pointer to embedded", func(t *testing.T) { refusedType[*embedded](t, nil) })
	t.Run("dynamic", func(t *testing.T) { refusedType[*dynamicpb.Message](t, nil) })
}

func refusedType[T proto.Message](t *testing.T, v T) {
	t.Helper()
	c := codec.Proto[T]()
	wantInvalid(t, codec.Check(c), "message type")
	out, err := c.Append(nil, v)
	wantEncode(t, out, err, "pb", "message type")
	_, err = c.Decode([]byte("x"))
	wantCorrupt(t, err, "pb", "x")
}
