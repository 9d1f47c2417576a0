package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

// decodedValue is codec.Lookup for JSON by way of encoding/json, which decodes everything.
func decodedValue(src []byte, name string) (codec.Value, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return codec.Value{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return codec.Value{}, errors.New("more follows")
	}
	if object, isObject := v.(map[string]any); isObject {
		of, ok := fieldOf(object, name)
		if !ok {
			return codec.Value{}, nil
		}
		v = of
	} else if name != "" {
		return codec.Value{}, nil
	}
	if n, isNumber := v.(json.Number); isNumber {
		if _, err := n.Float64(); err != nil {
			return codec.Value{}, err
		}
	}
	return codec.ValueOf(v), nil
}

// fieldOf returns the field of an object with a name: first the one with the longest name of its own.
func fieldOf(object map[string]any, name string) (any, bool) {
	for n := len(name); n >= 0; n-- {
		if n < len(name) && name[n] != '.' {
			continue
		}
		of, ok := object[name[:n]]
		inner, isObject := of.(map[string]any)
		switch {
		case ok && n == len(name) && !isObject:
			return of, true
		case ok && n < len(name) && isObject:
			if of, ok := fieldOf(inner, name[n+1:]); ok {
				return of, true
			}
		}
	}
	return nil, false
}

func sameField(t *testing.T, src []byte, name string) {
	t.Helper()
	want, wantErr := decodedValue(src, name)
	got, err := codec.Lookup("json", src, name)
	if got != want || (err == nil) != (wantErr == nil) {
		t.Errorf("Lookup(%.200q, %q) = %v, %v; encoding/json says %v, %v", src, name, got, err, want, wantErr)
	}
	if err != nil && !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("Lookup(%.200q, %q) fails with %v, want ErrCorrupt", src, name, err)
	}
}

// fieldTexts are JSON texts that readers of parts often get wrong.
var fieldTexts = []string{
	`{"temp_c":21.5,"humidity":40}`, `{"a":1,"a":2}`, `{"a":1,"a":null}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":{"b":1},"a":3}`, `{"b":{"a":1}}`,
	`{"\u0061":7}`, `{"a\u0000":7,"\ud83d\ude00":8,"\ud83d":9,"\ude00\ud83d":10}`, "{\"\xff\":1,\"\ufffd\":2}", `{"😀":3}`, `{"":5}`, `{"a.b":6,"a":{"b":7}}`, `{"\/":1,"\"":2,"\\":3,"\b\f\n\r\t":4}`,
	`0`, `-0`, `-0.0`, `1e5`, `1E+05`, `1e-400`, `1e999`, `-1e999`, `123456789012345678901234567890`, `0.1234567890123456789012345678901234567890`, `9007199254740993`, `01`, `+1`, `.5`, `1.`, `1e`, `1e+`, `-`, `--1`, `0x10`,
	`NaN`, `"NaN"`, `Infinity`, `-Infinity`, `true`, `false`, `null`, `tru`, `truex`, `nul`, `"a"`, `""`, `"`, `"\`, `"\u12`, `"\u12g4"`, `"\x"`, "\"\x01\"", "\"\x7f\"", `[]`, `[1]`, `[1,]`, `[,]`, `[1 2]`, `{}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `[[1],{"a":[{"a":2}]},"x"]`,
	` { "a" : { "b" : [ 1 , 2 ] , "c" : -3.5e2 } } `, "\t\r\n 7 \n", "\v7", "\xef\xbb\xbf7", ``, ` `, `1 2`, `{"a":1}{"a":2}`, `{"a":tru}`, `{"a":"1"}`, `{"b":1e999,"a":1}`, `{"a":1e999,"a":2}`,
	`{"a.b":6,"a":{"b":7,"b.c":1}}`, `{"a":{"b":7},"a.b":{"c":8}}`, `{"a.b":{},"a":{"b":7}}`, `{"a":{"b":{"c":1}},"a.b":{"c":2},"a.b.c":null}`, `{"a":{"b.c":1,"b":{"c":2}}}`, `{"a.b":1,"a":{"b":2},"a.b":{}}`,
	`{"a":{"":3},"":{"a":4,"":5},".a":6}`, `{"\u0061.b":1}`, `{"a\u002eb":2}`, `{"a":"text"}`, `{"a":"\u00e4\n"}`, "{\"a\":\"\xff\"}", `{"a":[1, 2.50 ,{"b":null}]}`, `{"a":[1e999]}`, `{"a":[<>]}`, `{"a":["<&>"]}`, `{"a":100000000000000000000}`, `{"a":18446744073709551615}`,
	`{"a":{"b":{"c":{"d":{"e":{"f":1}}}}},"a.b":{"c.d":{"e":1}},"a.b.c":{"d":{"e.f":2}},"a.b.c.d":{"e":{"f":3}},"a.b.c.d.e":{"f":4}}`,
}

var fieldNames = []string{
	"", "a", "a.b", "a.c", "a.b.c", "a.b.c.d.e.f", "temp_c", "\ufffd", "\xff", "😀", ".", "a.", ".a", "..", "a\x00", "\ufffd\ufffd", "/", `"`, `\`, "\b\f\n\r\t",
}

