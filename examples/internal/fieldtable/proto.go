package fieldtable

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/codec"
)

// Message is the full name of the message of protobuf payloads, and Descriptors describe it.
const Message = "fieldtable.v1.Reading"

// message is a field of the message. Its value is nil if the message does not set it.
type message struct {
	name   string
	kind   descriptorpb.FieldDescriptorProto_Type
	of     string // the type of a message or an enum
	value  any
	want   codec.Value
	number codec.Value // if it is not the value
	state  string

	optional, repeated bool
	oneof              bool
}

const (
	kindInt32    = descriptorpb.FieldDescriptorProto_TYPE_INT32
	kindInt64    = descriptorpb.FieldDescriptorProto_TYPE_INT64
	kindUint32   = descriptorpb.FieldDescriptorProto_TYPE_UINT32
	kindUint64   = descriptorpb.FieldDescriptorProto_TYPE_UINT64
	kindSint32   = descriptorpb.FieldDescriptorProto_TYPE_SINT32
	kindSint64   = descriptorpb.FieldDescriptorProto_TYPE_SINT64
	kindFixed32  = descriptorpb.FieldDescriptorProto_TYPE_FIXED32
	kindFixed64  = descriptorpb.FieldDescriptorProto_TYPE_FIXED64
	kindSfixed32 = descriptorpb.FieldDescriptorProto_TYPE_SFIXED32
	kindSfixed64 = descriptorpb.FieldDescriptorProto_TYPE_SFIXED64
	kindFloat    = descriptorpb.FieldDescriptorProto_TYPE_FLOAT
	kindDouble   = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	kindBool     = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	kindString   = descriptorpb.FieldDescriptorProto_TYPE_STRING
	kindBytes    = descriptorpb.FieldDescriptorProto_TYPE_BYTES
	kindEnum     = descriptorpb.FieldDescriptorProto_TYPE_ENUM
	kindMessage  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE

	mode  = ".fieldtable.v1.Mode"
	motor = ".fieldtable.v1.Motor"
	known = ".google.protobuf."
)

var instant = Start.Add(250 * time.Millisecond)

