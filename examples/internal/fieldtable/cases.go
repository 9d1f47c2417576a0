package fieldtable

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

// field is a field of a JSON object and of a record.
type field struct {
	name  string // joined by dots; of nested objects where JSON has such
	json  string // empty if JSON does not have it
	value codec.Value
	// number is that of text and truths. Numbers are their own.
	number codec.Value
	state  string
	form   form
}

// form says in which payloads a field is.
type form uint8

const (
	both form = iota
	onlyJSON
	onlyRecord
)

var (
	nothing = codec.Value{}
	null    = codec.ValueOf(nil)
)

const exact = 1 << 53

// fields are those of the JSON object and of the record.
var fields = []field{
	// Whole numbers, exactly.
	{name: "zero", json: "0", value: codec.Int(0), state: "0"},
	{name: "minus", json: "-1", value: codec.Int(-1), state: "-1"},
	{name: "below53", json: "9007199254740991", value: codec.Int(exact - 1), state: "9007199254740991"},
	{name: "at53", json: "9007199254740992", value: codec.Int(exact), state: "9007199254740992"},
	{name: "above53", json: "9007199254740993", value: codec.Int(exact + 1), state: "9007199254740993"},
	{name: "farther53", json: "9007199254740995", value: codec.Int(exact + 3), state: "9007199254740995"},
	{name: "minus53", json: "-9007199254740993", value: codec.Int(-exact - 1), state: "-9007199254740993"},
	{name: "most63", json: "9223372036854775807", value: codec.Int(math.MaxInt64), state: "9223372036854775807"},
	{name: "least63", json: "-9223372036854775808", value: codec.Int(math.MinInt64), state: "-9223372036854775808"},
	{name: "above63", json: "9223372036854775808", value: codec.Uint(1 << 63), state: "9223372036854775808"},
	{name: "odd63", json: "9223372036854775809", value: codec.Uint(1<<63 + 1), state: "9223372036854775809"},
	{name: "most64", json: "18446744073709551615", value: codec.Uint(math.MaxUint64), state: "18446744073709551615"},
	{name: "unsigned", json: "7", value: codec.Uint(7), state: "7", form: onlyRecord},

	// Numbers that 64 bits do not hold are floats, whether they have a point or not.
	{name: "above64", json: "18446744073709551616", value: codec.Float(1 << 64), state: "18446744073709552000"},
	{name: "below63", json: "-9223372036854775809", value: codec.Float(math.MinInt64), state: "-9223372036854775808"},
	{name: "e20digits", json: "100000000000000000000", value: codec.Float(1e20), state: "100000000000000000000"},
	{name: "e20", json: "1e20", value: codec.Float(1e20), state: "100000000000000000000"},
	{name: "e21", json: "1e21", value: codec.Float(1e21), state: "1e+21"},
	{name: "largest", json: "1.7976931348623157e308", value: codec.Float(math.MaxFloat64), state: "1.7976931348623157e+308"},

	// Floats.
	{name: "ms", json: "1.7e12", value: codec.Float(1.7e12), state: "1700000000000"},
	{name: "thousand", json: "1E3", value: codec.Float(1000), state: "1000"},
	{name: "million", json: "1000000.0", value: codec.Float(1e6), state: "1000000"},
	{name: "whole", json: "7.0", value: codec.Float(7), state: "7"},
	{name: "exponent", json: "7e0", value: codec.Float(7), state: "7"},
	{name: "minuszero", json: "-0.0", value: codec.Float(math.Copysign(0, -1)), state: "0"},
	{name: "half", json: "0.5", value: codec.Float(0.5), state: "0.5"},
	{name: "tenth", json: "0.1", value: codec.Float(0.1), state: "0.1"},
	{name: "third", json: "0.3333333333333333", value: codec.Float(1.0 / 3), state: "0.3333333333333333"},
	{name: "small", json: "1e-7", value: codec.Float(1e-7), state: "1e-7"},
	{name: "least", json: "5e-324", value: codec.Float(5e-324), state: "5e-324"},
	{name: "nan", value: codec.Float(math.NaN()), state: "NaN", form: onlyRecord},
	{name: "infinite", value: codec.Float(math.Inf(1)), state: "+Inf", form: onlyRecord},
	{name: "minusinfinite", value: codec.Float(math.Inf(-1)), state: "-Inf", form: onlyRecord},

	// Truths are 0 and 1 where a number is wanted.
	{name: "yes", json: "true", value: codec.Bool(true), number: codec.Int(1), state: "true"},
	{name: "no", json: "false", value: codec.Bool(false), number: codec.Int(0), state: "false"},

	// Text. Decimal text is a number where a number is wanted, and text elsewhere.
	{name: "word", json: `"abc"`, value: codec.Str("abc"), state: "abc"},
	{name: "empty", json: `""`, value: codec.Str("")},
	{name: "decimal", json: `"21.5"`, value: codec.Str("21.5"), number: codec.Float(21.5), state: "21.5"},
	{name: "decimal53", json: `"9007199254740993"`, value: codec.Str("9007199254740993"), number: codec.Int(exact + 1), state: "9007199254740993"},
	{name: "decimal64", json: `"18446744073709551615"`, value: codec.Str("18446744073709551615"), number: codec.Uint(math.MaxUint64), state: "18446744073709551615"},
	{name: "decimalminus", json: `"-7"`, value: codec.Str("-7"), number: codec.Int(-7), state: "-7"},
	{name: "decimalexp", json: `"1e3"`, value: codec.Str("1e3"), number: codec.Float(1000), state: "1e3"},
	{name: "spaced", json: `" 7"`, value: codec.Str(" 7"), state: " 7"},
	{name: "hex", json: `"0x10"`, value: codec.Str("0x10"), state: "0x10"},
	{name: "under", json: `"1_000"`, value: codec.Str("1_000"), state: "1_000"},
	{name: "nantext", json: `"NaN"`, value: codec.Str("NaN"), state: "NaN"},
	{name: "inftext", json: `"Infinity"`, value: codec.Str("Infinity"), state: "Infinity"},
	{name: "truetext", json: `"true"`, value: codec.Str("true"), state: "true"},
	{name: "quoted", json: `"a\"b\\c<d>"`, value: codec.Str(`a"b\c<d>`), state: `a"b\c<d>`},
	{name: "wide", json: `"grün ☀"`, value: codec.Str("grün ☀"), state: "grün ☀"},
	{name: "instant", json: `"2026-06-01T12:00:00Z"`, value: codec.Str("2026-06-01T12:00:00Z"), state: "2026-06-01T12:00:00Z"},

	// Nothing is neither 0 nor empty text.
	{name: "null", json: "null", value: null, form: onlyJSON},
	{name: "absent"},
	{name: "object", json: "{}", form: onlyJSON},
	{name: "list", json: `[1,"a",null]`, value: codec.ValueOf([]any{1, "a", nil}), form: onlyJSON},

	// Nested fields, and names with dots.
	{name: "motor.temp_c", json: "61.5", value: codec.Float(61.5), state: "61.5"},
	{name: "motor.count", json: "9007199254740993", value: codec.Int(exact + 1), state: "9007199254740993"},
	{name: "motor.broken", json: "null", value: null, form: onlyJSON},
	{name: "a.b.c.d", json: `"deep"`, value: codec.Str("deep"), state: "deep"},
	{name: dotted + "gps.lat", json: "52.5", value: codec.Float(52.5), state: "52.5"},
	{name: "attributes." + dotted + "host.name", json: `"roof"`, value: codec.Str("roof"), state: "roof"},
}