// TestLookupOfJSON: reading one field gives what decoding everything gives.
func TestLookupOfJSON(t *testing.T) {
	for _, text := range fieldTexts {
		for _, name := range fieldNames {
			sameField(t, []byte(text), name)
		}
	}
	for _, n := range []int{9_999, 10_000, 10_001} {
		for _, brackets := range []string{"[]", `{"a":1}`} {
			begin, end := brackets[:1], brackets[len(brackets)-1:]
			if begin == "{" {
				begin = `{"a":`
			}
			src := []byte(strings.Repeat(begin, n) + "1" + strings.Repeat(end, n))
			sameField(t, src, "a")
		}
	}
}

// TestLookupIsFast: the time of a look-up grows with the payload, however deep it and the name are.
func TestLookupIsFast(t *testing.T) {
	const n = 9_999
	src, name := []byte(strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n)), strings.Repeat("a.", n-1)+"a"
	if v, err := codec.Lookup("json", src, name); v != codec.Int(1) || err != nil {
		t.Errorf("the field within 9,999 objects is %v, %v", v, err)
	}
}

func FuzzLookupOfJSON(f *testing.F) {
	for _, text := range fieldTexts {
		f.Add([]byte(text), "a.b")
		f.Add([]byte(text), "temp_c")
		f.Add([]byte(text), "")
	}
	f.Fuzz(func(t *testing.T, src []byte, name string) { sameField(t, src, name) })
}

// TestLookup: each format has its fields, and no others.
func TestLookup(t *testing.T) {
	encode := func(out []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	fields := []codec.Field{
		{Name: "a", Value: codec.Int(-3)},
		{Name: "a.b", Value: codec.Float(1.5)},
		{Name: "big", Value: codec.Uint(math.MaxUint64)},
		{Name: "door", Value: codec.Str("open")},
		{Name: "nan", Value: codec.Float(math.NaN())},
		{Name: "on", Value: codec.Bool(true)},
		{Name: "zero", Value: codec.Bool(false)},
	}
	record := encode(codec.Records().Append(nil, codec.NewRecord(fields...)))
	for _, tt := range []struct {
		tag  string
		src  []byte
		name string
		want codec.Value
	}{
		{"f64", encode(codec.Float64().Append(nil, math.Inf(1))), "", codec.Float(math.Inf(1))},
		{"f64", encode(codec.Float64().Append(nil, 2)), "a", codec.Value{}},
		{"i64", encode(codec.Int64().Append(nil, 9007199254740993)), "", codec.Int(9007199254740993)},
		{"i64", encode(codec.Int64().Append(nil, -5)), "a", codec.Value{}},
		{"rec", record, "", codec.Value{}},
		{"rec", record, "none", codec.Value{}},
		{"rec", record, "a.b.c", codec.Value{}},
		{"rec", record, "a.", codec.Value{}},
		{"rec", []byte{0}, "a", codec.Value{}},
		{"str", []byte("7"), "", codec.Str("7")},
		{"str", []byte("7"), "a", codec.Value{}},
		{"raw", []byte("7"), "", codec.ValueOf([]byte("7"))},
		{"raw", []byte("7"), "a", codec.Value{}},
		{"json", []byte("7"), "", codec.Int(7)},
		{"json", []byte("null"), "", codec.ValueOf(nil)},
	} {
		if v, err := codec.Lookup(tt.tag, tt.src, tt.name); v != tt.want || err != nil {
			t.Errorf("Lookup(%s, %q) = %v, %v; want %v", tt.tag, tt.name, v, err, tt.want)
		}
	}
	for _, f := range fields {
		if v, err := codec.Lookup("rec", record, f.Name); v != f.Value || err != nil {
			t.Errorf("Lookup(rec, %q) = %v, %v; want %v", f.Name, v, err, f.Value)
		}
	}
	for tag, src := range map[string]string{"f64": "1", "i64": "123456789", "rec": "\x01\x01a", "json": "{", "str": "\xff"} {
		v, err := codec.Lookup(tag, []byte(src), "a")
		if v != (codec.Value{}) {
			t.Errorf("%s: a damaged payload has the field %v", tag, v)
		}
		wantCorrupt(t, err, tag, src)
	}
	for _, tag := range []string{"", "pb", "json+zstd"} {
		if v, err := codec.Lookup(tag, nil, ""); v != (codec.Value{}) || !errors.Is(err, codec.ErrUnknownTag) || !strings.Contains(err.Error(), strconv.Quote(tag)[1:len(tag)+1]) {
			t.Errorf("Lookup(%q) = %v, want ErrUnknownTag", tag, err)
		}
	}
}

// FuzzLookupOfRecord: a record's field is what decoding the record gives.
func FuzzLookupOfRecord(f *testing.F) {
	src, err := codec.Records().Append(nil, codec.NewRecord(codec.Field{Name: "n", Value: codec.Int(-3)}, codec.Field{Name: "ok", Value: codec.Bool(true)}, codec.Field{Name: "s", Value: codec.Str("x")}, codec.Field{Name: "t", Value: codec.Float(21.5)}))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"n", "ok", "s", "t", "none"} {
		f.Add(src, name)
	}
	f.Fuzz(func(t *testing.T, src []byte, name string) {
		r, wantErr := codec.Records().Decode(src)
		want, _ := r.Lookup(name)
		if v, err := codec.Lookup("rec", src, name); (err == nil) != (wantErr == nil) || v != want {
			t.Errorf("Lookup = %v, %v; want %v, %v", v, err, want, wantErr)
		}
	})
}

