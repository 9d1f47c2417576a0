package dynamic_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// acmeProto is a file with fields of all kinds, as protoc describes it.
const acmeProto = `
name: "acme.proto" package: "acme" syntax: "proto3"
dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto" dependency: "google/protobuf/wrappers.proto"
enum_type { name: "Door" value { name: "CLOSED" number: 0 } value { name: "OPEN" number: 1 } }
message_type {
  name: "Motor"
  field { name: "temp_c" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "rpm" number: 2 type: TYPE_SINT32 label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true }
  oneof_decl { name: "_rpm" }
}
message_type {
  name: "Reading"
  field { name: "d" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "f" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  field { name: "i32" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "i64" number: 4 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "u32" number: 5 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "u64" number: 6 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "s32" number: 7 type: TYPE_SINT32 label: LABEL_OPTIONAL }
  field { name: "s64" number: 8 type: TYPE_SINT64 label: LABEL_OPTIONAL }
  field { name: "x32" number: 9 type: TYPE_FIXED32 label: LABEL_OPTIONAL }
  field { name: "x64" number: 10 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
  field { name: "sx32" number: 11 type: TYPE_SFIXED32 label: LABEL_OPTIONAL }
  field { name: "sx64" number: 12 type: TYPE_SFIXED64 label: LABEL_OPTIONAL }
  field { name: "b" number: 13 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "s" number: 14 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "raw" number: 15 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "door" number: 16 type: TYPE_ENUM type_name: ".acme.Door" label: LABEL_OPTIONAL }
  field { name: "motor" number: 17 type: TYPE_MESSAGE type_name: ".acme.Motor" label: LABEL_OPTIONAL }
  field { name: "list" number: 18 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "volts" number: 19 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "spare" number: 20 type: TYPE_MESSAGE type_name: ".acme.Motor" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "since" number: 31 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "by_name" number: 21 type: TYPE_MESSAGE type_name: ".acme.Reading.ByNameEntry" label: LABEL_REPEATED }
  field { name: "at" number: 22 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  field { name: "took" number: 23 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
  field { name: "maybe" number: 24 type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" label: LABEL_OPTIONAL }
  field { name: "count" number: 25 type: TYPE_MESSAGE type_name: ".google.protobuf.UInt64Value" label: LABEL_OPTIONAL }
  field { name: "label" number: 26 type: TYPE_MESSAGE type_name: ".google.protobuf.StringValue" label: LABEL_OPTIONAL }
  field { name: "by_int" number: 27 type: TYPE_MESSAGE type_name: ".acme.Reading.ByIntEntry" label: LABEL_REPEATED }
  field { name: "by_bool" number: 28 type: TYPE_MESSAGE type_name: ".acme.Reading.ByBoolEntry" label: LABEL_REPEATED }
  field { name: "motors" number: 29 type: TYPE_MESSAGE type_name: ".acme.Reading.MotorsEntry" label: LABEL_REPEATED }
  field { name: "times" number: 30 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_REPEATED }
  field { name: "inner" number: 32 type: TYPE_MESSAGE type_name: ".acme.Reading" label: LABEL_OPTIONAL }
  nested_type { name: "ByIntEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_SINT32 label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
  nested_type { name: "ByBoolEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_ENUM type_name: ".acme.Door" label: LABEL_OPTIONAL } }
  nested_type { name: "MotorsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".acme.Motor" label: LABEL_OPTIONAL } }
  nested_type { name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL } }
  oneof_decl { name: "source" }
}`

func acmeOptions(t testing.TB) dynamic.Options {
	t.Helper()
	file := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(acmeProto), file); err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}}
	for _, known := range []protoreflect.FileDescriptor{timestamppb.File_google_protobuf_timestamp_proto, durationpb.File_google_protobuf_duration_proto, wrapperspb.File_google_protobuf_wrappers_proto} {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(known))
	}
	return dynamic.Options{Descriptors: set, Messages: map[string]string{"pb": "acme.Reading"}}
}

// brokenDescriptors lack a file that another one imports.
func brokenDescriptors() *descriptorpb.FileDescriptorSet {
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto"), Dependency: []string{"b.proto"}}}}
}

