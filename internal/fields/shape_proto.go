package fields

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// OfMessage returns the shape of a protobuf message. Messages of package google.protobuf, groups, repeated fields and
// maps are one field each, and so is a message within itself.
func OfMessage(m protoreflect.MessageDescriptor) *Shape {
	return atMost(func(depth int) []Leaf {
		l := protoLister{depth: depth}
		l.message(m, place{})
		return l.leaves
	})
}

// atMost returns the shape of the deepest leaves that are not too many. A payload with still more is one field.
func atMost(leaves func(depth int) []Leaf) *Shape {
	for depth := maxDepth; depth > 0; depth /= 2 {
		if s := OfLeaves(leaves(depth)); s != nil {
			return s
		}
	}
	return OfLeaves([]Leaf{{}})
}

// place is where a field or a message is.
type place struct {
	path, names []string
	oneofs      []Oneof
}

func (p place) in(path, name string) place {
	p.path, p.names = append(slices.Clip(p.path), path), append(slices.Clip(p.names), name)
	return p
}

func (p place) leaf(kind string) Leaf {
	return Leaf{Path: strings.Join(p.path, "#"), Name: strings.Join(p.names, "."), Kind: kind, Oneofs: p.oneofs}
}

type protoLister struct {
	depth  int
	leaves []Leaf
	around []protoreflect.FullName
}

func (l *protoLister) message(m protoreflect.MessageDescriptor, at place) {
	l.around = append(l.around, m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		p := at.in(strconv.Itoa(int(f.Number())), string(f.Name()))
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			in := strings.Join(at.path, "#") + "/" + strconv.Itoa(o.Index())
			p.oneofs = append(slices.Clip(p.oneofs), Oneof{in, int32(f.Number())})
		}
		if l.inner(f) {
			l.message(f.Message(), p)
			continue
		}
		leaf := p.leaf(protoKind(f))
		leaf.Always, leaf.Wire = !f.HasPresence(), int8(WireOf(f))
		if len(l.leaves) <= MaxLeaves {
			l.leaves = append(l.leaves, leaf)
		}
	}
	l.around = l.around[:len(l.around)-1]
}

// inner reports whether the fields of a field's message are leaves of their own.
func (l *protoLister) inner(f protoreflect.FieldDescriptor) bool {
	m := f.Message()
	return m != nil && f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() && m.Fields().Len() > 0 &&
		m.ParentFile().Package() != "google.protobuf" && len(l.around) < l.depth && len(l.leaves) <= MaxLeaves &&
		!slices.Contains(l.around, m.FullName())
}

// WireOf returns the wire type of a single value of a field.
func WireOf(f protoreflect.FieldDescriptor) protowire.Type {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	}
	return protowire.VarintType
}

func protoKind(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsList():
		return "list"
	case f.IsMap():
		return ""
	case f.Message() != nil && f.Message().FullName() == "google.protobuf.Timestamp":
		return "time"
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return "bool"
	case protoreflect.EnumKind, protoreflect.StringKind:
		return "str"
	case protoreflect.BytesKind:
		return "bytes"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "float"
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return "uint"
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return ""
	}
	return "int"
}