var messages = []message{
	{name: "i32", kind: kindInt32, value: int32(-5), want: codec.Int(-5), state: "-5"},
	{name: "i64", kind: kindInt64, value: int64(exact + 1), want: codec.Int(exact + 1), state: "9007199254740993"},
	{name: "u32", kind: kindUint32, value: uint32(math.MaxUint32), want: codec.Uint(math.MaxUint32), state: "4294967295"},
	{name: "u64", kind: kindUint64, value: uint64(math.MaxUint64), want: codec.Uint(math.MaxUint64), state: "18446744073709551615"},
	{name: "s32", kind: kindSint32, value: int32(-7), want: codec.Int(-7), state: "-7"},
	{name: "s64", kind: kindSint64, value: int64(-exact - 1), want: codec.Int(-exact - 1), state: "-9007199254740993"},
	{name: "fix32", kind: kindFixed32, value: uint32(7), want: codec.Uint(7), state: "7"},
	{name: "fix64", kind: kindFixed64, value: uint64(1<<63 + 1), want: codec.Uint(1<<63 + 1), state: "9223372036854775809"},
	{name: "sfix32", kind: kindSfixed32, value: int32(math.MinInt32), want: codec.Int(math.MinInt32), state: "-2147483648"},
	{name: "sfix64", kind: kindSfixed64, value: int64(math.MinInt64), want: codec.Int(math.MinInt64), state: "-9223372036854775808"},
	{name: "flt", kind: kindFloat, value: float32(0.1), want: codec.Float(float64(float32(0.1))), state: "0.10000000149011612"},
	{name: "dbl", kind: kindDouble, value: 0.1, want: codec.Float(0.1), state: "0.1"},
	{name: "dbl_whole", kind: kindDouble, value: 7.0, want: codec.Float(7), state: "7"},
	{name: "dbl_nan", kind: kindDouble, value: math.NaN(), want: codec.Float(math.NaN()), state: "NaN"},
	{name: "dbl_inf", kind: kindDouble, value: math.Inf(1), want: codec.Float(math.Inf(1)), state: "+Inf"},
	{name: "yes", kind: kindBool, value: true, want: codec.Bool(true), number: codec.Int(1), state: "true"},
	{name: "word", kind: kindString, value: "abc", want: codec.Str("abc"), number: nothing, state: "abc"},
	{name: "decimal", kind: kindString, value: "21.5", want: codec.Str("21.5"), number: codec.Float(21.5), state: "21.5"},
	{name: "bytes", kind: kindBytes, value: []byte{0, 1, 254, 255}, want: codec.ValueOf([]byte{0, 1, 254, 255})},

	// A field that is not set is its default, unless the message says whether it is set.
	{name: "unset", kind: kindInt64, want: codec.Int(0), state: "0"},
	{name: "unset_text", kind: kindString, want: codec.Str("")},
	{name: "optional_unset", kind: kindInt64, optional: true},
	{name: "optional_zero", kind: kindInt64, optional: true, value: int64(0), want: codec.Int(0), state: "0"},

	// An enum is its name, and its number where a number is wanted.
	{name: "mode", kind: kindEnum, of: mode, value: protoreflect.EnumNumber(2), want: codec.Str("MODE_ON"), number: codec.Int(2), state: "MODE_ON"},
	{name: "mode_other", kind: kindEnum, of: mode, value: protoreflect.EnumNumber(9), want: codec.Int(9), number: codec.Int(9), state: "9"},

	// A Duration is one number, a Timestamp one time, and a wrapper its value.
	{name: "lasted", kind: kindMessage, of: known + "Duration", value: durationpb.New(1500 * time.Millisecond), want: codec.Float(1.5), state: "1.5"},
	{name: "lasted_whole", kind: kindMessage, of: known + "Duration", value: durationpb.New(90 * time.Second), want: codec.Int(90), state: "90"},
	{name: "lasted_minus", kind: kindMessage, of: known + "Duration", value: durationpb.New(-500 * time.Millisecond), want: codec.Float(-0.5), state: "-0.5"},
	{name: "lasted_unset", kind: kindMessage, of: known + "Duration"},
	{
		name: "taken", kind: kindMessage, of: known + "Timestamp", value: timestamppb.New(instant), want: codec.ValueOf(instant),
		number: codec.Float(1780272000.25), state: "2026-06-01T00:00:00.25Z",
	},
	{name: "taken_unset", kind: kindMessage, of: known + "Timestamp"},
	{name: "wrap_int", kind: kindMessage, of: known + "Int64Value", value: wrapperspb.Int64(exact + 3), want: codec.Int(exact + 3), state: "9007199254740995"},
	{name: "wrap_uint", kind: kindMessage, of: known + "UInt64Value", value: wrapperspb.UInt64(math.MaxUint64), want: codec.Uint(math.MaxUint64), state: "18446744073709551615"},
	{name: "wrap_double", kind: kindMessage, of: known + "DoubleValue", value: wrapperspb.Double(2.5), want: codec.Float(2.5), state: "2.5"},
	{name: "wrap_bool", kind: kindMessage, of: known + "BoolValue", value: wrapperspb.Bool(false), want: codec.Bool(false), number: codec.Int(0), state: "false"},
	{name: "wrap_text", kind: kindMessage, of: known + "StringValue", value: wrapperspb.String("abc"), want: codec.Str("abc"), number: nothing, state: "abc"},
	{name: "wrap_zero", kind: kindMessage, of: known + "Int64Value", value: wrapperspb.Int64(0), want: codec.Int(0), state: "0"},
	{name: "wrap_unset", kind: kindMessage, of: known + "Int64Value"},

	// Of a oneof, only the member that is set is there.
	{name: "kwh", kind: kindDouble, oneof: true, value: 0.0, want: codec.Float(0), state: "0"},
	{name: "liters", kind: kindDouble, oneof: true},
	{name: "fault", kind: kindString, oneof: true},

	{name: "motor", kind: kindMessage, of: motor},
	{name: "spare", kind: kindMessage, of: motor},
	{name: "list", kind: kindInt64, repeated: true, value: []int64{1, exact + 1}, want: codec.ValueOf([]any{1, exact + 1})},
}