// message returns the wire format of a message, as the program that owns the dataset writes it.
func message(t testing.TB, json string) []byte {
	t.Helper()
	m := dynamicpb.NewMessage(descriptor(t))
	if err := protojson.Unmarshal([]byte(json), m); err != nil {
		t.Fatal(err)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func descriptor(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	files, err := protodesc.NewFiles(acmeOptions(t).Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName("acme.Reading")
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MessageDescriptor)
}

const fullMessage = `{"d":1.5,"f":2.5,"i32":-3,"i64":"-4","u32":5,"u64":"18446744073709551615","s32":-7,"s64":"-8","x32":9,"x64":"10","sx32":-11,"sx64":"-12","b":true,
	"s":"text","raw":"AAE=","door":"OPEN","motor":{"tempC":81.5,"rpm":-1200},"list":[1,2],"volts":230,"byName":{"a":1,"b.c":2},"at":"2026-01-02T03:04:05.000000001Z","took":"-1.5s",
	"maybe":0,"count":"9007199254740993","label":"x","byInt":{"-7":"minus"},"byBool":{"true":"OPEN"},"motors":{"north.1":{"tempC":3}},"times":["1970-01-01T00:00:00Z"],"inner":{"s":"deep"}}`

// TestProto: messages are read by the descriptors that the operator supplies.
func TestProto(t *testing.T) {
	full, empty := message(t, fullMessage), message(t, `{}`)
	pb := codec.Tagged("pb", codec.Bytes())
	defaults := map[string]codec.Value{
		"d": codec.Float(0), "f": codec.Float(0), "i32": codec.Int(0), "i64": codec.Int(0), "u32": codec.Uint(0), "u64": codec.Uint(0), "s32": codec.Int(0), "s64": codec.Int(0),
		"x32": codec.Uint(0), "x64": codec.Uint(0), "sx32": codec.Int(0), "sx64": codec.Int(0), "b": codec.Bool(false), "s": codec.Str(""), "raw": codec.ValueOf([]byte{}),
		"door": codec.Str("CLOSED"), "list": codec.ValueOf([]any{}), "times": codec.ValueOf([]any{}),
	}
	want := map[string]codec.Value{
		"d": codec.Float(1.5), "f": codec.Float(2.5), "i32": codec.Int(-3), "i64": codec.Int(-4), "u32": codec.Uint(5), "u64": codec.Uint(math.MaxUint64), "s32": codec.Int(-7), "s64": codec.Int(-8),
		"x32": codec.Uint(9), "x64": codec.Uint(10), "sx32": codec.Int(-11), "sx64": codec.Int(-12), "b": codec.Bool(true), "s": codec.Str("text"), "raw": codec.ValueOf([]byte{0, 1}),
		"door": codec.Str("OPEN"), "motor.temp_c": codec.Float(81.5), "motor.rpm": codec.Int(-1200), "list": codec.ValueOf([]any{1, 2}), "volts": codec.Int(230),
		"by_name.a": codec.Int(1), "by_name.b.c": codec.Int(2), "at": codec.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC)), "took": codec.Float(-1.5), "maybe": codec.Float(0),
		"count": codec.Uint(9007199254740993), "label": codec.Str("x"), "by_int.-7": codec.Str("minus"), "by_bool.true": codec.Str("OPEN"), "motors.north.1.temp_c": codec.Float(3),
		"times": codec.ValueOf([]any{time.Unix(0, 0).UTC()}),
	}
	for name, v := range defaults {
		want["inner."+name] = v
	}
	want["inner.s"] = codec.Str("deep")
	for name, c := range map[string]codec.Codec[[]byte]{"pb": pb, "pb+zstd": zstd.Wrap(pb, zstd.Options{})} {
		all, numbers := read(t, c, acmeOptions(t), "motor.rpm", full, empty)
		if len(all) != 2 || !all[0].Equal(recordOf(want)) {
			t.Errorf("%s: got %v, want %v", name, all[0], recordOf(want))
		}
		if !all[1].Equal(recordOf(defaults)) {
			t.Errorf("%s: an empty message is %v, want %v", name, all[1], recordOf(defaults))
		}
		if !slices.Equal(numbers, []codec.Value{codec.Int(-1200), {}}) {
			t.Errorf("%s: numbers %v", name, numbers)
		}
	}
	for name, want := range map[string]codec.Value{
		"door": codec.Int(1), "by_bool.true": codec.Int(1), "at": codec.Float(1767323045.000000001), "took": codec.Float(-1.5), "b": codec.Int(1), "s": {}, "count": codec.Uint(9007199254740993),
	} {
		if n, err := fieldNamed(t, name, acmeOptions(t)).Number("pb", full); n != want || err != nil {
			t.Errorf("the number %s is %v, %v; want %v", name, n, err, want)
		}
	}
}

// protoNames are the names of fields in the tests of single fields.
var protoNames = []string{
	"", "d", "f", "i32", "i64", "u32", "u64", "s32", "s64", "x32", "x64", "sx32", "sx64", "b", "s", "raw", "door", "list", "volts", "motor", "motor.temp_c", "motor.rpm", "spare.temp_c", "spare.rpm",
	"none", "motor.none", "d.d", "motor.temp_c.x", "by_name", "by_name.a", "by_name.b.c", "by_name.", "at", "at.seconds", "took", "maybe", "maybe.value", "count", "label", "by_int.-7", "by_int.0", "by_int.+0",
	"by_bool.true", "by_bool.false", "motors.north.1.temp_c", "motors.north", "motors.a.rpm", "times", "times.x", "since", "inner.s", "inner.motor.temp_c", "inner.took", "inner.inner.at",
}

