package codec

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number returns a number of any kind as a float64: a float, an integer, or the seconds of a time since 1970. ok is
// false for all else, also for text and bools: see [Value.AsNumber]. An integer above 2^53 is rounded to the nearest
// float64.
func (v Value) Number() (f float64, ok bool) {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits), true
	case KindInt:
		return float64(int64(v.bits)), true
	case KindUint:
		return float64(v.bits), true
	case KindTime:
		return seconds(int64(v.bits), v.nanos).Number()
	default:
		return 0, false
	}
}

// Int returns a whole number of any kind: an integer, or a float without a fraction. ok is false if the number does not
// fit an int64, and for all else.
func (v Value) Int() (i int64, ok bool) {
	switch v.kind {
	case KindInt:
		return int64(v.bits), true
	case KindUint:
		if v.bits <= math.MaxInt64 {
			return int64(v.bits), true
		}
	case KindFloat:
		f := math.Float64frombits(v.bits)
		if f < -1<<63 || f >= 1<<63 || f != math.Trunc(f) {
			return 0, false
		}
		return int64(f), true
	}
	return 0, false
}

// Uint is [Value.Int] for a uint64.
func (v Value) Uint() (u uint64, ok bool) {
	if v.kind == KindUint {
		return v.bits, true
	}
	if f, isFloat := v.Float(); isFloat && f >= 1<<63 && f < 1<<64 {
		return uint64(f), true
	}
	i, ok := v.Int()
	if !ok || i < 0 {
		return 0, false
	}
	return uint64(i), true
}

// Text returns the value as plain text, for the name of a state, a part of a key, a label or a cell: text as it is, the
// digits of a number, true or false, and a time as in RFC 3339. Equal numbers have one text: 7, 7.0 and 7e0 are "7",
// and -0.0 is "0". A float has an exponent below 1e-6 and from 1e21 on, as in JSON. ok is false for null, bytes, a list
// and the zero Value.
func (v Value) Text() (text string, ok bool) {
	switch v.kind {
	case KindStr:
		return v.str, true
	case KindInt:
		return strconv.FormatInt(int64(v.bits), 10), true
	case KindUint:
		return strconv.FormatUint(v.bits, 10), true
	case KindBool:
		return strconv.FormatBool(v.bits == 1), true
	case KindTime:
		t, _ := v.Time()
		return t.Format(time.RFC3339Nano), true
	case KindFloat:
		if i, whole := v.Int(); whole {
			return strconv.FormatInt(i, 10), true
		}
		if u, whole := v.Uint(); whole {
			return strconv.FormatUint(u, 10), true
		}
		f := math.Float64frombits(v.bits)
		format := byte('f')
		if x := math.Abs(f); x < 1e-6 || x >= 1e21 {
			format = 'e'
		}
		text = strconv.FormatFloat(f, format, -1, 64)
		if n := len(text); n > 4 && text[n-4:n-1] == "e-0" { // as in encoding/json
			text = text[:n-2] + text[n-1:]
		}
		return text, true
	}
	return "", false
}

// AsNumber returns what the value is where a user has named the field as a number, as a measure or a sum does: an
// integer or a float as it is, a bool as 0 or 1, decimal text as [ParseNumber] reads it, and a time as the seconds
// since 1970. Meters and ProtoJSON send numbers as text. All else is the zero Value. It allocates nothing.
func (v Value) AsNumber() Value {
	switch v.kind {
	case KindFloat, KindInt, KindUint:
		return v
	case KindBool:
		return Int(int64(v.bits))
	case KindTime:
		return seconds(int64(v.bits), v.nanos)
	case KindStr:
		n, _ := ParseNumber(v.str)
		return n
	}
	return Value{}
}

// ParseNumber returns the number of decimal text, such as a number in JSON. Digits that fit 64 bits are an integer,
// exactly: an int, or a uint above the largest int. All other numbers are the nearest float: those with a point or an
// exponent, and longer ones, such as 100000000000000000000. Only a whole number with a point or an exponent that no
// float64 has, such as 9007199254740993.0, is an integer too, so that it stays exact. ok is false for text that is no
// decimal number, and for a number that is too large for a float64. Digits may have leading zeros and a sign. It
// allocates nothing for up to 32 characters.
func ParseNumber(text string) (v Value, ok bool) {
	whole := true
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', i == 0 && (c == '-' || c == '+'):
		case c == '.', c == 'e', c == 'E', c == '-', c == '+':
			whole = false
		default:
			return Value{}, false
		}
	}
	if whole {
		if v, ok = parseWhole(text); ok {
			return v, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, false
	}
	const exact = 1 << 53
	if v = Float(f); !whole && (f >= exact || f <= -exact) {
		var room [24]byte
		if i, ok := parseWhole(string(wholeDigits(room[:0], text))); ok && notIn(v, i) {
			return i, true
		}
	}
	return v, true
}

