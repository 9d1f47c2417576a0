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

// decodedNumber is codec.Number for JSON by way of encoding/json, which decodes everything.
func decodedNumber(src []byte, path []string) (x float64, ok bool, err error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return 0, false, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return 0, false, errors.New("more follows")
	}
	for _, name := range path {
		fields, _ := v.(map[string]any)
		v = fields[name]
	}
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true, nil
		}
		return 0, true, nil
	case json.Number:
		x, err := strconv.ParseFloat(v.String(), 64)
		return x, err == nil, err
	}
	return 0, false, nil
}

func sameNumber(t *testing.T, src []byte, path []string) {
	t.Helper()
	want, wantOK, wantErr := decodedNumber(src, path)
	if wantErr != nil {
		want, wantOK = 0, false
	}
	got, ok, err := codec.Number("json", src, path...)
	if math.Float64bits(got) != math.Float64bits(want) || ok != wantOK || (err == nil) != (wantErr == nil) {
		t.Errorf("Number(%.200q, %q) = %v, %v, %v; encoding/json says %v, %v, %v", src, path, got, ok, err, want, wantOK, wantErr)
	}
	if err != nil && !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("Number(%.200q, %q) fails with %v, want ErrCorrupt", src, path, err)
	}
}

// numberTexts are JSON texts that readers of parts often get wrong.
var numberTexts = []string{
	`{"temp_c":21.5,"humidity":40}`, `{"a":1,"a":2}`, `{"a":1,"a":null}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":{"b":1},"a":3}`, `{"b":{"a":1}}`,
	`{"\u0061":7}`, `{"a\u0000":7,"\ud83d\ude00":8,"\ud83d":9,"\ude00\ud83d":10}`, "{\"\xff\":1,\"\ufffd\":2}", `{"😀":3}`, `{"":5}`, `{"a.b":6,"a":{"b":7}}`, `{"\/":1,"\"":2,"\\":3,"\b\f\n\r\t":4}`,
	`0`, `-0`, `-0.0`, `1e5`, `1E+05`, `1e-400`, `1e999`, `-1e999`, `123456789012345678901234567890`, `0.1234567890123456789012345678901234567890`, `9007199254740993`, `01`, `+1`, `.5`, `1.`, `1e`, `1e+`, `-`, `--1`, `0x10`,
	`NaN`, `"NaN"`, `Infinity`, `-Infinity`, `true`, `false`, `null`, `tru`, `truex`, `nul`, `"a"`, `""`, `"`, `"\`, `"\u12`, `"\u12g4"`, `"\x"`, "\"\x01\"", "\"\x7f\"", `[]`, `[1]`, `[1,]`, `[,]`, `[1 2]`, `{}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `[[1],{"a":[{"a":2}]},"x"]`,
	` { "a" : { "b" : [ 1 , 2 ] , "c" : -3.5e2 } } `, "\t\r\n 7 \n", "\v7", "\xef\xbb\xbf7", ``, ` `, `1 2`, `{"a":1}{"a":2}`, `{"a":tru}`, `{"a":"1"}`, `{"b":1e999,"a":1}`, `{"a":1e999,"a":2}`,
}

var numberPaths = [][]string{nil, {"a"}, {"a", "b"}, {"a", "c"}, {"temp_c"}, {"\ufffd"}, {"\xff"}, {"😀"}, {""}, {"a.b"}, {"a\x00"}, {"\ufffd\ufffd"}, {"/"}, {`"`}, {`\`}, {"\b\f\n\r\t"}}

// TestNumberOfJSON: reading one number gives what decoding everything gives.
func TestNumberOfJSON(t *testing.T) {
	for _, text := range numberTexts {
		for _, path := range numberPaths {
			sameNumber(t, []byte(text), path)
		}
	}
	for _, n := range []int{9_999, 10_000, 10_001} {
		for _, brackets := range []string{"[]", `{"a":1}`} {
			begin, end := brackets[:1], brackets[len(brackets)-1:]
			if begin == "{" {
				begin = `{"a":`
			}
			inner := "1"
			sameNumber(t, []byte(strings.Repeat(begin, n)+inner+strings.Repeat(end, n)), []string{"a"})
		}
	}
}

func FuzzNumberOfJSON(f *testing.F) {
	for _, text := range numberTexts {
		f.Add([]byte(text), "a", "b", 2)
		f.Add([]byte(text), "temp_c", "", 1)
		f.Add([]byte(text), "", "", 0)
	}
	f.Fuzz(func(t *testing.T, src []byte, first, second string, n int) {
		path := []string{first, second}
		sameNumber(t, src, path[:max(0, min(n, 2))])
	})
}

// TestNumber: each format has its numbers, and no others.
func TestNumber(t *testing.T) {
	encode := func(out []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	record := encode(codec.Records().Append(nil, codec.NewRecord(
		codec.Field{Name: "a", Value: codec.Int(-3)}, codec.Field{Name: "a.b", Value: codec.Float(1.5)}, codec.Field{Name: "big", Value: codec.Uint(math.MaxUint64)},
		codec.Field{Name: "door", Value: codec.Str("open")}, codec.Field{Name: "nan", Value: codec.Float(math.NaN())}, codec.Field{Name: "on", Value: codec.Bool(true)}, codec.Field{Name: "zero", Value: codec.Bool(false)},
	)))
	for _, tt := range []struct {
		tag  string
		src  []byte
		path string
		want string
	}{
		{"f64", encode(codec.Float64().Append(nil, math.Inf(1))), "", "+Inf true"},
		{"f64", encode(codec.Float64().Append(nil, 2)), "a", "0 false"},
		{"i64", encode(codec.Int64().Append(nil, -5)), "", "-5 true"},
		{"i64", encode(codec.Int64().Append(nil, -5)), "a", "0 false"},
		{"rec", record, "a", "-3 true"},
		{"rec", record, "a/b", "1.5 true"},
		{"rec", record, "a.b", "1.5 true"},
		{"rec", record, "big", "1.8446744073709552e+19 true"},
		{"rec", record, "door", "0 false"},
		{"rec", record, "nan", "NaN true"},
		{"rec", record, "on", "1 true"},
		{"rec", record, "zero", "0 true"},
		{"rec", record, "", "0 false"},
		{"rec", record, "none", "0 false"},
		{"rec", record, "a/b/c", "0 false"},
		{"rec", record, "a/", "0 false"},
		{"rec", []byte{0}, "a", "0 false"},
		{"str", []byte("7"), "", "0 false"},
		{"raw", []byte("7"), "", "0 false"},
		{"json", []byte("7"), "", "7 true"},
	} {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, "/")
		}
		x, ok, err := codec.Number(tt.tag, tt.src, path...)
		if got := fmt.Sprint(x, ok); got != tt.want || err != nil {
			t.Errorf("Number(%s, %q) = %s, %v; want %s", tt.tag, tt.path, got, err, tt.want)
		}
	}
	for tag, src := range map[string]string{"f64": "1", "i64": "123456789", "rec": "\x01\x01a", "json": "{"} {
		_, ok, err := codec.Number(tag, []byte(src), "a")
		if ok {
			t.Errorf("%s: a damaged payload has a number", tag)
		}
		wantCorrupt(t, err, tag, src)
	}
	for _, tag := range []string{"", "pb", "json+zstd"} {
		if _, ok, err := codec.Number(tag, nil); ok || !errors.Is(err, codec.ErrUnknownTag) || !strings.Contains(err.Error(), strconv.Quote(tag)[1:len(tag)+1]) {
			t.Errorf("Number(%q) = %v, want ErrUnknownTag", tag, err)
		}
	}
}