// sameProtoFields compares fields that are read alone with those of a decoded message.
func sameProtoFields(t *testing.T, fields map[string]dynamic.Field, opts dynamic.Options, src []byte) {
	t.Helper()
	all, err := decode("pb", src, opts)
	for name, f := range fields {
		v, oneErr := f.Value("pb", src)
		if err != nil {
			continue // it may see an error, or not
		}
		want, _ := all.Lookup(name)
		x, _ := v.Number()
		y, _ := want.Number()
		bothNaN := v.Kind() == want.Kind() && math.IsNaN(x) && math.IsNaN(y)
		if oneErr != nil || v != want && !bothNaN {
			t.Errorf("%s of %x is %v, %v; decoded it is %v", name, src, v, oneErr, want)
		}
	}
}

func protoFields(t testing.TB) map[string]dynamic.Field {
	t.Helper()
	fields := map[string]dynamic.Field{}
	for _, name := range protoNames {
		fields[name] = fieldNamed(t, name, acmeOptions(t))
	}
	return fields
}

// protoMessages are messages that readers of parts often get wrong: repeated fields, merged messages, other wire types,
// oneofs.
func protoMessages(t testing.TB) (all [][]byte) {
	t.Helper()
	join := func(parts ...[]byte) (out []byte) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	motor, spare := message(t, `{"motor":{"tempC":1}}`), message(t, `{"spare":{"rpm":5}}`)
	wrong := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7) // d is a double
	packed := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte{1, 2})
	return [][]byte{
		nil, message(t, fullMessage), motor, spare,
		join(motor, message(t, `{"motor":{"rpm":7}}`)), join(message(t, `{"d":1}`), message(t, `{"d":2}`)), join(wrong, message(t, `{"d":3}`), wrong), join(packed, message(t, `{"i32":4}`)),
		join(spare, message(t, `{"volts":1}`)), join(message(t, `{"volts":1}`), spare), join(spare, message(t, `{"volts":1}`), message(t, `{"spare":{"tempC":2}}`)), join(message(t, `{"volts":1}`), message(t, `{"volts":0}`)),
		message(t, `{"motor":{}}`), message(t, `{"d":"NaN","f":"-Infinity"}`),
		join(message(t, `{"at":"1970-01-01T00:00:07Z"}`), message(t, `{"at":"1970-01-01T00:00:00.5Z"}`)), message(t, `{"at":"1970-01-01T00:00:00Z","took":"0s","maybe":0,"label":""}`),
		join(message(t, `{"since":"1970-01-01T00:00:07Z"}`), message(t, `{"volts":1}`), message(t, `{"since":"1970-01-01T00:00:00.5Z"}`)), join(message(t, `{"maybe":1}`), message(t, `{"maybe":2}`)),
		join(message(t, `{"byName":{"a":1}}`), message(t, `{"byName":{"a":0,"":3}}`)), message(t, `{"byBool":{"false":"CLOSED"},"byInt":{"0":""},"motors":{"a":{},"north.1":{"tempC":1}}}`),
		{0xaa, 0x01, 0x00}, // an entry without key and value
		{0xaa, 0x01, 0x06, 0x0a, 0x01, 'a', 0x0a, 0x01, 'b'},  // two keys
		{0xaa, 0x01, 0x07, 0x0a, 0x01, 'a', 0x10, 1, 0x10, 2}, // two values
		{0xaa, 0x01, 0x05, 0x0a, 0x01, 'a', 0x12, 0x00},       // a value of another type
		{0x80, 0x01, 0x07},
		{0x72, 0x01, 0xff}, // an enum without a name, text that is not UTF-8
		{0xba, 0x01, 0x0b, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, // nanoseconds below 0
		{0x0a},
		{0xff},
		{0x08},
		{0x8a, 0x01, 0x05, 0x09},
		{0x0b, 0x0c},
		{0x0b},
		{0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	}
}

func TestFieldsOfProto(t *testing.T) {
	fields, opts := protoFields(t), acmeOptions(t)
	for _, src := range protoMessages(t) {
		sameProtoFields(t, fields, opts, src)
	}
	src := message(t, fullMessage)
	for name, want := range map[string]codec.Value{
		"motor.rpm": codec.Int(-1200), "count": codec.Uint(9007199254740993), "at": codec.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC)), "by_name.b.c": codec.Int(2), "by_bool.true": codec.Str("OPEN"),
	} {
		field := fieldNamed(t, name, opts)
		if n := testing.AllocsPerRun(100, func() {
			if v, err := field.Value("pb", src); v != want || err != nil {
				t.Fatal(v, err)
			}
		}); n > 0 {
			t.Errorf("%v allocations for %s, want none", n, name)
		}
	}
}

func FuzzFieldsOfProto(f *testing.F) {
	fields, opts := protoFields(f), acmeOptions(f)
	for _, src := range protoMessages(f) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) { sameProtoFields(t, fields, opts, src) })
}
