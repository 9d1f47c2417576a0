package codec_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// TestValueFromJSON: a struct whose fields are Values keeps what a device sends, and leaves out again what is null or
// missing.
func TestValueFromJSON(t *testing.T) {
	type reading struct {
		Temp codec.Value `json:"temp,omitzero"`
		Note codec.Value `json:"note,omitzero"`
	}
	for _, tt := range []struct {
		text string
		want codec.Value
		back string
	}{
		{`{"temp":21.5}`, codec.Float(21.5), `{"temp":21.5}`},
		{`{"temp":9007199254740993}`, codec.Int(9007199254740993), `{"temp":9007199254740993}`},
		{`{"temp":18446744073709551615}`, codec.Uint(18446744073709551615), `{"temp":18446744073709551615}`},
		{`{"temp":100000000000000000000}`, codec.Float(1e20), `{"temp":1e+20}`},
		{`{"temp":7.0}`, codec.Float(7), `{"temp":7.0}`},
		{`{"temp":"21.5"}`, codec.Str("21.5"), `{"temp":"21.5"}`},
		{`{"temp":true}`, codec.Bool(true), `{"temp":true}`},
		{`{"temp":[1,9007199254740993]}`, codec.ValueOf([]any{1, 9007199254740993}), `{"temp":[1,9007199254740993]}`},
		{`{"temp":null}`, codec.Value{}, `{}`},
		{`{"temp":{"c":1}}`, codec.Value{}, `{}`},
		{`{}`, codec.Value{}, `{}`},
	} {
		var got reading
		if err := json.Unmarshal([]byte(tt.text), &got); err != nil || got.Temp != tt.want {
			t.Errorf("%s is %v, %v; want %v", tt.text, got.Temp, err, tt.want)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != tt.back {
			t.Errorf("%s is written as %s, %v; want %s", tt.text, back, err, tt.back)
		}
	}
	kept := codec.Int(1)
	if err := json.Unmarshal([]byte("null"), &kept); err != nil || kept != codec.Int(1) {
		t.Errorf("null makes %v of 1, %v; as for other types, it changes nothing", kept, err)
	}
	for _, bad := range []string{"1e400", "-1e400"} {
		if err := json.Unmarshal([]byte(bad), &kept); err == nil {
			t.Errorf("%s is %v, want an error", bad, kept)
		}
	}
	for _, bad := range []string{"", "{", "1 2", "nul"} {
		if err := kept.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("UnmarshalJSON(%q) = nil, want an error", bad)
		}
	}
	if err := (*codec.Value)(nil).UnmarshalJSON([]byte("1")); !errors.Is(err, codecerr.ErrInvalid) {
		t.Errorf("UnmarshalJSON of no Value: %v", err)
	}
	if err := (*codec.Record)(nil).UnmarshalJSON([]byte("{}")); !errors.Is(err, codecerr.ErrInvalid) {
		t.Errorf("UnmarshalJSON of no Record: %v", err)
	}
}

// TestFloatsOfWholeNumbersInJSON: a large float comes back from JSON as it was. Its shortest text,
// 1.152921504606847e+18 for 2^60, is an integer that no float64 has, and would come back as that integer.
func TestFloatsOfWholeNumbersInJSON(t *testing.T) {
	for exponent := 50; exponent <= 70; exponent++ {
		for _, of := range []float64{1, 1.25, math.Nextafter(1, 2), math.Nextafter(2, 1), -1, -1.25, -math.Nextafter(2, 1)} {
			v := codec.Float(math.Ldexp(of, exponent))
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var back codec.Value
			if err := json.Unmarshal(text, &back); err != nil || back != v {
				t.Errorf("the float %v is written as %s, which is read as %v of kind %v, %v", v, text, back, back.Kind(), err)
			}
		}
	}
}
