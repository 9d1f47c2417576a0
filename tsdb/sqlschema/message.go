package sqlschema

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func (m *merger) message(name string, have, want *descriptorpb.DescriptorProto) {
	for _, w := range want.GetField() {
		if i := m.find(name, have.Field, w); i < 0 {
			m.addField(have, want, w)
		} else {
			m.field(name, have.Field[i], w)
		}
	}
	m.messages(name, &have.NestedType, want.NestedType)
	m.enums(name, &have.EnumType, want.EnumType)
	m.extensions(name, &have.Extension, want.Extension)
	for _, w := range want.GetExtensionRange() {
		if !slices.ContainsFunc(have.ExtensionRange, func(h *descriptorpb.DescriptorProto_ExtensionRange) bool {
			return h.GetStart() <= w.GetStart() && w.GetEnd() <= h.GetEnd()
		}) {
			have.ExtensionRange, m.changed = withRange(have.ExtensionRange, w), true
			have.ReservedRange = nil
		}
	}
}

// withRange adds a range of extensions. It joins those that overlap, which a message must not have. The joined range has no options, because
// those of two ranges may contradict each other: they declare what may extend the message, and payloads do not depend on them.
func withRange(have []*descriptorpb.DescriptorProto_ExtensionRange, want *descriptorpb.DescriptorProto_ExtensionRange) []*descriptorpb.DescriptorProto_ExtensionRange {
	added := proto.CloneOf(want)
	have = slices.DeleteFunc(have, func(h *descriptorpb.DescriptorProto_ExtensionRange) bool {
		if h.GetEnd() <= added.GetStart() || added.GetEnd() <= h.GetStart() {
			return false
		}
		added = &descriptorpb.DescriptorProto_ExtensionRange{
			Start: proto.Int32(min(h.GetStart(), added.GetStart())), End: proto.Int32(max(h.GetEnd(), added.GetEnd())),
		}
		return true
	})
	return append(have, added)
}

// find returns the index of the field with the number, or -1. If another field has the name, that is a difference.
func (m *merger) find(message string, have []*descriptorpb.FieldDescriptorProto, want *descriptorpb.FieldDescriptorProto) int {
	at := slices.IndexFunc(have, func(h *descriptorpb.FieldDescriptorProto) bool { return h.GetNumber() == want.GetNumber() })
	if named := slices.IndexFunc(have, func(h *descriptorpb.FieldDescriptorProto) bool { return h.GetName() == want.GetName() }); named >= 0 && named != at {
		m.differ("field %s.%s: its number is %d in the bundle, and %d in this program", message, want.GetName(), have[named].GetNumber(), want.GetNumber())
		return named
	}
	return at
}

// field compares two fields of one number.
func (m *merger) field(scope string, have, want *descriptorpb.FieldDescriptorProto) {
	if have.GetNumber() != want.GetNumber() || proto.Equal(meaning(have), meaning(want)) {
		return
	}
	a, b := text(have), text(want)
	if a == b {
		m.differ("field %s.%s: its default value or its features differ between the bundle and this program", scope, want.GetName())
		return
	}
	m.differ("message %s, field %d: it is %s in the bundle, and %s in this program", scope, want.GetNumber(), a, b)
}

// meaning returns what a reader of payloads needs to know of a field.
func meaning(f *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
	out := &descriptorpb.FieldDescriptorProto{
		Name: f.Name, Extendee: f.Extendee, Type: f.Type, TypeName: f.TypeName, DefaultValue: f.DefaultValue,
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), // required fields are read as optional ones
	}
	if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
		out.Label = f.Label
	}
	if features := f.GetOptions().GetFeatures(); features != nil {
		out.Options = &descriptorpb.FieldOptions{Features: features}
	}
	return out
}

// text returns a field as in a .proto file, without its number.
func text(f *descriptorpb.FieldDescriptorProto) string {
	kind := strings.TrimPrefix(f.GetTypeName(), ".")
	if kind == "" {
		kind = strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
	}
	if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
		kind = "repeated " + kind
	}
	return kind + " " + f.GetName()
}

// addField adds a field of want to have, with the oneof that it is in.
func (m *merger) addField(have, want *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) {
	f = proto.CloneOf(f)
	if f.OneofIndex != nil && int(f.GetOneofIndex()) < len(want.OneofDecl) {
		oneof := want.OneofDecl[f.GetOneofIndex()]
		at := slices.IndexFunc(have.OneofDecl, func(h *descriptorpb.OneofDescriptorProto) bool { return h.GetName() == oneof.GetName() })
		if at < 0 {
			at = addOneof(have, oneof, f.GetProto3Optional())
		}
		f.OneofIndex = proto.Int32(int32(at))
	}
	at := len(have.Field)
	for i, h := range have.Field {
		if f.OneofIndex != nil && h.OneofIndex != nil && h.GetOneofIndex() == f.GetOneofIndex() {
			at = i + 1 // the fields of a oneof must follow each other
		}
	}
	have.Field, m.changed = slices.Insert(have.Field, at, f), true
	have.ReservedRange, have.ReservedName = nil, nil // they may refuse the field
}

// addOneof adds a oneof and returns its index. The oneofs of optional fields in proto3 must come after all others.
func addOneof(m *descriptorpb.DescriptorProto, oneof *descriptorpb.OneofDescriptorProto, optional bool) int {
	at := len(m.OneofDecl)
	if !optional {
		for _, f := range m.Field {
			if f.GetProto3Optional() && f.OneofIndex != nil {
				at = min(at, int(f.GetOneofIndex()))
			}
		}
	}
	for _, f := range m.Field {
		if f.OneofIndex != nil && int(f.GetOneofIndex()) >= at {
			f.OneofIndex = proto.Int32(f.GetOneofIndex() + 1)
		}
	}
	m.OneofDecl = slices.Insert(m.OneofDecl, at, proto.CloneOf(oneof))
	return at
}

// extensions adds fields that extend other messages.
func (m *merger) extensions(scope string, have *[]*descriptorpb.FieldDescriptorProto, want []*descriptorpb.FieldDescriptorProto) {
	for _, w := range want {
		i := slices.IndexFunc(*have, func(h *descriptorpb.FieldDescriptorProto) bool {
			return h.GetName() == w.GetName() || h.GetExtendee() == w.GetExtendee() && h.GetNumber() == w.GetNumber()
		})
		switch {
		case i < 0:
			*have, m.changed = append(*have, proto.CloneOf(w)), true
		case !proto.Equal(meaning((*have)[i]), meaning(w)) || (*have)[i].GetNumber() != w.GetNumber():
			m.differ("extension %s: it is %s in the bundle, and %s in this program", within(scope, w.GetName()), extension((*have)[i]), extension(w))
		}
	}
}

func extension(f *descriptorpb.FieldDescriptorProto) string {
	return fmt.Sprintf("%s = %d of %s", text(f), f.GetNumber(), strings.TrimPrefix(f.GetExtendee(), "."))
}
