package sqlschema

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// merge returns the stored files with what they lack of the declared ones. It does not change its arguments.
func merge(stored, declared *descriptorpb.FileDescriptorSet) (_ *descriptorpb.FileDescriptorSet, changed bool, differences []string) {
	out := proto.CloneOf(stored)
	var m merger
	for _, want := range declared.GetFile() {
		i := slices.IndexFunc(out.File, func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == want.GetName() })
		if i < 0 {
			out.File, m.changed = append(out.File, proto.CloneOf(want)), true
		} else {
			m.file(out.File[i], want)
		}
	}
	if len(m.differences) > 0 || !m.changed {
		return out, false, m.differences
	}
	out.File = inOrder(out.File)
	// What is left: names that two files define, or a number that is a field in one message and in an extension of it elsewhere.
	if _, err := protodesc.NewFiles(out); err != nil {
		return out, false, []string{fmt.Sprintf("its descriptors and those of this program do not fit together: %v", err)}
	}
	return out, true, nil
}

// merger adds what is missing, and collects what cannot be added.
type merger struct {
	changed     bool
	differences []string
}

func (m *merger) differ(format string, args ...any) {
	m.differences = append(m.differences, fmt.Sprintf(format, args...))
}

func (m *merger) file(have, want *descriptorpb.FileDescriptorProto) {
	if have.GetPackage() != want.GetPackage() {
		m.differ("file %s: its package is %q in the bundle, and %q in this program", want.GetName(), have.GetPackage(), want.GetPackage())
		return
	}
	if a, b := syntax(have), syntax(want); a != b {
		m.differ("file %s: its syntax is %s in the bundle, and %s in this program", want.GetName(), a, b)
		return
	}
	if encoding(have) != encoding(want) {
		m.differ("file %s: its features message_encoding or enum_type differ between the bundle and this program", want.GetName())
		return
	}
	m.imports(have, want)
	scope := want.GetPackage()
	m.messages(scope, &have.MessageType, want.MessageType)
	m.enums(scope, &have.EnumType, want.EnumType)
	m.extensions(scope, &have.Extension, want.Extension)
}

func syntax(f *descriptorpb.FileDescriptorProto) string {
	switch f.GetSyntax() {
	case "":
		return "proto2"
	case "editions":
		return f.GetEdition().String()
	}
	return f.GetSyntax()
}

// encoding returns the defaults of a file of an edition that change how payloads are read: what the bundle lacks would get those of
// its own file. The zero value is the default of the edition.
func encoding(f *descriptorpb.FileDescriptorProto) [2]bool {
	features := f.GetOptions().GetFeatures()
	return [2]bool{
		features.GetMessageEncoding() == descriptorpb.FeatureSet_DELIMITED,
		features.GetEnumType() == descriptorpb.FeatureSet_CLOSED,
	}
}

// imports adds imports, and makes those public that are.
func (m *merger) imports(have, want *descriptorpb.FileDescriptorProto) {
	for i, path := range want.GetDependency() {
		at := slices.Index(have.Dependency, path)
		if at < 0 {
			at = len(have.Dependency)
			have.Dependency, m.changed = append(have.Dependency, path), true
		}
		if slices.Contains(want.PublicDependency, int32(i)) && !slices.Contains(have.PublicDependency, int32(at)) {
			have.PublicDependency, m.changed = append(have.PublicDependency, int32(at)), true
		}
	}
}

// within joins a name to that of what it is in.
func within(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

func (m *merger) messages(scope string, have *[]*descriptorpb.DescriptorProto, want []*descriptorpb.DescriptorProto) {
	for _, w := range want {
		i := slices.IndexFunc(*have, func(h *descriptorpb.DescriptorProto) bool { return h.GetName() == w.GetName() })
		if i < 0 {
			*have, m.changed = append(*have, proto.CloneOf(w)), true
		} else {
			m.message(within(scope, w.GetName()), (*have)[i], w)
		}
	}
}

func (m *merger) enums(scope string, have *[]*descriptorpb.EnumDescriptorProto, want []*descriptorpb.EnumDescriptorProto) {
	for _, w := range want {
		i := slices.IndexFunc(*have, func(h *descriptorpb.EnumDescriptorProto) bool { return h.GetName() == w.GetName() })
		if i < 0 {
			*have, m.changed = append(*have, proto.CloneOf(w)), true
		} else {
			m.enum(within(scope, w.GetName()), (*have)[i], w)
		}
	}
}

func (m *merger) enum(name string, have, want *descriptorpb.EnumDescriptorProto) {
	for _, w := range want.GetValue() {
		named := slices.IndexFunc(have.Value, func(h *descriptorpb.EnumValueDescriptorProto) bool { return h.GetName() == w.GetName() })
		numbered := slices.IndexFunc(have.Value, func(h *descriptorpb.EnumValueDescriptorProto) bool { return h.GetNumber() == w.GetNumber() })
		switch {
		case named >= 0 && have.Value[named].GetNumber() != w.GetNumber():
			m.differ("enum %s: %s is %d in the bundle, and %d in this program", name, w.GetName(), have.Value[named].GetNumber(), w.GetNumber())
		case named >= 0:
		case numbered >= 0 && !want.GetOptions().GetAllowAlias():
			m.differ("enum %s: %d is %s in the bundle, and %s in this program", name, w.GetNumber(), have.Value[numbered].GetName(), w.GetName())
		default:
			have.Value, m.changed = append(have.Value, proto.CloneOf(w)), true
			have.ReservedRange, have.ReservedName = nil, nil
			if numbered >= 0 {
				if have.Options == nil {
					have.Options = new(descriptorpb.EnumOptions)
				}
				have.Options.AllowAlias = proto.Bool(true)
			}
		}
	}
}