// nested are the fields of messages: motor is set, and spare is not. Those of known messages are none of their own.
var nested = []Cell{
	{Field: "motor.temp_c", Want: Want{Value: codec.Float(61.5), Number: codec.Float(61.5), State: "61.5"}},
	{Field: "motor.count", Want: Want{Value: codec.Uint(0), Number: codec.Uint(0), State: "0"}},
	{Field: "spare.temp_c"},
	{Field: "spare.count"},
	{Field: "lasted.seconds"},
	{Field: "lasted.nanos"},
	{Field: "taken.seconds"},
	{Field: "taken.nanos"},
	{Field: "wrap_int.value"},
}

func protoCells() (cells []Cell) {
	for _, m := range messages {
		w := Want{Value: m.want, Number: m.number, State: m.state}
		switch m.want.Kind() {
		case codec.KindInt, codec.KindUint, codec.KindFloat:
			w.Number = m.want
		}
		if m.name != "motor" && m.name != "spare" {
			cells = append(cells, Cell{Field: m.name, Want: w})
		}
	}
	return append(cells, nested...)
}

// Descriptors returns the descriptors of the message and of all that it imports.
func Descriptors() *descriptorpb.FileDescriptorSet {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("fieldtable/v1/reading.proto"), Package: proto.String("fieldtable.v1"), Syntax: proto.String("proto3"),
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Mode"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("MODE_UNSPECIFIED"), Number: proto.Int32(0)}, {Name: proto.String("MODE_OFF"), Number: proto.Int32(1)}, {Name: proto.String("MODE_ON"), Number: proto.Int32(2)},
		}}},
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Reading"), OneofDecl: []*descriptorpb.OneofDescriptorProto{{Name: proto.String("counted")}}},
			{Name: proto.String("Motor"), Field: []*descriptorpb.FieldDescriptorProto{fieldOf(1, message{name: "temp_c", kind: kindDouble}), fieldOf(2, message{name: "count", kind: kindUint64})}},
		},
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, imported := range []protoreflect.FileDescriptor{
		durationpb.File_google_protobuf_duration_proto, timestamppb.File_google_protobuf_timestamp_proto, wrapperspb.File_google_protobuf_wrappers_proto,
	} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(imported))
		file.Dependency = append(file.Dependency, imported.Path())
	}
	reading := file.MessageType[0]
	for i, m := range messages {
		f := fieldOf(int32(i+1), m)
		if m.oneof {
			f.OneofIndex = proto.Int32(0)
		}
		reading.Field = append(reading.Field, f)
	}
	for i, m := range messages { // after the real oneof, as protoc does it
		if m.optional {
			reading.Field[i].OneofIndex = proto.Int32(int32(len(reading.OneofDecl)))
			reading.OneofDecl = append(reading.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + m.name)})
		}
	}
	set.File = append(set.File, file)
	return set
}

func fieldOf(number int32, m message) *descriptorpb.FieldDescriptorProto {
	f := &descriptorpb.FieldDescriptorProto{Name: &m.name, Number: &number, Type: &m.kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if m.of != "" {
		f.TypeName = &m.of
	}
	if m.repeated {
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	if m.optional {
		f.Proto3Optional = proto.Bool(true)
	}
	return f
}

// protoPayload returns the message.
func protoPayload(t testing.TB) []byte {
	t.Helper()
	files, err := protodesc.NewFiles(Descriptors())
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName(Message)
	if err != nil {
		t.Fatal(err)
	}
	msg := dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))
	of := msg.Descriptor().Fields()
	set := func(name string, v any) {
		f := of.ByName(protoreflect.Name(name))
		switch v := v.(type) {
		case nil:
		case []int64:
			list := msg.Mutable(f).List()
			for _, i := range v {
				list.Append(protoreflect.ValueOfInt64(i))
			}
		case proto.Message:
			data, err := proto.Marshal(v)
			if err == nil {
				err = proto.Unmarshal(data, msg.Mutable(f).Message().Interface())
			}
			if err != nil {
				t.Fatal(err)
			}
		default:
			msg.Set(f, protoreflect.ValueOf(v))
		}
	}
	for _, m := range messages {
		set(m.name, m.value)
	}
	inner := msg.Mutable(of.ByName("motor")).Message()
	inner.Set(inner.Descriptor().Fields().ByName("temp_c"), protoreflect.ValueOf(61.5))
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
