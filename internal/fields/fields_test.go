package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
)

type Base struct {
	ID   string `json:"id,omitempty"`
	Temp int    `json:"temp"` // hidden by that of reading
}

type reading struct {
	Base
	Temp  float64           `json:"temp"`
	Door  *bool             `json:"door,omitempty"`
	Motor motor             `json:"motor"`
	Tags  map[string]string `json:"tags,omitempty"`
	List  []int             `json:"a.b,omitempty"`
	Any   any               `json:"a#b%,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
	When  time.Time         `json:"when"`
	Self  *reading          `json:"self,omitempty"`
	Not   int               `json:"-"`
}

type motor struct {
	RPM  int     `json:"rpm"`
	Temp float32 `json:"temp"`
}

// split returns the fields of a payload as text, in their order.
func split(t *testing.T, format string, s *Shape, payload []byte) (all []string, parts []Part) {
	t.Helper()
	seen := map[string]bool{}
	if err := Split(format, s, payload, func(path string, raw []byte) {
		if seen[path] {
			t.Errorf("%q has the path %q twice", payload, path)
		}
		seen[path] = true
		all, parts = append(all, fmt.Sprintf("%s=%s", path, raw)), append(parts, Part{path, raw})
	}); err != nil {
		t.Fatalf("Split(%q): %v", payload, err)
	}
	return all, parts
}

func TestSplitJSON(t *testing.T) {
	shape := OfJSON(reflect.TypeFor[reading]())
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	for _, tt := range []struct {
		shape      *Shape
		text, want string
	}{
		{nil, `{"a":1,"b":{"c":[1,{"d":2}],"e":{}},"f":null}`, `a=1 b#c=[1,{"d":2}] f=null`},
		{nil, ` { "a" : "x\"}," , "b" : -1.5e3 } `, `a="x\"}," b=-1.5e3`},
		{nil, `{"a.b":1,"a":{"b":2},"c#d%":3,"":4,"g":{"":5}}`, `a.b=1 a#b=2 c%23d%25=3 %=4 g#%=5`},
		{nil, `{"a":1,"a":{"b":2}}`, `a#b=2`},
		{nil, `{"a":{"b":2,"c":3},"a":{"b":4}}`, `a#b=4`},
		{nil, `{"a":{"b":2},"a":7,"\u0061":8}`, `a=8`},
		{nil, `[1,2]`, `=[1,2]`},
		{nil, ` 7 `, `=7`},
		{nil, `null`, `=null`},
		{nil, `{}`, ``},
		{nil, deep, strings.Repeat("a#", 15) + `a={"a":{"a":{"a":{"a":1}}}}`},
		{shape, `{"temp":1,"ID":"x","unknown":{"temp":3},"motor":{"rpm":2,"TEMP":4}}`, `temp=1 id="x" motor#rpm=2 motor#temp=4`},
		{shape, `{"temp":1,"temp":2,"motor":{"rpm":1},"motor":{"temp":3}}`, `temp=2 motor#rpm=1 motor#temp=3`},
		{shape, `{"tags":{"a":"b"},"self":{"temp":1},"a.b":[1],"a#b%":{"x":{}}}`, `tags={"a":"b"} self={"temp":1} a.b=[1] a%23b%25={"x":{}}`},
		{shape, `{"motor":null,"door":null}`, `motor#rpm=null motor#temp=null door=null`},
		{OfJSON(reflect.TypeFor[[]int]()), `[1,2]`, `=[1,2]`},
	} {
		got, parts := split(t, JSON, tt.shape, []byte(tt.text))
		slices.Sort(got)
		want := strings.Split(tt.want, " ")
		if tt.want == "" {
			want = nil
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the fields\n%q, want\n%q", tt.text, got, want)
		}
		joined, err := Join(JSON, parts)
		if again, _ := split(t, JSON, tt.shape, joined); err != nil || !same(got, again) {
			t.Errorf("%s joined is %s with %q, %v", tt.text, joined, again, err)
		}
	}
}

