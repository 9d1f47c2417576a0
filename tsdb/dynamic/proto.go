package dynamic

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// tags checks the options.
func (o Options) tags() (tags, error) {
	t := tags{decoders: maps.Clone(o.Decoders)} // the caller may change its own
	for _, tag := range slices.Sorted(maps.Keys(o.Decoders)) {
		if err := codec.CheckTag(tag); err != nil {
			return tags{}, fmt.Errorf("dynamic: Decoders: %w", err)
		}
	}
	if len(o.Messages) == 0 {
		return t, nil
	}
	set := o.Descriptors
	if set == nil {
		set = &descriptorpb.FileDescriptorSet{}
	}
	if i := slices.Index(set.File, nil); i >= 0 {
		return tags{}, invalid.New(ErrInvalid, fmt.Sprintf("Descriptors.File[%d]", i), "nil", "a file")
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return tags{}, invalid.New(ErrInvalid, "Descriptors", invalid.Quote(err.Error()), "files with all that they import, as protoc --include_imports writes them")
	}
	t.messages = make(map[string]*message, len(o.Messages))
	for _, tag := range slices.Sorted(maps.Keys(o.Messages)) {
		if err := codec.CheckTag(tag); err != nil {
			return tags{}, fmt.Errorf("dynamic: Messages: %w", err)
		}
		found, _ := files.FindDescriptorByName(protoreflect.FullName(o.Messages[tag]))
		of, ok := found.(protoreflect.MessageDescriptor)
		if !ok {
			return tags{}, invalid.New(ErrInvalid, "Messages of tag "+tag, invalid.Quote(o.Messages[tag]), "the full name of a message in Descriptors")
		}
		t.messages[tag] = &message{of}
	}
	return t, nil
}

// message is the type of protobuf payloads.
type message struct {
	of protoreflect.MessageDescriptor
}

func (m *message) decode(src []byte) (any, error) {
	v := dynamicpb.NewMessage(m.of)
	if err := proto.Unmarshal(src, v); err != nil {
		return nil, err
	}
	return fieldsOf(v), nil
}

// fieldsOf returns the fields of a message by name.
func fieldsOf(m protoreflect.Message) map[string]any {
	fields := m.Descriptor().Fields()
	out := make(map[string]any, fields.Len())
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		v := m.Get(f)
		switch {
		case f.IsList():
			list := make([]any, v.List().Len())
			for i := range list {
				list[i] = valueOf(f, v.List().Get(i))
			}
			out[string(f.Name())] = list
		case f.IsMap():
			entries := make(map[string]any, v.Map().Len())
			for key, of := range v.Map().Range {
				entries[key.String()] = valueOf(f.MapValue(), of)
			}
			out[string(f.Name())] = entries
		default:
			out[string(f.Name())] = valueOf(f, v)
		}
	}
	return out
}

// valueOf returns a single value of a field.
func valueOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return fieldsOf(v.Message())
	case protoreflect.EnumKind:
		if of := f.Enum().Values().ByNumber(v.Enum()); of != nil {
			return string(of.Name())
		}
		return int64(v.Enum())
	}
	switch v := v.Interface().(type) {
	case int32:
		return int64(v)
	case uint32:
		return uint64(v)
	case float32:
		return float64(v)
	case []byte:
		return slices.Clone(v)
	default:
		return v // bool, int64, uint64, float64, string
	}
}
