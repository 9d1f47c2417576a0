package fields

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

// kindsIn returns the fields of a payload, as "name kind".
func kindsIn(format string, payload []byte) (out []string) {
	Kinds(format, payload, func(name []byte, k codec.Kind) { out = append(out, string(name)+" "+k.String()) })
	slices.Sort(out)
	return slices.Compact(out)
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":{"c":"x","d":[1,{"e":2}],"f":{}},"g":null,"h":true}`:                  "a int|b.c str|b.d list|g null|h bool",
		" { \"a\" : -1.5e3 ,\n\"b\":18446744073709551615, \"c\":100000000000000000000 } ": "a float|b uint|c float",
		`{"\u00e9":1,"a\"b":2,"":3}`: " int|a\"b int|é int",
		`7`:                          " int", `"x"`: " str", `[1,"]"]`: " list", `null`: " null", `{}`: "",
		`{"a":1,"b"`: "a int", `{"a":`: "", `{"a":"x`: "", `{"a" 1}`: "", ``: "", `{`: "", `{"a":1}}`: "a int", `[[[`: "", "\"\\": "",
		strings.Repeat(`{"o":`, 16) + `1` + strings.Repeat(`}`, 16): strings.Repeat("o.", 15) + "o int",
		strings.Repeat(`{"o":`, 17) + `1` + strings.Repeat(`}`, 17): "",
	} {
		if got := strings.Join(kindsIn(JSON, []byte(text)), "|"); got != want {
			t.Errorf("%s has the fields %q, want %q", text, got, want)
		}
	}
}

// FuzzKindsOfJSON: a payload that decodes has exactly the fields that a decoder finds; no payload panics.
func FuzzKindsOfJSON(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":"x\\","d":[1,{"e":2}]},"g":null}`))
	f.Add([]byte(`{"a.b":1,"a":{"b":"c"}}`))
	f.Add([]byte(`{"a":1E1000}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := kindsIn(JSON, payload)
		var v, rounded any
		d := json.NewDecoder(strings.NewReader(string(payload)))
		d.UseNumber()
		if d.Decode(&v) != nil || d.More() || strings.Contains(string(payload), "\\u") || json.Unmarshal(payload, &rounded) != nil {
			return // decoders refuse it, also if a number is too large for a float64
		}
		want := map[string]bool{}
		wantKinds(v, nil, want)
		for name := range want { // a repeated name may have more kinds than its last value
			if !slices.Contains(got, name) {
				t.Errorf("%s: got %q, which lacks %q", payload, got, name)
			}
		}
		names := map[string]bool{}
		for name := range maps.Keys(want) {
			names[name[:strings.LastIndexByte(name, ' ')]] = true
		}
		for _, name := range got {
			if !names[name[:strings.LastIndexByte(name, ' ')]] && !strings.Contains(string(payload), "{}") && strings.Count(string(payload), ":") == len(want) {
				t.Errorf("%s: got %q, which no decoder finds", payload, name)
			}
		}
	})
}

// wantKinds is what a decoder finds.
func wantKinds(v any, names []string, out map[string]bool) {
	object, ok := v.(map[string]any)
	if !ok {
		if value := codec.ValueOf(v); value.Kind() != codec.KindInvalid {
			out[strings.Join(names, ".")+" "+value.Kind().String()] = true
		}
		return
	}
	if len(names) == maxDepth {
		return
	}
	for name, inner := range object {
		wantKinds(inner, append(slices.Clone(names), name), out)
	}
}

// FuzzKindsOfRecord: a payload that decodes has the fields of its record; no payload panics.
func FuzzKindsOfRecord(f *testing.F) {
	seed, _ := codec.Records().Append(nil, codec.NewRecord(codec.Field{Name: "a", Value: codec.Float(1)}, codec.Field{Name: "b", Value: codec.Str("xyz")},
		codec.Field{Name: "c", Value: codec.Bool(true)}, codec.Field{Name: "d", Value: codec.Uint(1 << 63)}, codec.Field{Name: "e", Value: codec.Int(-1)}))
	f.Add(seed)
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := kindsIn(Record, payload)
		r, err := codec.Records().Decode(payload)
		if err != nil {
			return
		}
		var want []string
		for name, v := range r.All() {
			want = append(want, name+" "+v.Kind().String())
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", payload, got, want)
		}
	})
}