func same(a, b []string) bool {
	b = slices.Clone(b)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestShapeOfJSON(t *testing.T) {
	var got []string
	for _, l := range OfJSON(reflect.TypeFor[*reading]()).Leaves {
		got = append(got, l.Name+":"+l.Kind)
	}
	want := "id:str temp:float door:bool motor.rpm:int motor.temp:float tags: a.b:list a#b%: raw: when:str self:"
	if strings.Join(got, " ") != want {
		t.Errorf("the fields are\n%s, want\n%s", strings.Join(got, " "), want)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[map[string]int](), reflect.TypeFor[codec.Record](), nil} {
		if s := OfJSON(typ); s != nil {
			t.Errorf("%v has the fixed fields %v", typ, s.Leaves)
		}
	}
	var wide []reflect.StructField
	for i := range 40 {
		wide = append(wide, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int]()})
	}
	of := reflect.StructOf(wide)
	for i := range wide {
		wide[i].Type = of
	}
	if n := len(OfJSON(reflect.StructOf(wide)).Leaves); n != 40 {
		t.Errorf("a struct with 1,600 numbers has %d fields, want the 40 outer ones", n)
	}
}

// The kinds of a type are those of the texts that package json makes of it, also with the option string.
func TestKindsOfJSONAreThoseOfTexts(t *testing.T) {
	yes, n := true, 7
	v := struct {
		Count  uint64      `json:"count,string"`
		On     *bool       `json:"on,omitempty,string"`
		Number json.Number `json:"number"`
		Half   float32     `json:"half"`
		Half2  float64     `json:"half2,string"`
		Text   string      `json:"text"`
		Len    *int        `json:"len"`
		Bytes  []byte      `json:"bytes"`
		List   []int       `json:"list"`
		When   time.Time   `json:"when"`
		Took   time.Duration
	}{1, &yes, "1.5", .5, .5, "x", &n, []byte("b"), []int{1}, time.Unix(0, 0), time.Second}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]codec.Kind{}
	Kinds(JSON, text, func(name []byte, k codec.Kind) { kinds[string(name)] = k })
	s := OfJSON(reflect.TypeOf(v))
	for _, l := range s.Leaves {
		if k := l.KindOf(); k != kinds[l.Name] && (k != codec.KindInvalid || l.Name != "number") {
			t.Errorf("%s is %v by its type and %v in %s", l.Name, k, kinds[l.Name], text)
		}
	}
	if len(kinds) != len(s.Leaves) || s.Typed {
		t.Errorf("%d kinds of %d fields; typed is %v, although a json.Number may be any number", len(kinds), len(s.Leaves), s.Typed)
	}
}

