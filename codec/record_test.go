package codec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
)

func field(name string, v codec.Value) codec.Field { return codec.Field{Name: name, Value: v} }

func TestRecords(t *testing.T) {
	one := func(v codec.Value) codec.Record { return codec.NewRecord(field("a", v)) }
	contract(t, codec.Records(), codec.Record.Equal, []stored[codec.Record]{
		{"empty", codec.Record{}, "\x00"},
		{
			"the documented example",
			codec.NewRecord(field("temp", codec.Float(21.5)), field("n", codec.Int(-3)), field("ok", codec.Bool(true))),
			"\x03\x01ni\x05\x02okT\x04tempf\x40\x35\x80\x00\x00\x00\x00\x00",
		},
		{"nan", one(codec.Float(math.Float64frombits(0x7ff8000000000001))), "\x01\x01af\x7f\xf8\x00\x00\x00\x00\x00\x01"},
		{"infinity", one(codec.Float(math.Inf(1))), "\x01\x01af\x7f\xf0\x00\x00\x00\x00\x00\x00"},
		{"minus zero", one(codec.Float(math.Copysign(0, -1))), "\x01\x01af\x80\x00\x00\x00\x00\x00\x00\x00"},
		{"above 2^53", one(codec.Int(1<<53 + 1)), "\x01\x01ai\x82\x80\x80\x80\x80\x80\x80\x20"},
		{"least int", one(codec.Int(math.MinInt64)), "\x01\x01ai\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{"greatest uint", one(codec.Uint(math.MaxUint64)), "\x01\x01au\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{
			"text", codec.NewRecord(field("ä", codec.Str("Zürich")), field("b", codec.Str(""))),
			"\x02\x01bs\x00\x02\xc3\xa4s\x07Z\xc3\xbcrich",
		},
		{"truths", codec.NewRecord(field("a", codec.Bool(false)), field("b", codec.Bool(true))), "\x02\x01aF\x01bT"},
	}, nil)
}

func TestRecordsRefuseDamage(t *testing.T) {
	tooMany := "\x81\x08"
	for i := range 1025 {
		tooMany += fmt.Sprintf("\x04%04dF", i)
	}
	const endless = "\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, tt := range []struct{ name, src, cause string }{
		{"no count", "", "ends within"},
		{"count does not end", "\x80", "ends within"},
		{"count of zero in two bytes", "\x80\x00", "more bytes than it needs"},
		{"bytes after a field", "\x01\x01aF\x00", "after the last field"},
		{"bytes after no field", "\x00\x00", "after the last field"},
		{"no fields", "\x01", "more fields than"},
		{"too few fields", "\x02\x01aF", "more fields than"},
		{"1025 fields", tooMany, "more fields than"},
		{"2^64-1 fields", endless + "\x01aF", "more fields than"},
		{"no name", "\x01\x00s\x01x", "without a name"},
		{"name runs off", "\x01\x05aF1", "ends within"},
		{"name is not UTF-8", "\x01\x01\xffF", "UTF-8"},
		{"no type", "\x01\x02ab", "ends within"},
		{"unknown type", "\x01\x01ax", "unknown type"},
		{"not in order", "\x02\x01bF\x01aF", "order"},
		{"twice", "\x02\x01aF\x01aT", "order"},
		{"float runs off", "\x01\x01af1234567", "ends within"},
		{"int runs off", "\x01\x01ai\x80", "ends within"},
		{"int longer than it need be", "\x01\x01ai\x81\x00", "more bytes than it needs"},
		{"uint above 64 bits", "\x01\x01au" + endless + "\x02", "above 64 bits"},
		{"uint of eleven bytes", "\x01\x01au" + endless + "\xff\x01", "above 64 bits"},
		{"text runs off", "\x01\x01as\x05abcd", "ends within"},
		{"text of 2^64-1 bytes", "\x01\x01as" + endless + "\x01", "ends within"},
		{"text is not UTF-8", "\x01\x01as\x01\xff", "UTF-8"},
	} {
		_, err := codec.Records().Decode([]byte(tt.src))
		wantCorrupt(t, err, "rec", tt.src)
		if !strings.Contains(err.Error(), tt.cause) {
			t.Errorf("%s: %v, want a cause like %q", tt.name, err, tt.cause)
		}
	}
}

