package rowkey

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// FieldKind says which values a key field takes, and how they are encoded as parts of keys. The bytes of parts of one
// kind sort as their values do, except for the reversed kinds. The zero FieldKind is text, which is stored unchanged.
type FieldKind struct {
	form   form
	digits uint8 // of numbers
}

type form uint8

const (
	text form = iota
	unsigned
	signed
	reversedID
	reversedDomain
	uuid
)

// The kinds besides text. Numbers need a count of digits: 1 to 20, and 1 to 19 for signed ones.
var (
	ReversedID     = FieldKind{form: reversedID}
	ReversedDomain = FieldKind{form: reversedDomain}
	UUID           = FieldKind{form: uuid}
)

const (
	maxUintDigits = 20 // of math.MaxUint64
	maxIntDigits  = 19 // of math.MaxInt64
	idLen         = 20
	uuidLen       = 36
	maxDomain     = 253
	maxLabel      = 63

	// A signed number starts with one of these, which sort as the signs do. The digits of a negative number are the
	// nines' complement of its magnitude. The signs are letters, so that nobody mistakes n957 for a plain number.
	negative, positive = 'n', 'p'
)

// Uint returns the kind of unsigned numbers of up to the given digits. CheckKinds refuses counts of digits out of
// range.
func Uint(digits int) FieldKind {
	return FieldKind{unsigned, uint8(min(max(digits, 0), math.MaxUint8))}
}

// Int returns the kind of signed numbers of up to the given digits.
func Int(digits int) FieldKind { return FieldKind{signed, uint8(min(max(digits, 0), math.MaxUint8))} }

var formNames = [...]string{"text", "uint", "int", "reversed_id", "reversed_domain", "uuid"}

// String returns the kind's name in the catalogue, such as text or uint6.
func (k FieldKind) String() string {
	if k.form == unsigned || k.form == signed {
		return formNames[k.form] + strconv.Itoa(int(k.digits))
	}
	return formNames[k.form]
}

// ParseFieldKind returns the kind with a name that String returned.
func ParseFieldKind(name string) (FieldKind, error) {
	kind := strings.TrimRight(name, "0123456789")
	if i := slices.Index(formNames[:], kind); i >= 0 {
		digits, _ := strconv.Atoi(name[len(kind):])
		if k := (FieldKind{form(i), uint8(digits & math.MaxUint8)}); k.String() == name && k.possible() {
			return k, nil
		}
	}
	return FieldKind{}, invalid.New(ErrInvalid, "kind of a key field", invalid.Quote(name),
		"text, uint1 to uint20, int1 to int19, reversed_id, reversed_domain or uuid")
}

func (k FieldKind) possible() bool {
	switch k.form {
	case unsigned:
		return k.digits >= 1 && k.digits <= maxUintDigits
	case signed:
		return k.digits >= 1 && k.digits <= maxIntDigits
	}
	return k.digits == 0
}

// CheckKinds returns an error if the kinds do not fit the fields, which have passed CheckFields: there must be one kind
// for each field.
func CheckKinds(fields []string, kinds []FieldKind) error {
	if len(kinds) != len(fields) {
		return invalid.New(ErrInvalid, "kinds of key fields", strconv.Itoa(len(kinds)), fmt.Sprintf("%d, one for each key field", len(fields)))
	}
	for i, k := range kinds {
		if !k.possible() {
			return invalid.New(ErrInvalid, "key field "+fields[i], fmt.Sprintf("%d digits", k.digits),
				fmt.Sprintf("1 to %d digits", map[form]int{unsigned: maxUintDigits, signed: maxIntDigits}[k.form]))
		}
	}
	return nil
}

// most returns the greatest magnitude that the number's digits allow.
func (k FieldKind) most() uint64 {
	if k.digits >= maxUintDigits {
		return math.MaxUint64
	}
	return maxOfDigits(int(k.digits))
}

