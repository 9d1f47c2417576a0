package dynamic

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoPath leads to a number or a bool of a message. The steps before the last one are messages.
type protoPath []protoStep

type protoStep struct {
	number   protowire.Number
	wire     protowire.Type
	kind     protoreflect.Kind
	presence bool // the message says whether the field is set
	// others are the other fields of the same oneof: if one of them comes, the field is no longer set.
	others map[protowire.Number]protowire.Type
}

// wireTypes are the wire types of single values. Text, bytes and enums are no numbers.
var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.BoolKind: protowire.VarintType, protoreflect.Int32Kind: protowire.VarintType, protoreflect.Int64Kind: protowire.VarintType,
	protoreflect.Uint32Kind: protowire.VarintType, protoreflect.Uint64Kind: protowire.VarintType,
	protoreflect.Sint32Kind: protowire.VarintType, protoreflect.Sint64Kind: protowire.VarintType, protoreflect.EnumKind: protowire.VarintType,
	protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
	protoreflect.MessageKind: protowire.BytesType, protoreflect.GroupKind: protowire.StartGroupType,
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType,
}

// pathIn returns the path to the number with these names in a message, or nil if there is none.
func pathIn(m protoreflect.MessageDescriptor, names []string) (path protoPath) {
	for i, name := range names {
		if m == nil {
			return nil
		}
		f := m.Fields().ByName(protoreflect.Name(name))
		if f == nil || f.IsList() || f.IsMap() {
			return nil
		}
		step := protoStep{number: f.Number(), wire: wireTypes[f.Kind()], kind: f.Kind(), presence: f.HasPresence()}
		if one := f.ContainingOneof(); one != nil {
			step.others = map[protowire.Number]protowire.Type{}
			for i := range one.Fields().Len() {
				if other := one.Fields().Get(i); other.Number() != step.number {
					step.others[other.Number()] = wireTypes[other.Kind()]
				}
			}
		}
		path = append(path, step)
		m = f.Message()
		last := i == len(names)-1
		switch f.Kind() {
		case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.EnumKind:
			return nil
		case protoreflect.MessageKind, protoreflect.GroupKind:
			if last {
				return nil
			}
		}
	}
	return path
}

// protoFound is what a path has led to so far.
type protoFound struct {
	depth int // how many of the path's messages exist
	set   bool
	x     float64
}

// number returns the number in a message.
func (p protoPath) number(src []byte) (x float64, ok bool, err error) {
	if len(p) == 0 {
		return 0, false, nil
	}
	var found protoFound
	if err := p.walk(src, 0, &found); err != nil {
		return 0, false, err
	}
	last := len(p) - 1
	return found.x, found.set || found.depth == last && !p[last].presence, nil
}

// walk reads the fields of the message at a depth. Of several fields with one number the last one counts; messages are merged.
func (p protoPath) walk(src []byte, depth int, found *protoFound) error {
	step := &p[depth]
	for len(src) > 0 {
		number, wire, n := protowire.ConsumeTag(src)
		if n < 0 {
			return protowire.ParseError(n)
		}
		src = src[n:]
		if n = protowire.ConsumeFieldValue(number, wire, src); n < 0 {
			return protowire.ParseError(n)
		}
		value := src[:n]
		src = src[n:]
		if other, isOther := step.others[number]; isOther && other == wire {
			*found = protoFound{depth: min(found.depth, depth)}
		}
		if number != step.number || wire != step.wire {
			continue
		}
		if depth == len(p)-1 {
			found.set, found.x = true, scalar(step.kind, value)
			continue
		}
		inner := value
		if step.kind == protoreflect.GroupKind {
			inner, _ = protowire.ConsumeGroup(number, value)
		} else {
			inner, _ = protowire.ConsumeBytes(value)
		}
		found.depth = max(found.depth, depth+1)
		if err := p.walk(inner, depth+1, found); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns a number or a bool of the wire type of its kind.
func scalar(kind protoreflect.Kind, value []byte) float64 {
	var u uint64
	switch wireTypes[kind] {
	case protowire.VarintType:
		u, _ = protowire.ConsumeVarint(value)
	case protowire.Fixed32Type:
		short, _ := protowire.ConsumeFixed32(value)
		u = uint64(short)
	default:
		u, _ = protowire.ConsumeFixed64(value)
	}
	switch kind {
	case protoreflect.BoolKind:
		if u != 0 {
			return 1
		}
		return 0
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return float64(int32(u))
	case protoreflect.Sint32Kind:
		return float64(int32(protowire.DecodeZigZag(u & math.MaxUint32)))
	case protoreflect.Sint64Kind:
		return float64(protowire.DecodeZigZag(u))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return float64(uint32(u))
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return float64(int64(u))
	case protoreflect.FloatKind:
		return float64(math.Float32frombits(uint32(u)))
	case protoreflect.DoubleKind:
		return math.Float64frombits(u)
	}
	return float64(u)
}
