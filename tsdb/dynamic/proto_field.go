package dynamic

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
)

// protoPath leads to a single value of a message. The steps before the last one are messages.
type protoPath struct {
	steps []protoStep // none if there is no such field
	// decoded says that the whole message is decoded for the field, which is a list or in a map of messages.
	decoded bool
}

type protoStep struct {
	number   protowire.Number
	wire     protowire.Type
	of       protoreflect.FieldDescriptor // of a map, its value
	presence bool                         // the message says whether the field is set
	known    known                        // of the last step: instant or duration
	key      *mapKey                      // of the last step: the value is in a map
	// others are the other fields of the same oneof: if one of them comes, the field is no longer set.
	others map[protowire.Number]protowire.Type
}

// mapKey is the key of an entry of a map.
type mapKey struct {
	of   protoreflect.FieldDescriptor
	text string
}

// pathIn returns the path to the field with a name in a message.
func pathIn(m protoreflect.MessageDescriptor, name string) (path protoPath) {
	for {
		part, rest, more := strings.Cut(name, ".")
		f := m.Fields().ByName(protoreflect.Name(part))
		switch {
		case f == nil:
			return protoPath{}
		case f.IsList() || f.IsMap() && f.MapValue().Message() != nil:
			return protoPath{decoded: f.IsMap() || !more}
		case f.IsMap():
			if !more {
				return protoPath{}
			}
			step := protoStep{number: f.Number(), wire: protowire.BytesType, of: f.MapValue(), presence: true, key: &mapKey{f.MapKey(), rest}}
			return protoPath{steps: append(path.steps, step)}
		}
		step := stepTo(f)
		path.steps = append(path.steps, step)
		switch m = f.Message(); {
		case m == nil && more:
			return protoPath{}
		case m == nil:
			return path
		}
		step.known = wellKnown(m)
		switch {
		case step.known == ordinary && more:
			name = rest
			continue
		case more || step.known == ordinary:
			return protoPath{}
		case step.known == wrapper:
			path.steps = append(path.steps, stepTo(m.Fields().ByNumber(1)))
		default:
			path.steps[len(path.steps)-1].known = step.known
		}
		return path
	}
}

func stepTo(f protoreflect.FieldDescriptor) protoStep {
	step := protoStep{number: f.Number(), wire: fields.WireOf(f), of: f, presence: f.HasPresence()}
	if one := f.ContainingOneof(); one != nil {
		step.others = map[protowire.Number]protowire.Type{}
		for i := range one.Fields().Len() {
			if other := one.Fields().Get(i); other.Number() != step.number {
				step.others[other.Number()] = fields.WireOf(other)
			}
		}
	}
	return step
}

// protoFound is what a path has led to so far.
type protoFound struct {
	depth int // how many of the path's messages exist
	set   bool
	raw   rawValue
}

// rawValue is a single value as it is on the wire. The zero rawValue is the default of a field.
type rawValue struct {
	bits  uint64
	text  []byte
	nanos int64 // of a message of seconds, which are the bits
}

// value returns the value in a message. Enums are their numbers if those are asked for.
func (p protoPath) value(src []byte, numbers bool) (v codec.Value, err error) {
	if len(p.steps) == 0 {
		return v, nil
	}
	var found protoFound
	if err := p.walk(src, 0, &found); err != nil {
		return v, err
	}
	last := &p.steps[len(p.steps)-1]
	if !found.set && (found.depth < len(p.steps)-1 || last.presence) {
		return v, nil
	}
	if last.known != ordinary {
		return secondsValue(last.known, int64(found.raw.bits), found.raw.nanos), nil
	}
	return found.raw.value(last.of, numbers)
}

// walk reads the fields of the message at a depth. Of several fields with one number the last one counts; messages are
// merged.
func (p protoPath) walk(src []byte, depth int, found *protoFound) error {
	step := &p.steps[depth]
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
		if depth == len(p.steps)-1 {
			if err := step.take(value, found); err != nil {
				return err
			}
			continue
		}
		found.depth = max(found.depth, depth+1)
		if err := p.walk(step.inside(value), depth+1, found); err != nil {
			return err
		}
	}
	return nil
}

// inside returns the fields of the message of a step.
func (s *protoStep) inside(value []byte) (inner []byte) {
	if s.of.Kind() == protoreflect.GroupKind {
		inner, _ = protowire.ConsumeGroup(s.number, value)
	} else {
		inner, _ = protowire.ConsumeBytes(value)
	}
	return inner
}

