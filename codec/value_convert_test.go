package codec_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]codec.Value{
		"0": codec.Int(0), "-0": codec.Int(0), "7": codec.Int(7), "+7": codec.Int(7), "007": codec.Int(7), "-007.50": codec.Float(-7.5),
		"9007199254740993": codec.Int(9007199254740993), "9223372036854775807": codec.Int(math.MaxInt64), "-9223372036854775808": codec.Int(math.MinInt64),
		"9223372036854775808": codec.Uint(1 << 63), "+18446744073709551615": codec.Uint(math.MaxUint64),
		"18446744073709551616": codec.Float(1 << 64), "-9223372036854775809": codec.Float(-1 << 63), "100000000000000000000": codec.Float(1e20),
		"7.0": codec.Float(7), "7e0": codec.Float(7), "1.7e12": codec.Float(1.7e12), ".5": codec.Float(0.5), "5.": codec.Float(5), "1e-400": codec.Float(0),
		// Whole numbers that no float64 has are exact, however they are written.
		"9007199254740993.0": codec.Int(9007199254740993), "-9007199254740993.000e0": codec.Int(-9007199254740993), "9.007199254740993e15": codec.Int(9007199254740993),
		"90071992547409930e-1": codec.Int(9007199254740993), "0.09007199254740993E+17": codec.Int(9007199254740993), "+9223372036854775807.": codec.Int(math.MaxInt64),
		"18446744073709551615.00": codec.Uint(math.MaxUint64), "1844674407370955161.5e1": codec.Uint(math.MaxUint64), "9007199254740993.0000000000000000000000000000000": codec.Int(9007199254740993),
		"9007199254740992.0": codec.Float(1 << 53), "9007199254740993.5": codec.Float(9007199254740994), "18446744073709551617.0": codec.Float(1 << 64), "1e19": codec.Float(1e19),
	} {
		if got, ok := codec.ParseNumber(text); got != want || !ok {
			t.Errorf("ParseNumber(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "+", ".", "e5", "1e", "1e999", "--1", "+-1", "1_000", "0x10", "inf", "NaN", " 7", "7 ", "7kWh", "1,5", "1.2.3", "٣"} {
		if got, ok := codec.ParseNumber(text); ok || got != (codec.Value{}) {
			t.Errorf("ParseNumber(%q) = %v, %v; want none", text, got, ok)
		}
	}
}

// TestConversions: what a program gets of a field does not depend on how its sender writes numbers.
func TestConversions(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
	none := codec.Value{}
	for _, tt := range []struct {
		v         codec.Value
		text      string // "-" for none
		as        codec.Value
		i         int64
		u         uint64
		isI, isU  bool
		asJSON    string
		notStored bool
	}{
		{v: none, text: "-", as: none, asJSON: "null", notStored: true},
		{codec.Int(7), "7", codec.Int(7), 7, 7, true, true, "7", false},
		{codec.Int(-7), "-7", codec.Int(-7), -7, 0, true, false, "-7", false},
		{codec.Uint(7), "7", codec.Uint(7), 7, 7, true, true, "7", false},
		{codec.Uint(1 << 63), "9223372036854775808", codec.Uint(1 << 63), 0, 1 << 63, false, true, "9223372036854775808", false},
		{codec.Float(7), "7", codec.Float(7), 7, 7, true, true, "7.0", false},
		{codec.Float(math.Copysign(0, -1)), "0", codec.Float(math.Copysign(0, -1)), 0, 0, true, true, "-0.0", false},
		{codec.Float(1 << 63), "9223372036854775808", codec.Float(1 << 63), 0, 1 << 63, false, true, "9223372036854775808.0", false},
		{codec.Float(1e20), "100000000000000000000", codec.Float(1e20), 0, 0, false, false, "1e+20", false},
		{codec.Float(1e21), "1e+21", codec.Float(1e21), 0, 0, false, false, "1e+21", false},
		{codec.Float(1e-7), "1e-7", codec.Float(1e-7), 0, 0, false, false, "1e-07", false},
		{codec.Float(0.5), "0.5", codec.Float(0.5), 0, 0, false, false, "0.5", false},
		{codec.Float(-1 << 63), "-9223372036854775808", codec.Float(-1 << 63), math.MinInt64, 0, true, false, "-9.223372036854776e+18", false},
		{codec.Bool(true), "true", codec.Int(1), 0, 0, false, false, "true", false},
		{codec.Bool(false), "false", codec.Int(0), 0, 0, false, false, "false", false},
		{codec.Str("9007199254740993"), "9007199254740993", codec.Int(9007199254740993), 0, 0, false, false, `"9007199254740993"`, false},
		{codec.Str("open"), "open", none, 0, 0, false, false, `"open"`, false},
		{codec.Str(""), "", none, 0, 0, false, false, `""`, false},
		{codec.ValueOf(nil), "-", none, 0, 0, false, false, "null", true},
		{codec.ValueOf([]byte("ab")), "-", none, 0, 0, false, false, `"YWI="`, true},
		{codec.ValueOf([]any{1, "<", math.NaN()}), "-", none, 0, 0, false, false, `[1,"<","NaN"]`, true},
		{codec.ValueOf(at), "2026-01-02T03:04:05.25Z", codec.Float(1767323045.25), 0, 0, false, false, `"2026-01-02T03:04:05.25Z"`, true},
		{codec.ValueOf(time.Unix(-1, 500_000_000)), "1969-12-31T23:59:59.5Z", codec.Float(-0.5), 0, 0, false, false, `"1969-12-31T23:59:59.5Z"`, true},
		{codec.ValueOf(time.Unix(-2, 1)), "1969-12-31T23:59:58.000000001Z", codec.Float(-1.999999999), 0, 0, false, false, `"1969-12-31T23:59:58.000000001Z"`, true},
		{codec.ValueOf(time.Unix(12, 0)), "1970-01-01T00:00:12Z", codec.Int(12), 0, 0, false, false, `"1970-01-01T00:00:12Z"`, true},
		{codec.ValueOf(json.Number("7e0")), "7", codec.Float(7), 7, 7, true, true, "7.0", false},
	} {
		if text, ok := tt.v.Text(); ok != (tt.text != "-") || ok && text != tt.text {
			t.Errorf("%v.Text() = %q, %v; want %q", tt.v, text, ok, tt.text)
		}
		if got := tt.v.AsNumber(); got != tt.as {
			t.Errorf("%v.AsNumber() = %v, want %v", tt.v, got, tt.as)
		}
		if i, ok := tt.v.Int(); i != tt.i || ok != tt.isI {
			t.Errorf("%v.Int() = %v, %v; want %v, %v", tt.v, i, ok, tt.i, tt.isI)
		}
		if u, ok := tt.v.Uint(); u != tt.u || ok != tt.isU {
			t.Errorf("%v.Uint() = %v, %v; want %v, %v", tt.v, u, ok, tt.u, tt.isU)
		}
		r := codec.NewRecord(field("a", tt.v))
		x, isNumber := tt.v.Number()
		if got, ok := r.Number("a"); got != x || ok != isNumber {
			t.Errorf("{a=%v}.Number() = %v, %v; want %v, %v", tt.v, got, ok, x, isNumber)
		}
		if got, ok := r.Text("a"); ok != (tt.text != "-") || ok && got != tt.text {
			t.Errorf("{a=%v}.Text() = %v, %v", tt.v, got, ok)
		}
		if got, ok := r.Int("a"); got != tt.i || ok != tt.isI {
			t.Errorf("{a=%v}.Int() = %v, %v", tt.v, got, ok)
		}
		b, isBool := tt.v.Bool()
		if got, ok := r.Bool("a"); got != b || ok != isBool {
			t.Errorf("{a=%v}.Bool() = %v, %v", tt.v, got, ok)
		}
		if got, err := json.Marshal(tt.v); string(got) != tt.asJSON && tt.v.Kind() != codec.KindList || err != nil {
			t.Errorf("%v as JSON is %s, %v; want %s", tt.v, got, err, tt.asJSON)
		}
		if _, err := codec.Append(codec.Records(), nil, r); (err != nil) != tt.notStored {
			t.Errorf("a record with %v of kind %v: %v; want an error: %v", tt.v, tt.v.Kind(), err, tt.notStored)
		}
	}
	r := codec.NewRecord(field("a", codec.Int(7)))
	if _, ok := r.Number("none"); ok {
		t.Error("a record has a number that it does not have")
	}
	if b, ok := codec.ValueOf([]byte("ab")).Bytes(); string(b) != "ab" || !ok {
		t.Errorf("Bytes = %q, %v", b, ok)
	}
	if got, ok := codec.ValueOf(at).Time(); !got.Equal(at) || !ok {
		t.Errorf("Time = %v, %v", got, ok)
	}
	if got := codec.ValueOf(struct{}{}); got != none {
		t.Errorf("ValueOf of another type = %v, want the zero Value", got)
	}
}