// FuzzNumberOfRecord: a record's number is what decoding the record gives.
func FuzzNumberOfRecord(f *testing.F) {
	src, err := codec.Records().Append(nil, codec.NewRecord(codec.Field{Name: "n", Value: codec.Int(-3)}, codec.Field{Name: "ok", Value: codec.Bool(true)}, codec.Field{Name: "s", Value: codec.Str("x")}, codec.Field{Name: "t", Value: codec.Float(21.5)}))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"n", "ok", "s", "t", "none"} {
		f.Add(src, name)
	}
	f.Fuzz(func(t *testing.T, src []byte, name string) {
		r, wantErr := codec.Records().Decode(src)
		v, wantOK := r.Lookup(name)
		want, isNumber := v.Number()
		if b, isBool := v.Bool(); isBool {
			if isNumber = true; b {
				want = 1
			}
		}
		x, ok, err := codec.Number("rec", src, name)
		if (err == nil) != (wantErr == nil) || ok != (wantOK && isNumber) || math.Float64bits(x) != math.Float64bits(want) {
			t.Errorf("Number = %v, %v, %v; want %v, %v, %v", x, ok, err, want, wantOK && isNumber, wantErr)
		}
	})
}

// TestNumberAllocatesNothing: a query over millions of points leaves no garbage.
func TestNumberAllocatesNothing(t *testing.T) {
	for tag, src := range numberPayloads(t) {
		if n := testing.AllocsPerRun(100, func() {
			if _, ok, err := codec.Number(tag, src, "motor", "temp_c"); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations, want none", tag, n)
		}
	}
}

func numberPayloads(t testing.TB) map[string][]byte {
	fields := []codec.Field{{Name: "motor.temp_c", Value: codec.Float(81.25)}}
	text := `{"motor":{"rpm":1200.5,"temp_c":81.25,"hours":4711},"name":"north \u00e4","on":true`
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

// BenchmarkNumber reads one of twenty fields: by decoding the payload, and alone.
func BenchmarkNumber(b *testing.B) {
	type reading struct {
		Motor struct {
			TempC float64 `json:"temp_c"`
		} `json:"motor"`
	}
	src := numberPayloads(b)
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
		b.Run(tag+"/number", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src[tag])))
			for b.Loop() {
				if x, ok, err := codec.Number(tag, src[tag], "motor", "temp_c"); x != 81.25 || !ok || err != nil {
					b.Fatal(x, ok, err)
				}
			}
		})
	}
}