// take takes the value of the last step.
func (s *protoStep) take(value []byte, found *protoFound) error {
	switch {
	case s.key != nil:
		entry, _ := protowire.ConsumeBytes(value)
		raw, is, err := s.key.entry(entry, s.of)
		if is {
			found.set, found.raw = true, raw
		}
		return err
	case s.known != ordinary:
		found.set = true
		return eachScalar(s.inside(value), func(number protowire.Number, raw rawValue) {
			if number == 1 {
				found.raw.bits = raw.bits
			} else {
				found.raw.nanos = int64(int32(raw.bits))
			}
		}, s.of.Message().Fields().ByNumber(1), s.of.Message().Fields().ByNumber(2))
	}
	found.set, found.raw = true, rawOf(s.wire, value)
	return nil
}

// entry returns the value of an entry of a map, and whether its key is k.
func (k *mapKey) entry(src []byte, value protoreflect.FieldDescriptor) (of rawValue, is bool, err error) {
	var key rawValue
	err = eachScalar(src, func(number protowire.Number, raw rawValue) {
		if number == k.of.Number() {
			key = raw
		} else {
			of = raw
		}
	}, k.of, value)
	if err != nil {
		return of, false, err
	}
	if k.of.Kind() == protoreflect.StringKind {
		return of, string(key.text) == k.text, nil
	}
	v, err := key.value(k.of, false)
	if on, isBool := v.Bool(); isBool {
		return of, strconv.FormatBool(on) == k.text, err
	}
	var room [20]byte
	digits := room[:0]
	if u, unsigned := v.Uint(); unsigned {
		digits = strconv.AppendUint(digits, u, 10)
	} else {
		i, _ := v.Int()
		digits = strconv.AppendInt(digits, i, 10)
	}
	return of, string(digits) == k.text, err
}

// eachScalar calls do for each of some fields in a message.
func eachScalar(src []byte, do func(protowire.Number, rawValue), of ...protoreflect.FieldDescriptor) error {
	for len(src) > 0 {
		number, wire, n := protowire.ConsumeTag(src)
		if n < 0 {
			return protowire.ParseError(n)
		}
		src = src[n:]
		if n = protowire.ConsumeFieldValue(number, wire, src); n < 0 {
			return protowire.ParseError(n)
		}
		if slices.ContainsFunc(of, func(f protoreflect.FieldDescriptor) bool { return f.Number() == number && fields.WireOf(f) == wire }) {
			do(number, rawOf(wire, src[:n]))
		}
		src = src[n:]
	}
	return nil
}

// rawOf returns a value of a wire type.
func rawOf(wire protowire.Type, value []byte) (raw rawValue) {
	switch wire {
	case protowire.VarintType:
		raw.bits, _ = protowire.ConsumeVarint(value)
	case protowire.Fixed32Type:
		short, _ := protowire.ConsumeFixed32(value)
		raw.bits = uint64(short)
	case protowire.Fixed64Type:
		raw.bits, _ = protowire.ConsumeFixed64(value)
	case protowire.BytesType:
		raw.text, _ = protowire.ConsumeBytes(value)
	}
	return raw
}

var errNotUTF8 = errors.New("text is not valid UTF-8")

// value returns the value of a field of a kind.
func (r rawValue) value(f protoreflect.FieldDescriptor, numbers bool) (codec.Value, error) {
	u := r.bits
	switch f.Kind() {
	case protoreflect.BoolKind:
		return codec.Bool(u != 0), nil
	case protoreflect.EnumKind:
		return enumValue(f, protoreflect.EnumNumber(int32(u)), numbers), nil
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return codec.Int(int64(int32(u))), nil
	case protoreflect.Sint32Kind:
		return codec.Int(int64(int32(protowire.DecodeZigZag(u & math.MaxUint32)))), nil
	case protoreflect.Sint64Kind:
		return codec.Int(protowire.DecodeZigZag(u)), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return codec.Uint(uint64(uint32(u))), nil
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return codec.Int(int64(u)), nil
	case protoreflect.FloatKind:
		return codec.Float(float64(math.Float32frombits(uint32(u)))), nil
	case protoreflect.DoubleKind:
		return codec.Float(math.Float64frombits(u)), nil
	case protoreflect.StringKind:
		if f.Syntax() != protoreflect.Proto2 && !utf8.Valid(r.text) {
			return codec.Value{}, errNotUTF8
		}
		return codec.Str(string(r.text)), nil
	case protoreflect.BytesKind:
		return codec.ValueOf(r.text), nil
	}
	return codec.Uint(u), nil
}