// maxOfDigits returns the largest number of that many digits: as many nines, up to 19.
func maxOfDigits(digits int) uint64 {
	n := uint64(1)
	for range digits {
		n *= 10
	}
	return n - 1
}

// values describes the values that the kind takes.
func (k FieldKind) values() string {
	switch k.form {
	case unsigned:
		return fmt.Sprintf("a number from 0 to %d", k.most())
	case signed:
		low, high := k.bounds()
		return fmt.Sprintf("a number from %d to %d", low, high)
	case reversedID:
		return fmt.Sprintf("a number from 0 to %d", uint64(math.MaxUint64))
	case reversedDomain:
		return "a domain name of up to 253 bytes, with labels of a-z 0-9 - _"
	case uuid:
		return "16 bytes, or a UUID as in 123e4567-e89b-12d3-a456-426614174000"
	}
	return "at least 1 byte of UTF-8"
}

func (k FieldKind) bounds() (low, high int64) {
	if most := k.most(); most <= math.MaxInt64 {
		return -int64(most), int64(most)
	}
	return math.MinInt64, math.MaxInt64
}

// Part returns the key part for a value in the key field of that name. The value has a Go type of the kind: a string
// for text and domains, any integer for numbers and ids, 16 bytes for UUIDs. For all kinds it may also be the text that
// Text returns.
func (k FieldKind) Part(field string, value any) (string, error) {
	part, ok := k.encode(reflect.ValueOf(value))
	if !ok {
		return "", invalid.New(ErrInvalid, "key field "+field, formatValue(value), k.values())
	}
	return part, nil
}

// formatValue formats a refused value.
func formatValue(value any) string {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return "nil"
	case v.Kind() == reflect.String:
		return invalid.Quote(v.String())
	case v.CanInt() || v.CanUint():
		return fmt.Sprintf("%d", value)
	}
	return "a " + v.Type().String()
}

func (k FieldKind) encode(v reflect.Value) (string, bool) {
	isText := v.Kind() == reflect.String
	switch k.form {
	case unsigned:
		n, ok := unsignedOf(v)
		return fmt.Sprintf("%0*d", k.digits, n), ok && n <= k.most()
	case signed:
		n, ok := signedOf(v)
		low, high := k.bounds()
		return string(appendSigned(nil, n, int(k.digits))), ok && n >= low && n <= high
	case reversedID:
		n, ok := unsignedOf(v)
		return reversedDigits(n), ok
	case reversedDomain:
		return reverseLabels(v.String()), isText && domain(v.String())
	case uuid:
		if isText {
			b, ok := parseUUID(v.String())
			return formatUUID(b), ok
		}
		if v.Kind() != reflect.Array || v.Len() != 16 || v.Type().Elem() != reflect.TypeFor[byte]() {
			return "", false
		}
		var b [16]byte
		reflect.Copy(reflect.ValueOf(&b).Elem(), v)
		return formatUUID(b), true
	}
	return v.String(), isText && v.Len() > 0 && utf8.ValidString(v.String())
}

func unsignedOf(v reflect.Value) (uint64, bool) {
	switch {
	case v.Kind() == reflect.String:
		n, err := strconv.ParseUint(v.String(), 10, 64)
		return n, err == nil
	case v.CanUint():
		return v.Uint(), true
	case v.CanInt():
		return uint64(v.Int()), v.Int() >= 0
	}
	return 0, false
}

func signedOf(v reflect.Value) (int64, bool) {
	switch {
	case v.Kind() == reflect.String:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return n, err == nil
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(v.Uint()), v.Uint() <= math.MaxInt64
	}
	return 0, false
}

func appendSigned(dst []byte, n int64, digits int) []byte {
	if n >= 0 {
		return fmt.Appendf(append(dst, positive), "%0*d", digits, n)
	}
	return fmt.Appendf(append(dst, negative), "%0*d", digits, maxOfDigits(digits)-uint64(-n)) // also correct for MinInt64, which has no positive counterpart
}