func TestRecordsRefuse(t *testing.T) {
	many := make([]codec.Field, codec.MaxFields+1)
	for i := range many {
		many[i] = field(fmt.Sprintf("f%04d", i), codec.Bool(true))
	}
	if _, err := codec.Append(codec.Records(), nil, codec.NewRecord(many[1:]...)); err != nil {
		t.Errorf("Append of %d fields = %v, want nil", codec.MaxFields, err)
	}
	long := codec.NewRecord(field(strings.Repeat("n", 255), codec.Int(1)))
	if _, err := codec.Append(codec.Records(), nil, long); err != nil {
		t.Errorf("Append of a name of 255 bytes = %v, want nil", err)
	}
	for _, tt := range []struct {
		part string
		r    codec.Record
	}{
		{"fields is 1025", codec.NewRecord(many...)},
		{"field name is empty", codec.NewRecord(field("", codec.Int(1)))},
		{"(256 bytes)", codec.NewRecord(field(strings.Repeat("n", 256), codec.Int(1)))},
		{"field name", codec.NewRecord(field("\xff", codec.Int(1)))},
		{`field "a" is the zero Value`, codec.NewRecord(field("a", codec.Value{}))},
		{`field "a"`, codec.NewRecord(field("a", codec.Str("\xff")))},
	} {
		out, err := codec.Append(codec.Records(), nil, tt.r)
		wantEncode(t, out, err, "rec", tt.part)
	}
}

func TestRecordDecodeAllocatesInProportion(t *testing.T) {
	src := []byte("\x80\x08\x01aF") // claims 1024 fields
	if got := testing.AllocsPerRun(100, func() { _, _ = codec.Records().Decode(src) }); got > 3 {
		t.Errorf("a payload of 5 bytes made %v allocations, want only those of its error", got)
	}
}

func TestRecordIsAValue(t *testing.T) {
	in := []codec.Field{field("b", codec.Int(1)), field("a", codec.Int(2)), field("b", codec.Int(3))}
	r := codec.NewRecord(in...)
	if in[0] != field("b", codec.Int(1)) {
		t.Error("NewRecord sorted the caller's slice")
	}
	in[1].Value = codec.Int(99)
	ordered := []codec.Field{field("a", codec.Int(2)), field("b", codec.Int(3))}
	o := codec.NewRecord(ordered...)
	ordered[0].Value = codec.Int(99)
	want := "{a=2i b=3i}"
	if r.String() != want || o.String() != want || r.Len() != 2 || !r.Equal(o) {
		t.Fatalf("NewRecord = %v and %v, want %s: the later of two values counts", r, o, want)
	}
	other := codec.NewRecord(field("aa", codec.Int(1)), field("b", codec.Float(1.5)))
	for name, tt := range map[string]struct {
		got  codec.Record
		want string
	}{
		"With new first":  {r.With("Z", codec.Bool(true)), "{Z=true a=2i b=3i}"},
		"With new last":   {r.With("c", codec.Str("x")), `{a=2i b=3i c="x"}`},
		"With old":        {r.With("a", codec.Uint(5)), "{a=5u b=3i}"},
		"Merge":           {r.Merge(other), "{a=2i aa=1i b=1.5}"},
		"Merge into":      {codec.NewRecord(field("0", codec.Int(0)), field("a", codec.Int(7))).Merge(r), "{0=0i a=2i b=3i}"},
		"Merge empty":     {r.Merge(codec.Record{}), want},
		"Merge to empty":  {codec.Record{}.Merge(r), want},
		"Merge with self": {r.Merge(r), want},
		"zero":            {codec.Record{}.With("a", codec.Int(1)), "{a=1i}"},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("%s = %v, want %s", name, tt.got, tt.want)
		}
		if r.String() != want {
			t.Fatalf("after %s the record itself is %v, want %s", name, r, want)
		}
	}
	for name := range r.All() {
		if name != "a" {
			t.Errorf("All continued with %q after a break", name)
		}
		break
	}
	if v, ok := r.Lookup("zz"); ok || v != (codec.Value{}) {
		t.Errorf("Lookup of a missing name = %v, %v", v, ok)
	}
}

