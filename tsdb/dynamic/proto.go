package dynamic

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// tags checks the options.
func (o Options) tags() (tags, error) {
	t := tags{decoders: make(map[string]decodeFunc, len(o.Decoders))}
	for _, tag := range slices.Sorted(maps.Keys(o.Decoders)) {
		if err := codecerr.CheckTag(tag); err != nil {
			return tags{}, fmt.Errorf("dynamic: Decoders: %w", err)
		}
		if decode := o.Decoders[tag]; decode != nil {
			t.decoders[tag] = func(src []byte) (codec.Record, error) {
				v, err := decode(src)
				if err != nil {
					return codec.Record{}, err
				}
				return fieldsOf(v)
			}
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
		return tags{}, invalid.New(tsdb.ErrInvalid, fmt.Sprintf("Descriptors.File[%d]", i), "nil", "a file")
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return tags{}, invalid.New(tsdb.ErrInvalid, "Descriptors", invalid.Quote(err.Error()), "files with all that they import, as protoc --include_imports writes them")
	}
	t.messages = make(map[string]*message, len(o.Messages))
	for _, tag := range slices.Sorted(maps.Keys(o.Messages)) {
		if err := codecerr.CheckTag(tag); err != nil {
			return tags{}, fmt.Errorf("dynamic: Messages: %w", err)
		}
		found, _ := files.FindDescriptorByName(protoreflect.FullName(o.Messages[tag]))
		of, ok := found.(protoreflect.MessageDescriptor)
		if !ok {
			return tags{}, invalid.New(tsdb.ErrInvalid, "Messages of tag "+tag, invalid.Quote(o.Messages[tag]), "the full name of a message in Descriptors")
		}
		t.messages[tag] = &message{of}
	}
	return t, nil
}

// message is the type of protobuf payloads.
type message struct {
	of protoreflect.MessageDescriptor
}

// fields returns the fields of a message. Enums are their numbers if those are asked for.
func (m *message) fields(src []byte, numbers bool) (codec.Record, error) {
	v := dynamicpb.NewMessage(m.of)
	if err := proto.Unmarshal(src, v); err != nil {
		return codec.Record{}, err
	}
	l := protoLister{numbers: numbers}
	l.message(v)
	return codec.NewRecord(l.fields...), nil
}

// protoLister lists the fields of a message.
type protoLister struct {
	lister
	numbers bool // enums are their numbers
}

func (l *protoLister) message(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		if !l.enter(string(f.Name())) {
			return
		}
		v := m.Get(f)
		switch {
		case f.IsList():
			list := make([]any, v.List().Len())
			for i := range list {
				list[i] = l.plain(f, v.List().Get(i))
			}
			l.add(codec.ValueOf(list))
		case f.IsMap():
			entries := make(map[string]protoreflect.Value, v.Map().Len())
			for key, of := range v.Map().Range {
				entries[key.String()] = of
			}
			for _, key := range byLength(entries) {
				if !l.enter(key) {
					break
				}
				l.single(f.MapValue(), entries[key])
				l.leave()
			}
		default:
			l.single(f, v)
		}
		l.leave()
	}
}

// single adds a single value of a field, or the fields of a message.
func (l *protoLister) single(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	if m := f.Message(); m != nil && wellKnown(m) == ordinary {
		l.message(v.Message())
		return
	}
	l.add(codec.ValueOf(l.plain(f, v)))
}

// plain returns a single value of a field as codec.ValueOf takes it.
func (l *protoLister) plain(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return l.plainMessage(v.Message())
	case protoreflect.EnumKind:
		return enumValue(f, v.Enum(), l.numbers)
	}
	return v.Interface()
}

// plainMessage returns a message of a list, or one that is a single value.
func (l *protoLister) plainMessage(m protoreflect.Message) any {
	of := m.Descriptor()
	switch wellKnown(of) {
	case instant, duration:
		seconds, nanos := of.Fields().ByNumber(1), of.Fields().ByNumber(2)
		return secondsValue(wellKnown(of), m.Get(seconds).Int(), m.Get(nanos).Int())
	case wrapper:
		value := of.Fields().ByNumber(1)
		return l.plain(value, m.Get(value))
	}
	inner := protoLister{numbers: l.numbers}
	inner.message(m)
	fields := make(map[string]any, len(inner.fields))
	for _, f := range inner.fields {
		fields[f.Name] = f.Value
	}
	return fields
}

// enumValue returns the name of an enum's number, or the number if it has none or is asked for.
func enumValue(f protoreflect.FieldDescriptor, n protoreflect.EnumNumber, number bool) codec.Value {
	if of := f.Enum().Values().ByNumber(n); of != nil && !number {
		return codec.Str(string(of.Name()))
	}
	return codec.Int(int64(n))
}

// known says how a message is read.
type known uint8

const (
	ordinary known = iota // as its fields
	instant
	duration
	wrapper
)

// wellKnown returns how a message is read by its name.
func wellKnown(m protoreflect.MessageDescriptor) known {
	if m.ParentFile().Package() != "google.protobuf" {
		return ordinary
	}
	has := func(number protoreflect.FieldNumber, kinds ...protoreflect.Kind) bool {
		f := m.Fields().ByNumber(number)
		return f != nil && !f.IsList() && !f.IsMap() && slices.Contains(kinds, f.Kind())
	}
	switch m.Name() {
	case "Timestamp", "Duration":
		switch {
		case !has(1, protoreflect.Int64Kind) || !has(2, protoreflect.Int32Kind):
		case m.Name() == "Timestamp":
			return instant
		default:
			return duration
		}
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		if f := m.Fields().ByNumber(1); f != nil && !f.IsList() && !f.IsMap() && f.Message() == nil {
			return wrapper
		}
	}
	return ordinary
}

// secondsValue returns a time, or a duration as a number of seconds.
func secondsValue(as known, seconds, nanos int64) codec.Value {
	v := codec.ValueOf(time.Unix(seconds, nanos))
	if as == duration {
		return v.AsNumber()
	}
	return v
}