// dotted begins the part of a name whose dots are part of one name in JSON.
const dotted = "!"

func (f field) cell() Cell {
	w := Want{Value: f.value, Number: f.number, State: f.state}
	switch f.value.Kind() {
	case codec.KindInt, codec.KindUint, codec.KindFloat:
		w.Number = f.value
	}
	return Cell{Field: strings.ReplaceAll(f.name, dotted, ""), Want: w}
}

func jsonCells() (cells []Cell) {
	for _, f := range fields {
		if f.form != onlyRecord {
			cells = append(cells, f.cell())
		}
	}
	return cells
}

func recordCells() (cells []Cell) {
	for _, f := range fields {
		if f.form != onlyJSON {
			cells = append(cells, f.cell())
		}
	}
	return cells
}

// jsonPayload returns the fields as one object, in their order.
func jsonPayload() []byte {
	root := &node{}
	for _, f := range fields {
		if f.json != "" && f.form != onlyRecord {
			outer, literal, _ := strings.Cut(f.name, dotted)
			names := strings.Split(strings.TrimSuffix(outer, "."), ".")
			if literal != "" {
				names = append(names, literal)
			}
			if outer == "" {
				names = names[1:]
			}
			root.at(names).json = f.json
		}
	}
	return []byte(root.text())
}

// node is a value of JSON text, or an object.
type node struct {
	name, json string
	of         []*node
}

func (n *node) at(names []string) *node {
	if len(names) == 0 {
		return n
	}
	for _, inner := range n.of {
		if inner.name == names[0] {
			return inner.at(names[1:])
		}
	}
	inner := &node{name: names[0]}
	n.of = append(n.of, inner)
	return inner.at(names[1:])
}

func (n *node) text() string {
	if n.json != "" {
		return n.json
	}
	parts := make([]string, len(n.of))
	for i, inner := range n.of {
		parts[i] = `"` + inner.name + `":` + inner.text()
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func recordPayload() codec.Record {
	var all []codec.Field
	for _, f := range fields {
		if f.form != onlyJSON && f.value != nothing {
			all = append(all, codec.Field{Name: strings.ReplaceAll(f.name, dotted, ""), Value: f.value})
		}
	}
	return codec.NewRecord(all...)
}

// singles are payloads that are one value: of f64, i64, str and raw, and those of JSON that are no objects.
func singles(t testing.TB) []payload {
	var floats, ints, texts, json []payload
	one := func(dataset, tag string, data []byte, w Want) payload {
		return payload{dataset, tag, data, []Cell{{Want: w}}}
	}
	for _, f := range fields {
		w := f.cell().Want
		if i, ok := f.value.Int(); ok && f.value.Kind() == codec.KindInt {
			ints = append(ints, one("t_i64", "i64", encoded(t, codec.Int64(), i), w))
		}
		if x, ok := f.value.Float(); ok {
			floats = append(floats, one("t_f64", "f64", encoded(t, codec.Float64(), x), w))
		}
		if s, ok := f.value.Str(); ok {
			texts = append(texts, one("t_str", "str", encoded(t, codec.String(), s), w))
		}
		if f.json != "" && f.form != onlyRecord && f.name != "object" {
			json = append(json, one("t_value", "json", []byte(f.json), w))
		}
	}
	bytes := []byte{0, 1, 254, 255}
	return append(slices.Concat(floats, ints, texts, json), one("t_raw", "raw", bytes, Want{Value: codec.ValueOf(bytes)}))
}
