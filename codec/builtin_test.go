package codec_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

func TestBytes(t *testing.T) {
	contract(t, codec.Bytes(), bytes.Equal, []stored[[]byte]{
		{"nil", nil, ""},
		{"empty", []byte{}, ""},
		{"any", []byte{0, 0xff, '#'}, "\x00\xff#"},
	}, nil)
	if got, err := codec.Bytes().Decode(nil); got == nil || err != nil {
		t.Errorf("Decode(nil) = %v, %v; want a non-nil slice", got, err)
	}
}

func TestString(t *testing.T) {
	c := codec.String()
	contract(t, c, same, []stored[string]{
		{"empty", "", ""},
		{"text", "Zürich\x00", "Z\xc3\xbcrich\x00"},
	}, []string{"\xff", "a\xc3", strings.Repeat("a", 100) + "\xed\xa0\x80"})
	out, err := c.Append(nil, "a\xff")
	wantEncode(t, out, err, "str", "UTF-8")
}

func TestFloat64(t *testing.T) {
	bits := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	contract(t, codec.Float64(), bits, []stored[float64]{
		{"zero", 0, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"minus zero", math.Copysign(0, -1), "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{"number", 21.5, "\x40\x35\x80\x00\x00\x00\x00\x00"},
		{"infinity", math.Inf(-1), "\xff\xf0\x00\x00\x00\x00\x00\x00"},
		{"nan", math.Float64frombits(0x7ff8000000000001), "\x7f\xf8\x00\x00\x00\x00\x00\x01"},
		{"signalling nan", math.Float64frombits(0x7ff0000000000001), "\x7f\xf0\x00\x00\x00\x00\x00\x01"},
	}, []string{"", "1234567", "123456789"})
}

func TestInt64(t *testing.T) {
	contract(t, codec.Int64(), same, []stored[int64]{
		{"zero", 0, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"one", 1, "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{"minus one", -1, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"least", math.MinInt64, "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{"greatest", math.MaxInt64, "\x7f\xff\xff\xff\xff\xff\xff\xff"},
	}, []string{"", "1234567", "123456789"})
}