// parseWhole returns the integer of digits that may have a sign.
func parseWhole(text string) (v Value, ok bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i), true
	}
	u, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 64)
	return Uint(u), err == nil
}

// notIn reports whether a float is not exactly the integer that it was rounded from.
func notIn(float, exact Value) bool {
	i, isInt := float.Int()
	u, isUint := float.Uint()
	return !(isInt && exact == Int(i)) && !(isUint && exact == Uint(u))
}

// wholeDigits appends the sign and the digits of a number with a point or an exponent. It appends nothing if the number
// is not whole or has more digits than 64 bits hold.
func wholeDigits(dst []byte, text string) []byte {
	if text[0] == '-' {
		dst = append(dst, '-')
	}
	mantissa, power := strings.TrimLeft(text, "+-"), 0
	if at := strings.IndexAny(mantissa, "eE"); at >= 0 {
		power, _ = strconv.Atoi(mantissa[at+1:]) // a number of a float64 has a small one
		mantissa = mantissa[:at]
	}
	left, right, _ := strings.Cut(mantissa, ".")
	left, right = strings.TrimLeft(left, "0"), strings.TrimRight(right, "0")
	if right == "" {
		digits := strings.TrimRight(left, "0")
		power += len(left) - len(digits)
		left = digits
	} else {
		power -= len(right)
	}
	if left == "" {
		right = strings.TrimLeft(right, "0")
	}
	const most = 20
	if power < 0 || len(left)+len(right) > most || len(left)+len(right)+power > most {
		return dst[:0]
	}
	dst = append(append(dst, left...), right...)
	for range power {
		dst = append(dst, '0')
	}
	return dst
}

// seconds returns seconds and nanoseconds as a number of seconds: an integer if it is whole, and else the nearest
// float.
func seconds(s int64, nanos uint32) Value {
	if nanos == 0 {
		return Int(s)
	}
	var room [32]byte
	text, rest := room[:0], uint64(nanos)
	if s < 0 { // the nanoseconds count forward from there
		s, rest = s+1, 1e9-rest
		text = append(text, '-')
		if s != 0 {
			s = -s
		}
	}
	text = append(strconv.AppendInt(text, s, 10), '.')
	at := len(text)
	text = strconv.AppendUint(text, 1e9+rest, 10) // ten digits, of which the first one makes room for zeros
	text = append(text[:at], text[at+1:]...)
	f, _ := strconv.ParseFloat(string(text), 64)
	return Float(f)
}

// ValueOf returns a plain Go value: nil as null, a bool, an integer or a float of any size, text, a [json.Number] as
// [ParseNumber] reads it, bytes, a [time.Time], or a []any as a list. It copies bytes. Of another type, and for a
// json.Number that is too large for a float64, it returns the zero Value.
func ValueOf(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{kind: KindNull}
	case Value:
		return v
	case bool:
		return Bool(v)
	case string:
		return Str(v)
	case float64:
		return Float(v)
	case float32:
		return Float(float64(v))
	case int:
		return Int(int64(v))
	case int8:
		return Int(int64(v))
	case int16:
		return Int(int64(v))
	case int32:
		return Int(int64(v))
	case int64:
		return Int(v)
	case uint:
		return Uint(uint64(v))
	case uint8:
		return Uint(uint64(v))
	case uint16:
		return Uint(uint64(v))
	case uint32:
		return Uint(uint64(v))
	case uint64:
		return Uint(v)
	case json.Number:
		n, _ := ParseNumber(v.String())
		return n
	case []byte:
		return Value{kind: KindBytes, str: string(v)}
	case time.Time:
		return Value{kind: KindTime, bits: uint64(v.Unix()), nanos: uint32(v.Nanosecond())}
	case []any:
		return listOf(v)
	}
	return Value{}
}

// listOf returns a list as JSON text.
func listOf(list []any) Value {
	text, err := marshalPlain(list)
	if err != nil {
		if text, err = marshalPlain(withoutNaN(list)); err != nil {
			return Value{}
		}
	}
	return Value{kind: KindList, str: string(text)}
}

// marshalPlain returns JSON in which <, > and & are as they are.
func marshalPlain(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), err
}

// withoutNaN returns a copy of a plain value with text for each number that JSON does not have.
func withoutNaN(v any) any {
	switch v := v.(type) {
	case float32, float64, Value:
		if f, isFloat := ValueOf(v).Float(); isFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNaN(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, of := range v {
			out[name] = withoutNaN(of)
		}
		return out
	}
	return v
}
