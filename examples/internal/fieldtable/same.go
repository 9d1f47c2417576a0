package fieldtable

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

// SameNumber reports whether text is a number: an integer with all its digits, and a float so that it is the nearest
// one. NaN and the infinities are as Go and Prometheus write them.
func SameNumber(v codec.Value, text string) bool {
	want, isFloat := v.Float()
	if !isFloat {
		digits, _ := v.Text()
		got, ok := new(big.Rat).SetString(text)
		exact, _ := new(big.Rat).SetString(digits)
		return ok && exact != nil && got.Cmp(exact) == 0
	}
	got, err := strconv.ParseFloat(text, 64)
	return err == nil && (got == want || got != got && want != want)
}

// Nearest reports whether text is the float that is nearest to a number, for programs whose numbers are floats.
func Nearest(v codec.Value, text string) bool {
	x, ok := v.Number()
	return ok && SameNumber(codec.Float(x), text)
}

// Same reports whether JSON is the value of a field. Nothing may be missing or null, and what JSON has no number for is
// text.
func Same(v codec.Value, text json.RawMessage) bool {
	text = bytes.TrimSpace(text)
	isNull := len(text) == 0 || string(text) == "null"
	var inner string
	isText := json.Unmarshal(text, &inner) == nil && !isNull
	switch v.Kind() {
	case codec.KindInvalid, codec.KindNull:
		return isNull
	case codec.KindStr:
		want, _ := v.Str()
		return isText && inner == want
	case codec.KindBytes:
		want, _ := v.Bytes()
		return isText && inner == base64.StdEncoding.EncodeToString(want)
	case codec.KindTime:
		want, _ := v.Time()
		got, err := time.Parse(time.RFC3339Nano, inner)
		return isText && err == nil && got.Equal(want)
	case codec.KindList:
		return isText && compact(inner) == v.String() || compact(string(text)) == v.String()
	case codec.KindBool:
		return string(text) == v.String()
	}
	x, _ := v.Number()
	if finite := x-x == 0; finite == isText { // a number is a number, and NaN is text
		return false
	} else if !finite {
		return SameNumber(v, strings.Replace(inner, "Infinity", "Inf", 1))
	}
	return SameNumber(v, string(text))
}

func compact(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return ""
	}
	return out.String()
}
