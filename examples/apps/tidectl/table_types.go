package main

import (
	"math"

	"github.com/tidemark-go/tidemark/codec"
)

// columnType is the type of the values of a column.
type columnType uint8

const (
	asText columnType = iota // any value as text
	asTime
	asBool
	asInt   // of 64 bits
	asUint  // of 64 bits
	asFloat // and integers up to 2^53
	asBytes
	asJSON // a list, or an object
)

// content is what values of a field are: a set.
type content uint16

const (
	hasText content = 1 << iota
	hasBool
	hasBytes
	hasList
	hasFloat
	hasInt
	hasBig      // an integer above 2^53
	hasNegative // an integer
	hasOver     // an integer above the largest int64
)

// exactInts is up to where a float64 has all integers.
const exactInts = 1 << 53

func contentOf(v codec.Value) content {
	switch v.Kind() {
	case codec.KindInvalid, codec.KindNull:
		return 0
	case codec.KindBool:
		return hasBool
	case codec.KindBytes:
		return hasBytes
	case codec.KindList:
		return hasList
	case codec.KindFloat:
		return hasFloat
	case codec.KindInt, codec.KindUint:
		i, isInt := v.Int()
		switch {
		case !isInt:
			return hasInt | hasBig | hasOver
		case i < -exactInts:
			return hasInt | hasBig | hasNegative
		case i < 0:
			return hasInt | hasNegative
		case i > exactInts:
			return hasInt | hasBig
		}
		return hasInt
	}
	return hasText
}

// columnType returns the narrowest type that has all of the values exactly.
func (c content) columnType() columnType {
	const numbers = hasFloat | hasInt | hasBig | hasNegative | hasOver
	switch {
	case c == hasBool:
		return asBool
	case c == hasBytes:
		return asBytes
	case c == hasList:
		return asJSON
	case c == 0 || c&^numbers != 0:
		return asText
	case c&hasFloat != 0 && c&hasBig == 0:
		return asFloat
	case c&hasFloat == 0 && c&hasOver == 0:
		return asInt
	case c&hasFloat == 0 && c&hasNegative == 0:
		return asUint
	}
	return asText
}

// fits reports whether a column has a value exactly. Nothing fits all.
func (t columnType) fits(v codec.Value) bool {
	has := contentOf(v)
	if has == 0 {
		return true
	}
	switch t {
	case asBool:
		return has == hasBool
	case asBytes:
		return has == hasBytes
	case asJSON:
		return has == hasList
	case asInt:
		_, ok := v.Int()
		return ok && !minusZero(v)
	case asUint:
		_, ok := v.Uint()
		return ok && !minusZero(v)
	case asFloat:
		return has == hasFloat || has&hasInt != 0 && has&hasBig == 0
	case asTime:
		return v.Kind() == codec.KindTime
	}
	return true
}

func minusZero(v codec.Value) bool {
	f, ok := v.Float()
	return ok && f == 0 && math.Signbit(f)
}

// textOf returns a value as the text of a cell; "" for nothing.
func textOf(v codec.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	switch v.Kind() {
	case codec.KindBytes, codec.KindList:
		return v.String()
	}
	return ""
}
