package dynamic_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// acmeProto is a file with fields of all kinds, as protoc describes it.
const acmeProto = `
name: "acme.proto" package: "acme" syntax: "proto3"
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
  field { name: "by_name" number: 21 type: TYPE_MESSAGE type_name: ".acme.Reading.ByNameEntry" label: LABEL_REPEATED }
  nested_type { name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL } }
  oneof_decl { name: "source" }
}`

func acmeFile(t testing.TB) *descriptorpb.FileDescriptorProto {
	t.Helper()
	file := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(acmeProto), file); err != nil {
		t.Fatal(err)
	}
	return file
}

func acmeOptions(t testing.TB) dynamic.Options {
	t.Helper()
	return dynamic.Options{
		Descriptors: &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{acmeFile(t)}},
		Messages:    map[string]string{"pb": "acme.Reading"},
	}
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
	file, err := protodesc.NewFile(acmeFile(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("Reading")
}

const fullMessage = `{"d":1.5,"f":2.5,"i32":-3,"i64":"-4","u32":5,"u64":"18446744073709551615","s32":-7,"s64":"-8","x32":9,"x64":"10","sx32":-11,"sx64":"-12","b":true,
	"s":"text","raw":"AAE=","door":"OPEN","motor":{"tempC":81.5,"rpm":-1200},"list":[1,2],"volts":230,"byName":{"a":1}}`

// TestProto: messages are read by the descriptors that the operator supplies.
func TestProto(t *testing.T) {
	full, empty := message(t, fullMessage), message(t, `{}`)
	pb := codec.Tagged("pb", codec.Bytes())
	zero := map[string]any{
		"d": 0.0, "f": 0.0, "i32": int64(0), "i64": int64(0), "u32": uint64(0), "u64": uint64(0), "s32": int64(0), "s64": int64(0), "x32": uint64(0), "x64": uint64(0),
		"sx32": int64(0), "sx64": int64(0), "b": false, "s": "", "raw": []byte{}, "door": "CLOSED", "list": []any{}, "by_name": map[string]any{},
	}
	want := map[string]any{
		"d": 1.5, "f": 2.5, "i32": int64(-3), "i64": int64(-4), "u32": uint64(5), "u64": uint64(math.MaxUint64), "s32": int64(-7), "s64": int64(-8), "x32": uint64(9), "x64": uint64(10),
		"sx32": int64(-11), "sx64": int64(-12), "b": true, "s": "text", "raw": []byte{0, 1}, "door": "OPEN", "motor": map[string]any{"temp_c": 81.5, "rpm": int64(-1200)},
		"list": []any{int64(1), int64(2)}, "volts": int64(230), "by_name": map[string]any{"a": int64(1)},
	}
	for name, c := range map[string]codec.Codec[[]byte]{"pb": pb, "pb+zstd": zstd.Wrap(pb, zstd.Options{})} {
		all, numbers := read(t, c, acmeOptions(t), []string{"motor", "rpm"}, full, empty)
		if len(all) != 2 || !reflect.DeepEqual(all[0], any(want)) {
			t.Errorf("%s: got %#v, want %#v", name, all[0], want)
		}
		got := all[1].(map[string]any)
		if raw, ok := got["raw"].([]byte); !ok || len(raw) > 0 {
			t.Errorf("%s: raw is %#v", name, got["raw"])
		}
		got["raw"] = []byte{}
		if !reflect.DeepEqual(got, zero) {
			t.Errorf("%s: an empty message is %#v, want %#v", name, got, zero)
		}
		if fmt.Sprint(numbers) != "[{-1200 true} {0 false}]" {
			t.Errorf("%s: numbers %v", name, numbers)
		}
	}
}

// protoPaths are the names of fields in the tests of numbers.
var protoPaths = [][]string{
	nil,
	{"d"},
	{"f"},
	{"i32"},
	{"i64"},
	{"u32"},
	{"u64"},
	{"s32"},
	{"s64"},
	{"x32"},
	{"x64"},
	{"sx32"},
	{"sx64"},
	{"b"},
	{"s"},
	{"raw"},
	{"door"},
	{"list"},
	{"volts"},
	{"by_name"},
	{"motor"},
	{"motor", "temp_c"},
	{"motor", "rpm"},
	{"spare", "temp_c"},
	{"spare", "rpm"},
	{"none"},
	{"motor", "none"},
	{"d", "d"},
	{"motor", "temp_c", "x"},
}

// sameProtoNumbers compares numbers that are read alone with those of a decoded message.
func sameProtoNumbers(t *testing.T, fields []dynamic.Field, of protoreflect.MessageDescriptor, src []byte) {
	t.Helper()
	m := dynamicpb.NewMessage(of)
	if proto.Unmarshal(src, m) != nil {
		for _, f := range fields {
			_, _, _ = f.Number("pb", src) // which may see an error, or not
		}
		return
	}
	for i, f := range fields {
		var want float64
		wantOK := false
		at := protoreflect.Message(m)
		for j, name := range protoPaths[i] {
			fd := at.Descriptor().Fields().ByName(protoreflect.Name(name))
			if fd == nil || fd.IsList() || fd.IsMap() || fd.HasPresence() && !at.Has(fd) {
				break
			}
			if fd.Message() != nil {
				at = at.Get(fd).Message()
				continue
			}
			if j < len(protoPaths[i])-1 {
				break
			}
			wantOK = true
			switch v := at.Get(fd).Interface().(type) {
			case bool:
				if v {
					want = 1
				}
			case int32:
				want = float64(v)
			case int64:
				want = float64(v)
			case uint32:
				want = float64(v)
			case uint64:
				want = float64(v)
			case float32:
				want = float64(v)
			case float64:
				want = v
			default:
				wantOK = false
			}
		}
		x, ok, err := f.Number("pb", src)
		if same := math.Float64bits(x) == math.Float64bits(want) || math.IsNaN(x) && math.IsNaN(want); err != nil || ok != wantOK || !same {
			t.Errorf("%s of %x is %v, %v, %v; want %v, %v", f, src, x, ok, err, want, wantOK)
		}
	}
}

func protoFields(t testing.TB) (fields []dynamic.Field) {
	t.Helper()
	for _, names := range protoPaths {
		f, err := dynamic.NewField(names, acmeOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	return fields
}

// protoMessages are messages that readers of parts often get wrong: repeated fields, merged messages, other wire types, oneofs.
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
		{0x0a},
		{0xff},
		{0x08},
		{0x8a, 0x01, 0x05, 0x09},
		{0x0b, 0x0c},
		{0x0b},
		{0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	}
}

func TestNumbersOfProto(t *testing.T) {
	fields, of := protoFields(t), descriptor(t)
	for _, src := range protoMessages(t) {
		sameProtoNumbers(t, fields, of, src)
	}
	field := fields[22] // motor.rpm
	src := message(t, fullMessage)
	if n := testing.AllocsPerRun(100, func() {
		if x, ok, err := field.Number("pb", src); x != -1200 || !ok || err != nil {
			t.Fatal(x, ok, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a number, want none", n)
	}
}

func FuzzNumbersOfProto(f *testing.F) {
	fields, of := protoFields(f), descriptor(f)
	for _, src := range protoMessages(f) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		// A call of this function costs a thousand times as much as a comparison, because the coverage of the whole test program is
		// compared after it. So it compares messages that are cut, too.
		for n := max(0, len(src)-100); n <= len(src); n++ {
			sameProtoNumbers(t, fields, of, src[:n])
		}
	})
}