// TestLookupAllocatesNothing: a query over millions of points leaves no garbage.
func TestLookupAllocatesNothing(t *testing.T) {
	for tag, src := range fieldPayloads(t) {
		for name, want := range map[string]float64{"motor.temp_c": 81.25, "count": 1 << 60} {
			if n := testing.AllocsPerRun(100, func() {
				if v, err := codec.Lookup(tag, src, name); err != nil || v.AsNumber().Kind() == codec.KindInvalid {
					t.Fatal(v, err)
				} else if x, ok := v.Number(); !ok || x != want {
					t.Fatal(v)
				}
			}); n > 0 {
				t.Errorf("%s: %v allocations for %s, want none", tag, n, name)
			}
		}
	}
}

func fieldPayloads(t testing.TB) map[string][]byte {
	fields := []codec.Field{{Name: "motor.temp_c", Value: codec.Float(81.25)}, {Name: "count", Value: codec.Int(1 << 60)}}
	text := `{"motor":{"rpm":1200.5,"temp_c":81.25,"hours":4711},"count":1152921504606846976,"name":"north \u00e4","on":true`
	for i := range 18 {
		fields = append(fields, codec.Field{Name: fmt.Sprintf("field%02d", i), Value: codec.Float(float64(i) + 0.25)})
		text += fmt.Sprintf(`,"field%02d":%v`, i, float64(i)+0.25)
	}
	record, err := codec.Records().Append(nil, codec.NewRecord(fields...))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"json": []byte(text + "}"), "rec": record}
}

// BenchmarkLookup reads one of twenty fields: by decoding the payload, and alone.
func BenchmarkLookup(b *testing.B) {
	type reading struct {
		Motor struct {
			TempC float64 `json:"temp_c"`
		} `json:"motor"`
	}
	src := fieldPayloads(b)
	b.Run("json/decoded", func(b *testing.B) {
		c := codec.JSON[reading]()
		b.ReportAllocs()
		b.SetBytes(int64(len(src["json"])))
		for b.Loop() {
			if v, err := c.Decode(src["json"]); err != nil || v.Motor.TempC != 81.25 {
				b.Fatal(v, err)
			}
		}
	})
	b.Run("rec/decoded", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(src["rec"])))
		for b.Loop() {
			r, err := codec.Records().Decode(src["rec"])
			if v, ok := r.Lookup("motor.temp_c"); !ok || err != nil {
				b.Fatal(v, err)
			}
		}
	})
	for _, tag := range []string{"json", "rec"} {
		b.Run(tag+"/lookup", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src[tag])))
			for b.Loop() {
				if v, err := codec.Lookup(tag, src[tag], "motor.temp_c"); v != codec.Float(81.25) || err != nil {
					b.Fatal(v, err)
				}
			}
		})
	}
}