// TestMergeAgainstAMap compares Merge and With with a map, which cannot get an order wrong.
func TestMergeAgainstAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var a, b codec.Record
		want := map[string]codec.Value{}
		for range rnd.IntN(6) {
			name, v := string(rune('a'+rnd.IntN(8))), codec.Int(rnd.Int64())
			a, want[name] = a.With(name, v), v
		}
		for range rnd.IntN(6) {
			name, v := string(rune('a'+rnd.IntN(8))), codec.Float(rnd.Float64())
			b, want[name] = b.With(name, v), v
		}
		if got := a.Merge(b); !got.Equal(recordOf(want)) {
			t.Fatalf("%v.Merge(%v) = %v, want %v", a, b, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	if b, ok := codec.Int(1).Bool(); b || ok {
		t.Errorf("Int(1).Bool() = %v, %v, want false, false", b, ok)
	}
	for _, tt := range []struct {
		v      codec.Value
		kind   string
		text   string
		number float64
	}{
		{codec.Value{}, "invalid", "invalid", math.NaN()},
		{codec.Float(-21.5), "float", "-21.5", -21.5},
		{codec.Int(-40), "int", "-40i", -40},
		{codec.Uint(math.MaxUint64), "uint", "18446744073709551615u", math.MaxUint64},
		{codec.Str("a\n"), "str", `"a\n"`, math.NaN()},
		{codec.Bool(true), "bool", "true", math.NaN()},
		{codec.Bool(false), "bool", "false", math.NaN()},
	} {
		if tt.v.Kind().String() != tt.kind || tt.v.String() != tt.text {
			t.Errorf("%v is %v, want %s of kind %s", tt.v, tt.v.Kind(), tt.text, tt.kind)
		}
		if n, ok := tt.v.Number(); ok == math.IsNaN(tt.number) || ok && n != tt.number {
			t.Errorf("%v.Number() = %v, %v, want %v", tt.v, n, ok, tt.number)
		}
		_, isFloat := tt.v.Float()
		_, isInt := tt.v.Int()
		_, isUint := tt.v.Uint()
		_, isStr := tt.v.Str()
		_, isBool := tt.v.Bool()
		got := map[codec.Kind]bool{
			codec.KindFloat: isFloat, codec.KindInt: isInt, codec.KindUint: isUint, codec.KindStr: isStr, codec.KindBool: isBool,
		}
		for kind, is := range got {
			if is != (kind == tt.v.Kind()) {
				t.Errorf("%v returns %v as %v", tt.v, is, kind)
			}
		}
	}
	zero, minusZero, nan := codec.Float(0), codec.Float(math.Copysign(0, -1)), codec.Float(math.NaN())
	if codec.Int(1) == codec.Uint(1) || zero == minusZero || nan != codec.Float(math.NaN()) {
		t.Error("values are not equal by kind and bits")
	}
	if got := codec.Kind(99).String(); got != "kind 99" {
		t.Errorf("Kind(99) = %q", got)
	}
}

func TestRecordJSON(t *testing.T) {
	r := codec.NewRecord(
		field("f", codec.Float(3)), field("e", codec.Float(1e300)), field("i", codec.Int(1<<53+1)),
		field("u", codec.Uint(math.MaxUint64)), field("s", codec.Str(`"x"`)), field("b", codec.Bool(false)),
		field("z", codec.Float(math.Copysign(0, -1))),
	)
	const text = `{"b":false,"e":1e+300,"f":3.0,"i":9007199254740993,"s":"\"x\"","u":18446744073709551615,"z":-0.0}`
	got, err := json.Marshal(r)
	if err != nil || string(got) != text {
		t.Errorf("Marshal = %s, %v, want %s", got, err, text)
	}
	var back codec.Record
	if err := json.Unmarshal(got, &back); err != nil || !back.Equal(r) {
		t.Errorf("Unmarshal = %v, %v, want %v", back, err, r)
	}
	if err := json.Unmarshal([]byte("null"), &back); err != nil || !back.Equal(r) {
		t.Errorf("Unmarshal of null = %v, %v, want no change", back, err)
	}
	for _, bad := range []string{
		`[]`, `{"a":[1]}`, `{"a":{}}`, `{"a":1e999}`, `{} {}`, ``, `{`,
	} {
		if err := new(codec.Record).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("UnmarshalJSON(%s) = nil, want an error", bad)
		}
	}
	lenient := `{"a":null,"b":100000000000000000000,"c":-18446744073709551616,"d":1.7e12}`
	want := codec.NewRecord(field("b", codec.Float(1e20)), field("c", codec.Float(-1<<64)), field("d", codec.Float(1.7e12)))
	if err := json.Unmarshal([]byte(lenient), &back); err != nil || !back.Equal(want) {
		t.Errorf("Unmarshal(%s) = %v, %v, want %v: null is no field, and a long integer is the nearest float", lenient, back, err, want)
	}
	for range 20 {
		err := json.Unmarshal([]byte(`{"d":[],"c":1e999,"b":{},"a":1}`), &back)
		if err == nil || !strings.Contains(err.Error(), `field "b"`) {
			t.Fatalf("Unmarshal names %v, want the first bad field by name each time", err)
		}
	}
	for _, v := range []codec.Value{codec.Float(math.NaN()), codec.Float(math.Inf(1)), {}} {
		out, err := codec.NewRecord(field("a", v)).MarshalJSON()
		wantEncode(t, out, err, "json", `field "a"`)
	}
}

// recordOf returns a record with the map's names and values.
func recordOf(values map[string]codec.Value) codec.Record {
	fields := make([]codec.Field, 0, len(values))
	for name, v := range values {
		fields = append(fields, codec.Field{Name: name, Value: v})
	}
	return codec.NewRecord(fields...)
}
