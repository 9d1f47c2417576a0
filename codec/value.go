package codec

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"
)

// Kind is the type of a [Value]. Its zero value is [KindInvalid].
type Kind uint8

// The kinds of a [Value]. A [Record] stores the first five after KindInvalid. Fields of other payloads have the rest
// too, and a write of a record refuses them.
const (
	KindInvalid Kind = iota // the zero Value: nothing is there
	KindFloat
	KindInt
	KindUint
	KindStr
	KindBool
	KindNull  // null of JSON
	KindBytes // of a payload of bytes, or of protobuf
	KindTime  // a Timestamp of protobuf
	KindList  // a list, as JSON text
)

// String returns the kind's name, such as "float".
func (k Kind) String() string {
	names := [...]string{"invalid", "float", "int", "uint", "str", "bool", "null", "bytes", "time", "list"}
	if int(k) >= len(names) {
		return "kind " + strconv.Itoa(int(k))
	}
	return names[k]
}

// Value is one field of a [Record] or of another payload: a float, a signed or unsigned integer of 64 bits, text, a
// bool, and what else [Kind] lists. It keeps its kind. Two values are equal, by ==, if kind and bits are: a NaN equals
// itself, 0 does not equal -0, and Int(1) does not equal Uint(1). The zero Value is invalid: it says that there is no
// field.
//
// [Value.Number], [Value.Int], [Value.Text] and [Value.AsNumber] convert. Use them instead of a switch over kinds: a
// sender that writes 21.5 as a float often writes 21 as an integer.
//
// A Value is passed by value, and goroutines may share it. Only Bytes, Text of numbers and times, and ValueOf allocate.
type Value struct {
	str   string
	bits  uint64
	nanos uint32 // of a time, whose seconds are in bits
	kind  Kind
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

// Float returns the float of a [KindFloat] value; ok is false for an integer, and for every other kind. Use
// [Value.Number] for a number of any kind.
func (v Value) Float() (f float64, ok bool) {
	if v.kind != KindFloat {
		return 0, false
	}
	return math.Float64frombits(v.bits), true
}

// Str returns the text of a [KindStr] value; ok is false for every other kind.
func (v Value) Str() (s string, ok bool) {
	if v.kind != KindStr {
		return "", false
	}
	return v.str, true
}

// Bool returns the truth value of a [KindBool] value; ok is false for every other kind.
func (v Value) Bool() (b, ok bool) {
	return v.kind == KindBool && v.bits == 1, v.kind == KindBool
}

// Bytes returns a copy of the bytes of a [KindBytes] value; ok is false for every other kind.
func (v Value) Bytes() (b []byte, ok bool) {
	if v.kind != KindBytes {
		return nil, false
	}
	return []byte(v.str), true
}

// Time returns the time of a [KindTime] value in UTC; ok is false for every other kind.
func (v Value) Time() (t time.Time, ok bool) {
	if v.kind != KindTime {
		return time.Time{}, false
	}
	return time.Unix(int64(v.bits), int64(v.nanos)).UTC(), true
}

// String returns v in the syntax of line protocol, which shows the kind: 21.5, 40i, 40u, "open", true. It returns null
// as null, bytes in base64, a time as in RFC 3339, a list as JSON, and the zero Value as "invalid".
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
	case KindNull:
		return "null"
	case KindBytes:
		return base64.StdEncoding.EncodeToString([]byte(v.str))
	case KindTime:
		text, _ := v.Text()
		return text
	case KindList:
		return v.str
	default:
		return "invalid"
	}
}
