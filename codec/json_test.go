package codec_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

type reading struct {
	TempC    float64 `json:"temp_c"`
	Humidity float64 `json:"humidity"`
	Note     string  `json:"note,omitempty"`
}

func TestJSON(t *testing.T) {
	contract(t, codec.JSON[reading](), same, []stored[reading]{
		{"zero", reading{}, `{"temp_c":0,"humidity":0}`},
		{"html", reading{TempC: 21.5, Humidity: 40, Note: "<a&b>"}, `{"temp_c":21.5,"humidity":40,"note":"<a&b>"}`},
	}, []string{
		"", " ", "{", `{"temp_c":"warm"}`, `{"temp_c":1} {}`, `{"temp_c":1}x`, "\xef\xbb\xbf{}", `[1]`,
		strings.Repeat("[", 100_000),
	})
	contract(t, codec.JSON[map[string]int](), maps.Equal, []stored[map[string]int]{
		{"map", map[string]int{"c": 3, "a": 1, "b": 2}, `{"a":1,"b":2,"c":3}`},
	}, nil)
	contract(t, codec.JSON[*reading](), func(a, b *reading) bool { return a == b || *a == *b }, []stored[*reading]{
		{"nil", nil, "null"},
		{"pointer", &reading{TempC: 1}, `{"temp_c":1,"humidity":0}`},
	}, nil)
}

func TestJSONRefusesWhatJSONCannotSay(t *testing.T) {
	c := codec.JSON[reading]()
	for range 3 { // a failure must not affect the next write
		out, err := c.Append(nil, reading{TempC: math.NaN()})
		wantEncode(t, out, err, "json", "NaN")
		if got, err := c.Append(nil, reading{}); err != nil || string(got) != `{"temp_c":0,"humidity":0}` {
			t.Errorf("Append after a failure = %s, %v, want the value", got, err)
		}
	}
	_, err := c.Append(nil, reading{TempC: math.Inf(1)})
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		t.Errorf("Append = %v, want the cause from encoding/json", err)
	}
	out, err := codec.Append(codec.JSON[func()](), nil, nil)
	wantEncode(t, out, err, "json", "func()")
}

func TestJSONGivesNoHalfFilledValue(t *testing.T) {
	got, err := codec.JSON[reading]().Decode([]byte(`{"temp_c":21.5,"humidity":"wet"}`))
	if err == nil || got != (reading{}) {
		t.Errorf("Decode = %+v, %v, want the zero value and an error", got, err)
	}
}

// marked has MarshalJSON with a pointer receiver: json.Marshal of a value would not call it.
type marked struct{ n int }

func (m *marked) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"n": m.n}) }

func TestJSONUsesPointerMethods(t *testing.T) {
	if got, err := codec.JSON[marked]().Append(nil, marked{7}); err != nil || string(got) != `{"n":7}` {
		t.Errorf("Append = %s, %v, want {\"n\":7}: the fields of the value would be lost", got, err)
	}
}

func TestJSONIsSafeForConcurrentUse(t *testing.T) {
	c := codec.JSON[reading]()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := reading{TempC: float64(i), Note: strings.Repeat("x", i)}
			for range 200 {
				b, err := c.Append(nil, want)
				got, derr := c.Decode(b)
				if err != nil || derr != nil || got != want {
					t.Errorf("wrote %+v and read %+v, %v, %v", want, got, err, derr)
					return
				}
			}
		})
	}
	wg.Wait()
}

// short keeps its text in an array of its own, and the values that its methods have seen.
type short struct {
	own  [8]byte
	text []byte
}

var seenShorts []*short

func (s *short) UnmarshalJSON(text []byte) error {
	s.text = append(s.own[:0], text[1:len(text)-1]...)
	return nil
}

func (s *short) MarshalJSON() ([]byte, error) {
	seenShorts = append(seenShorts, s)
	return json.Marshal(string(s.text))
}

// TestJSONLeavesValuesToTheirMethods: a method may keep a pointer to its value or into it. No later value shows there.
func TestJSONLeavesValuesToTheirMethods(t *testing.T) {
	type nested struct{ All [1]struct{ S short } }
	plain, deep := codec.JSON[short](), codec.JSON[nested]()
	for range 20 { // a pool may drop a value
		a, err := plain.Decode([]byte(`"acme"`))
		b, err2 := plain.Decode([]byte(`"other"`))
		if string(a.text) != "acme" || string(b.text) != "other" || err != nil || err2 != nil {
			t.Fatalf("got %q and %q, %v, %v", a.text, b.text, err, err2)
		}
		c, err := deep.Decode([]byte(`{"All":[{"S":"acme"}]}`))
		d, err2 := deep.Decode([]byte(`{"All":[{"S":"other"}]}`))
		if c, d := c.All[0].S.text, d.All[0].S.text; string(c) != "acme" || string(d) != "other" || err != nil || err2 != nil {
			t.Fatalf("within a value: got %q and %q, %v, %v", c, d, err, err2)
		}
		seenShorts = nil
		for _, v := range []short{a, b} {
			if _, err := plain.Append(nil, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range []nested{c, d} {
			if _, err := deep.Append(nil, v); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range seenShorts {
			if want := []string{"acme", "other"}[i%2]; string(s.text) != want || len(seenShorts) != 4 {
				t.Fatalf("method %d of %d kept %q, want %q", i, len(seenShorts), s.text, want)
			}
		}
	}
}