func TestShapeText(t *testing.T) {
	for _, s := range []*Shape{OfJSON(reflect.TypeFor[reading]()), OfMessage((&descriptorpb.FieldDescriptorProto{}).ProtoReflect().Descriptor()), OfMessage(tank(t))} {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Shape
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, s) {
			t.Errorf("the shape is not the same after %s: %v", text, err)
		}
	}
	for _, bad := range []string{`[{"path":"a"},{"path":"a"}]`, `[{"path":"a"},{"path":"a#b"}]`, `[{"path":"a#b"},{"path":"a"}]`, `[{"path":""},{"path":"a"}]`, `{}`} {
		if err := new(Shape).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestRecord(t *testing.T) {
	r := codec.NewRecord(
		codec.Field{Name: "a.b", Value: codec.Int(-5)}, codec.Field{Name: "a#%", Value: codec.Str("x")},
		codec.Field{Name: "f", Value: codec.Float(1.5)}, codec.Field{Name: "t", Value: codec.Bool(true)}, codec.Field{Name: "u", Value: codec.Uint(1 << 63)},
	)
	payload, err := codec.Records().Append(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	got, parts := split(t, Record, nil, payload)
	if len(got) != 5 || got[0] != "a%23%25=s\x01x" {
		t.Errorf("the fields are %q", got)
	}
	slices.Reverse(parts)
	joined, err := Join(Record, parts)
	if back, e := codec.Records().Decode(joined); err != nil || e != nil || !back.Equal(r) {
		t.Errorf("joined: %v, %v, %v, want %v", back, err, e, r)
	}
	if empty, err := Join(Record, nil); err != nil || string(empty) != "\x00" {
		t.Errorf("no fields are the record %q, %v", empty, err)
	}
}

func TestOneField(t *testing.T) {
	for _, format := range []string{"f64", "i64", "str", "raw", "else", Proto} {
		got, parts := split(t, format, nil, []byte("12345678"))
		joined, err := Join(format, parts)
		if len(got) != 1 || got[0] != "=12345678" || string(joined) != "12345678" || err != nil {
			t.Errorf("%s: %q, joined %q, %v", format, got, joined, err)
		}
	}
}

func TestDamage(t *testing.T) {
	shape := OfMessage(tank(t))
	for _, tt := range []struct {
		format, payload string
		shape           *Shape
	}{
		{JSON, `{"a":`, nil},
		{JSON, `{"a`, nil},
		{JSON, `{"a":{`, nil},
		{JSON, `{,}`, nil},
		{JSON, ``, nil},
		{JSON, `{"a" 1}`, nil},
		{JSON, `{"a":1 "b":2}`, nil},
		{Record, "", nil},
		{Record, "\x01", nil},
		{Record, "\x01\x05a", nil},
		{Record, "\x01\x01af123", nil},
		{Record, "\x01\x01as\xff\xff\xff\xff\xff\xff\xff\xff\x7f", nil},
		{Proto, "\x08", shape},
		{Proto, "\x0a\x05a", shape},
	} {
		if err := Split(tt.format, tt.shape, []byte(tt.payload), func(string, []byte) {}); err == nil {
			t.Errorf("%s %q is split without an error", tt.format, tt.payload)
		}
	}
}

func TestSplitProto(t *testing.T) {
	m := tank(t)
	shape := OfMessage(m)
	for _, tt := range []struct{ text, want string }{
		{``, `level list map`},
		{`level: 0`, `level list map`},
		{`maybe: 0 motor {}`, `level list map maybe motor.rpm`},
		{`level: 5 motor { rpm: 3 hot: 1 } list: 1 list: 2 map { key: "a" value: 1 } big { seconds: 4 }`, `big level list map maybe? motor.hot motor.rpm`},
		{`valve: 7`, `level list map valve`},
		{`inlet { rpm: 1 }`, `inlet.rpm level list map`},
	} {
		want := parse(t, m, tt.text)
		payload := wire(t, want)
		var names []string
		_, parts := split(t, Proto, shape, payload)
		for _, p := range parts {
			names = append(names, shape.Name(p.Path))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != strings.ReplaceAll(tt.want, "maybe? ", "") {
			t.Errorf("%s has the fields %s, want %s", tt.text, got, tt.want)
		}
		joined, _ := Join(Proto, parts)
		if got := decode(t, m, joined); !proto.Equal(got, want) {
			t.Errorf("%s joined is %v", tt.text, got)
		}
	}
	// The last field of a oneof counts, and messages on the wire twice are merged.
	twice := slices.Concat(wire(t, parse(t, m, `inlet { rpm: 1 } motor { rpm: 3 }`)), wire(t, parse(t, m, `valve: 7 motor { hot: 2 }`)))
	_, parts := split(t, Proto, shape, twice)
	joined, _ := Join(Proto, parts)
	if got := decode(t, m, joined); !proto.Equal(got, decode(t, m, twice)) {
		t.Errorf("fields on the wire twice are %v", got)
	}
}

// TestNewest: the newest value of each field counts, and excludes what cannot be beside it.
func TestNewest(t *testing.T) {
	m := tank(t)
	for _, tt := range []struct {
		format string
		shape  *Shape
		points []string // newest first
		want   string
		times  string
	}{
		{JSON, nil, []string{`{"a":1}`, `{"a":2,"b":3}`}, `{"b":3,"a":1}`, "a@2 b@1"},
		{JSON, nil, []string{`{"a":{"b":1}}`, `{"a":5,"c":6}`, `{"a":{"d":2}}`}, `{"a":{"d":2,"b":1},"c":6}`, "a.b@3 a.d@1 c@2"},
		{JSON, nil, []string{`{"a":5}`, `{"a":{"b":1}}`}, `{"a":5}`, "a@2"},
		{JSON, nil, []string{`7`, `{"a":1}`}, `7`, "@2"},
		{JSON, nil, []string{`{"a":1}`, `7`}, `{"a":1}`, "a@2"},
		{JSON, nil, []string{`{"a":{"b":1}}`, `{"a.b":2}`}, `{"a.b":2,"a":{"b":1}}`, "a.b@1"},
		{Proto, OfMessage(m), []string{`level: 0`, `level: 5 valve: 3`, `inlet { rpm: 4 } maybe: 6`}, `valve: 3 maybe: 6`, "level@3 list@3 map@3 maybe@1 valve@2"},
		{Proto, OfMessage(m), []string{`inlet { hot: 1 }`, `valve: 3`, `inlet { rpm: 9 hot: 2 }`}, `inlet { hot: 1 }`, "inlet.hot@3 inlet.rpm@3 level@3 list@3 map@3"},
	} {
		n := NewNewest(tt.shape, 0)
		for i, p := range tt.points {
			payload := []byte(p)
			if tt.format == Proto {
				payload = wire(t, parse(t, m, p))
			}
			if err := Split(tt.format, tt.shape, payload, func(path string, raw []byte) { n.Add(path, raw, int64(len(tt.points)-i)) }); err != nil {
				t.Fatal(err)
			}
		}
		joined, err := n.Join(tt.format)
		got := string(joined)
		if tt.format == Proto {
			if v := decode(t, m, joined); proto.Equal(v, parse(t, m, tt.want)) {
				got = tt.want
			} else {
				got = fmt.Sprint(v)
			}
		}
		var times []string
		for _, f := range n.Times() {
			times = append(times, fmt.Sprintf("%s@%d", f.Name, f.Units))
		}
		if err != nil || got != tt.want || strings.Join(times, " ") != tt.times {
			t.Errorf("%q: %s with %s, %v; want %s with %s", tt.points, got, strings.Join(times, " "), err, tt.want, tt.times)
		}
	}
}

func TestNewestIsBounded(t *testing.T) {
	n := NewNewest(nil, 0)
	for i := range 3000 {
		n.Add(fmt.Sprint(i), nil, 0)
	}
	if len(n.Times()) != MaxFound || !n.Full() {
		t.Errorf("%d fields are collected, full %v; want %d", len(n.Times()), n.Full(), MaxFound)
	}
}

func TestMissing(t *testing.T) {
	shape := OfMessage(tank(t))
	n := NewNewest(shape, 0)
	_, parts := split(t, Proto, shape, wire(t, parse(t, tank(t), `valve: 1 motor { hot: 1 }`)))
	for _, p := range parts {
		n.Add(p.Path, p.Raw, 1)
	}
	if got := strings.Join(shape.Missing(n), " "); got != "maybe big" || n.Complete() {
		t.Errorf("missing are %q, complete %v; want maybe and big: inlet is excluded by valve", got, n.Complete())
	}
	for _, p := range []string{"3", "9"} {
		n.Add(p, nil, 0)
	}
	if got := shape.Missing(n); !n.Complete() {
		t.Errorf("all are there, and %q are missing", got)
	}
}

func parse(t *testing.T, m protoDescriptor, text string) proto.Message {
	t.Helper()
	v := empty(m)
	if err := prototext.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestManyEqualNames splits a text whose names come again and again: the last value of each counts, and its fields
// alone.
func TestManyEqualNames(t *testing.T) {
	const names = 20_000
	var text strings.Builder
	text.WriteString(`{"o":{"a":1,"b":{"c":2}}`)
	for i := range names {
		fmt.Fprintf(&text, `,"n%d":%d`, i, i)
	}
	for i := range names {
		fmt.Fprintf(&text, `,"o":{"a":%d,"b":{"d":3}},"n0":%d`, i, i)
	}
	text.WriteString(`}`)
	got := map[string]string{}
	err := Split(JSON, nil, []byte(text.String()), func(path string, raw []byte) {
		if _, again := got[path]; again {
			t.Errorf("%s is visited twice", path)
		}
		got[path] = string(raw)
	})
	want := map[string]string{"o#a": "19999", "o#b#d": "3", "n0": "19999", "n1": "1"}
	for path, v := range want {
		if got[path] != v {
			t.Errorf("%s is %q, want %q", path, got[path], v)
		}
	}
	if err != nil || len(got) != names+2 {
		t.Errorf("%d fields (%v), want %d", len(got), err, names+2)
	}
}
