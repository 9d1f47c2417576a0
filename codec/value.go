package codec

import (
	"math"
	"strconv"
)

// Kind is the type of a [Value]: KindFloat, KindInt, KindUint, KindStr or KindBool. Its zero value is [KindInvalid].
type Kind uint8

// The kinds of a [Value].
const (
	KindInvalid Kind = iota // the zero Value, which is empty and cannot be stored
	KindFloat
	KindInt
	KindUint
	KindStr
	KindBool
)

// String returns the kind's name, such as "float".
func (k Kind) String() string {
	names := [...]string{"invalid", "float", "int", "uint", "str", "bool"}
	if int(k) >= len(names) {
		return "kind " + strconv.Itoa(int(k))
	}
	return names[k]
}

// Value is one field of a [Record]: a float, a signed or unsigned integer of 64 bits, text or a bool. It keeps its
// kind. Two values are equal, by ==, if kind and bits are: a NaN equals itself, 0 does not equal -0, and Int(1) does
// not equal Uint(1). The zero Value is invalid: it is empty and cannot be stored.
//
// A Value is passed by value, allocates nothing, and goroutines may share it.
type Value struct {
	str  string
	bits uint64
	kind Kind
}

// Float returns a value of [KindFloat]. NaN and the infinities are valid.
func Float(v float64) Value { return Value{kind: KindFloat, bits: math.Float64bits(v)} }

// Int returns a value of [KindInt].
func Int(v int64) Value { return Value{kind: KindInt, bits: uint64(v)} }

// Uint returns a value of [KindUint].
func Uint(v uint64) Value { return Value{kind: KindUint, bits: v} }

// Str returns a value of [KindStr]. Text that is not valid UTF-8 is rejected when the value is stored.
func Str(v string) Value { return Value{kind: KindStr, str: v} }

// Bool returns a value of [KindBool].
func Bool(v bool) Value {
	if v {
		return Value{kind: KindBool, bits: 1}
	}
	return Value{kind: KindBool}
}

// Kind returns the kind of v.
func (v Value) Kind() Kind { return v.kind }

// Float returns the float of a [KindFloat] value; ok is false for every other kind.
func (v Value) Float() (f float64, ok bool) {
	if v.kind != KindFloat {
		return 0, false
	}
	return math.Float64frombits(v.bits), true
}

// Int returns the integer of a [KindInt] value; ok is false for every other kind.
func (v Value) Int() (i int64, ok bool) {
	if v.kind != KindInt {
		return 0, false
	}
	return int64(v.bits), true
}

// Uint returns the integer of a [KindUint] value; ok is false for every other kind.
func (v Value) Uint() (u uint64, ok bool) {
	if v.kind != KindUint {
		return 0, false
	}
	return v.bits, true
}

// Str returns the text of a [KindStr] value; ok is false for every other kind.
func (v Value) Str() (s string, ok bool) {
	return v.str, v.kind == KindStr
}

// Bool returns the truth value of a [KindBool] value; ok is false for every other kind.
func (v Value) Bool() (b, ok bool) {
	return v.kind == KindBool && v.bits == 1, v.kind == KindBool
}

// Number returns a float or an integer as a float64, for arithmetic over fields of all number kinds. ok is false for
// text, bools and the zero Value. An integer above 2^53 is rounded to the nearest float64.
func (v Value) Number() (f float64, ok bool) {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits), true
	case KindInt:
		return float64(int64(v.bits)), true
	case KindUint:
		return float64(v.bits), true
	default:
		return 0, false
	}
}

// String returns v in the syntax of line protocol, which shows the kind: 21.5, 40i, 40u, "open", true. The zero Value
// is "invalid".
func (v Value) String() string {
	switch v.kind {
	case KindFloat:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	case KindInt:
		return strconv.FormatInt(int64(v.bits), 10) + "i"
	case KindUint:
		return strconv.FormatUint(v.bits, 10) + "u"
	case KindStr:
		return strconv.Quote(v.str)
	case KindBool:
		return strconv.FormatBool(v.bits == 1)
	default:
		return "invalid"
	}
}
