package fields

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/timestamppb" // a field of Tank

	"github.com/tidemark-go/tidemark/codec"
)

const tankProto = `
name: "tank.proto" package: "tank" syntax: "proto3" dependency: "google/protobuf/timestamp.proto"
message_type {
  name: "Motor"
  field { name: "rpm" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "hot" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true }
  oneof_decl { name: "_hot" }
}
message_type {
  name: "Tank"
  field { name: "level" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "motor" number: 2 type: TYPE_MESSAGE type_name: ".tank.Motor" label: LABEL_OPTIONAL }
  field { name: "maybe" number: 3 type: TYPE_SINT64 label: LABEL_OPTIONAL oneof_index: 1 proto3_optional: true }
  field { name: "list" number: 4 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "map" number: 5 type: TYPE_MESSAGE type_name: ".tank.Tank.MapEntry" label: LABEL_REPEATED }
  field { name: "valve" number: 7 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "inlet" number: 8 type: TYPE_MESSAGE type_name: ".tank.Motor" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "big" number: 9 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  oneof_decl { name: "way" }
  oneof_decl { name: "_maybe" }
  nested_type {
    name: "MapEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
  }
}`

type protoDescriptor = protoreflect.MessageDescriptor

func tank(t testing.TB) protoDescriptor {
	t.Helper()
	var file descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(tankProto), &file); err != nil {
		t.Fatal(err)
	}
	of, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return of.Messages().ByName("Tank")
}

func empty(m protoDescriptor) proto.Message { return dynamicpb.NewMessage(m) }

func wire(t testing.TB, m proto.Message) []byte {
	t.Helper()
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func decode(t testing.TB, m protoDescriptor, src []byte) proto.Message {
	t.Helper()
	v := empty(m)
	if err := proto.Unmarshal(src, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// joined returns a payload of the fields of another one.
func joined(t *testing.T, format string, shape *Shape, payload []byte) []byte {
	t.Helper()
	var parts []Part
	if err := Split(format, shape, payload, func(path string, raw []byte) { parts = append(parts, Part{path, raw}) }); err != nil {
		t.Fatalf("%s %q does not split: %v", format, payload, err)
	}
	out, err := Join(format, parts)
	if err != nil {
		t.Fatalf("%s %q does not join: %v", format, payload, err)
	}
	return out
}

type sensor struct {
	Name  string            `json:"name"`
	Temp  *float64          `json:"temp,omitempty"`
	Motor motor             `json:"motor"`
	Tags  map[string]string `json:"a.b,omitempty"`
	List  []any             `json:"list"`
}

// FuzzJSON: a value is the same after its fields were split and joined.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"name":"a\u003c\"}","temp":1.5,"motor":{"rpm":3},"a.b":{"x":"y"},"list":[1,{"a":[]}]}`))
	f.Add([]byte(`{"a":{"b":{"c":[{}]}},"":{"":1},"a#b":2,"a":7}`))
	f.Add([]byte(`[1,{"a":2}]`))
	shape := OfJSON(reflect.TypeFor[sensor]())
	f.Fuzz(func(t *testing.T, src []byte) {
		_ = Split(JSON, nil, src, func(string, []byte) {})
		if v, err := codec.JSON[sensor]().Decode(src); err == nil {
			payload, _ := codec.JSON[sensor]().Append(nil, v)
			got, err := codec.JSON[sensor]().Decode(joined(t, JSON, shape, payload))
			if err != nil || !reflect.DeepEqual(got, decoded(payload)) {
				t.Errorf("%s is %+v after splitting, %v", payload, got, err)
			}
		}
		v, err := codec.JSON[any]().Decode(src)
		if err != nil {
			return
		}
		got, err := codec.JSON[any]().Decode(joined(t, JSON, nil, src))
		if err != nil || !reflect.DeepEqual(got, withoutEmpty(v)) {
			t.Errorf("%s is %v after splitting, %v; want %v", src, got, err, withoutEmpty(v))
		}
	})
}

func decoded(payload []byte) sensor {
	v, _ := codec.JSON[sensor]().Decode(payload)
	return v
}

// withoutEmpty returns a value without empty objects, which have no fields.
func withoutEmpty(v any) any {
	var prune func(v any, depth int) bool
	prune = func(v any, depth int) bool {
		object, ok := v.(map[string]any)
		if !ok || depth > maxDepth {
			return false
		}
		for name, inner := range object {
			if depth < maxDepth && prune(inner, depth+1) {
				delete(object, name)
			}
		}
		return len(object) == 0 && depth > 0
	}
	prune(v, 0)
	return v
}

// FuzzProto: a message is the same after its fields were split and joined, except for messages without fields.
func FuzzProto(f *testing.F) {
	m := tank(f)
	for _, text := range []string{`level: 5 motor { rpm: 3 hot: 1 } list: 1 valve: 3`, `inlet { rpm: 2 } big { seconds: 4 } maybe: 0`, `map { key: "a" value: 1 }`} {
		v := empty(m)
		if err := prototext.Unmarshal([]byte(text), v); err != nil {
			f.Fatal(err)
		}
		f.Add(wire(f, v))
	}
	shape := OfMessage(m)
	f.Fuzz(func(t *testing.T, src []byte) {
		v := empty(m)
		if err := proto.Unmarshal(src, v); err != nil {
			_ = Split(Proto, shape, src, func(string, []byte) {})
			return
		}
		got := decode(t, m, joined(t, Proto, shape, src))
		v.ProtoReflect().SetUnknown(nil)
		for i := range m.Fields().Len() {
			if field := m.Fields().Get(i); field.Message() != nil && !field.IsMap() && v.ProtoReflect().Has(field) {
				inner := v.ProtoReflect().Mutable(field).Message()
				if field.Name() != "big" {
					inner.SetUnknown(nil)
				}
			}
		}
		if !bytes.Equal(wire(t, got), wire(t, v)) {
			t.Errorf("%q is %v after splitting, want %v", src, got, v)
		}
	})
}

// FuzzRecord: a record is the same after its fields were split and joined, and damage is no panic.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("\x03\x01ni\x05\x02okT\x04tempf\x40\x35\x80\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x02\x01as\x02hi\x01bu\xff\x01"))
	f.Fuzz(func(t *testing.T, src []byte) {
		_ = Split(Record, nil, src, func(string, []byte) {})
		if _, err := codec.Records().Decode(src); err != nil {
			return
		}
		if got := joined(t, Record, nil, src); !bytes.Equal(got, src) {
			t.Errorf("%q is %q after splitting", src, got)
		}
	})
}
