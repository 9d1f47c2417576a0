package rowkey

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Scan decodes a part of the key field of that name and stores the value in the variable that into points to. The
// variable has a Go type that Part takes for the kind, or is a string for the value's text, or an interface for a
// string, uint64, int64 or [16]byte. Scan returns an error if the part is of another kind, or if the value does not
// fit.
func (k FieldKind) Scan(field, part string, into any) error {
	value, ok := k.value(part)
	if !ok {
		return k.partError(field, part)
	}
	to := reflect.ValueOf(into)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return invalid.New(ErrInvalid, "target of key field "+field, formatValue(into), "a pointer")
	}
	from, at := reflect.ValueOf(value), to.Elem()
	switch {
	case at.Kind() == reflect.String:
		at.SetString(textOf(value))
		return nil
	case at.Kind() == reflect.Interface && from.Type().AssignableTo(at.Type()),
		from.Kind() == reflect.Array && at.Kind() == reflect.Array && from.Type().ConvertibleTo(at.Type()):
		at.Set(from.Convert(at.Type()))
		return nil
	case at.CanInt():
		if n, ok := signedOf(from); ok && from.Kind() != reflect.String && !at.OverflowInt(n) {
			at.SetInt(n)
			return nil
		}
	case at.CanUint():
		if n, ok := unsignedOf(from); ok && from.Kind() != reflect.String && !at.OverflowUint(n) {
			at.SetUint(n)
			return nil
		}
	}
	return invalid.New(ErrInvalid, "target of key field "+field, "a "+to.Type().String(),
		"a pointer to what holds "+invalid.Quote(textOf(value)))
}

// textOf returns the usual text of a value that value returned.
func textOf(value any) string {
	if b, ok := value.([16]byte); ok {
		return formatUUID(b)
	}
	return fmt.Sprint(value)
}

// partError returns the error for a part that the kind does not produce.
func (k FieldKind) partError(field, part string) error {
	return invalid.New(ErrInvalid, "key field "+field, invalid.Quote(part), k.values()+", written as "+k.form.written(int(k.digits)))
}

// written describes how a form encodes values as parts.
func (f form) written(digits int) string {
	switch f {
	case unsigned:
		return fmt.Sprintf("%d digits with leading zeros", digits)
	case signed:
		return fmt.Sprintf("p or n and %d digits", digits)
	case reversedID:
		return "20 digits, last first"
	case reversedDomain:
		return "labels with the last first"
	case uuid:
		return "36 bytes in lower case"
	}
	return "it is"
}

// value returns the value of a part, and false if the kind does not produce that part.
func (k FieldKind) value(part string) (any, bool) {
	if !k.fits(part) {
		return nil, false
	}
	switch k.form {
	case unsigned:
		n, err := strconv.ParseUint(part, 10, 64)
		return n, err == nil
	case signed:
		n, err := strconv.ParseUint(part[1:], 10, 64)
		if part[0] == negative {
			return -int64(maxOfDigits(int(k.digits)) - n), err == nil
		}
		return int64(n), err == nil
	case reversedID:
		return unreversedDigits(part)
	case reversedDomain:
		return reverseLabels(part), true
	case uuid:
		return parseUUID(part)
	}
	return part, true
}

// fits reports whether the kind produces a part. It allocates nothing.
func (k FieldKind) fits(part string) bool {
	switch k.form {
	case unsigned:
		return len(part) == int(k.digits) && allDigits(part) && (k.digits < maxUintDigits || part <= greatestUint)
	case signed:
		switch {
		case len(part) != 1+int(k.digits) || !allDigits(part[1:]):
			return false
		case part[0] == positive:
			return k.digits < maxIntDigits || part[1:] <= greatestInt
		}
		return part[0] == negative && part[1:] < tenNines[:len(part)-1] && (k.digits < maxIntDigits || part[1:] >= leastInt)
	case reversedID:
		if len(part) != idLen || !allDigits(part) {
			return false
		}
		for i := range idLen { // compares from the end with the greatest id
			if c, most := part[idLen-1-i], greatestUint[i]; c != most {
				return c < most
			}
		}
		return true
	case reversedDomain:
		return domain(part)
	case uuid:
		_, ok := parseUUID(part)
		return ok && !strings.ContainsAny(part, "ABCDEF")
	}
	return true
}

const (
	greatestUint = "18446744073709551615"
	greatestInt  = "9223372036854775807"
	leastInt     = "0776627963145224191" // the nines' complement of 9223372036854775808
	tenNines     = "9999999999999999999"
)

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// reversedDigits returns the 20 digits of an id in reverse.
func reversedDigits(id uint64) string {
	b := fmt.Appendf(nil, "%0*d", idLen, id)
	slices.Reverse(b)
	return string(b)
}

func unreversedDigits(part string) (any, bool) {
	b := []byte(part)
	slices.Reverse(b)
	id, err := strconv.ParseUint(string(b), 10, 64)
	return id, err == nil
}

// reverseLabels returns a domain name with its labels in reverse; it is its own inverse.
func reverseLabels(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// domain reports whether a text is a domain name, in its own order or with its labels in reverse.
func domain(name string) bool {
	label := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.':
			if label == 0 {
				return false
			}
			label = 0
			continue
		case !isDigit(c) && (c < 'a' || c > 'z') && c != '-' && c != '_':
			return false
		}
		if label++; label > maxLabel {
			return false
		}
	}
	return label > 0 && len(name) <= maxDomain
}

// parseUUID returns the bytes of a UUID in its usual text, in either case.
func parseUUID(s string) (b [16]byte, ok bool) {
	if len(s) != uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, false
	}
	var digits [32]byte
	n := copy(digits[:], s[:8])
	n += copy(digits[n:], s[9:13])
	n += copy(digits[n:], s[14:18])
	n += copy(digits[n:], s[19:23])
	copy(digits[n:], s[24:])
	_, err := hex.Decode(b[:], digits[:])
	return b, err == nil
}

func formatUUID(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Judged returns the parts of an entity's path for checks of how keys look. It is like Parts, but signed numbers have
// digits only, in their order.
func (s Space) Judged(path string) []string {
	parts := Parts(path)
	for i := range min(len(parts), len(s.kinds)) {
		if k := s.kinds[i]; k.form == signed && k.fits(parts[i]) {
			sign := map[byte]string{negative: "0", positive: "1"}[parts[i][0]]
			parts[i] = sign + parts[i][1:]
		}
	}
	return parts
}
