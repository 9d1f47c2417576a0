//lint:file-ignore SA5008 names that need quotes, and bad ones, are what is tested

package codec_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// tree has all that the codec decodes without package json, with names that differ in case only or that letters beyond
// ASCII fold to.
type tree struct {
	A      float64 `json:"a"`
	UpperA *int8   `json:"A,omitempty"`
	Kelvin float32 `json:"\u212a"`
	B      bool    `json:"b"`
	U      uint16
	N      int64       `json:",omitempty"`
	S      string      `json:"s.t-u_1"`
	At     time.Time   `json:"at,omitzero"`
	V      codec.Value `json:"v,omitzero"`
	List   []float64   `json:"list"`
	Trees  []*tree     `json:"trees"`
	Below  struct {
		A, B  **float64
		Texts [][]string
	} `json:"below"`
	Hidden int `json:"-"`
	Dash   int `json:"-,"`
}

// loose has what is left to package json.
type loose struct {
	tree
	Any    any            `json:"any"`
	Map    map[string]int `json:"map"`
	Pair   [2]int         `json:"pair"`
	Number json.Number    `json:"number"`
	Bytes  []byte         `json:"bytes"`
	Quoted int            `json:"quoted,string"`
	Odd    int            `json:"a\"b"`
	Same   int
	Tagged int `json:"Same"`
}

type (
	odd struct {
		X int `json:"a\"b"`
	}
	quoted struct {
		A float64 `json:"a,string"`
	}
	number struct {
		A json.Number `json:"a"`
	}
	inner struct{ A, B float64 }
	outer struct {
		inner
		B int
	}
	twice struct {
		A int
		B int `json:"A"`
	}
)

// sameAsJSON checks that the codec decodes text as package json does.
func sameAsJSON(t *testing.T, src []byte) {
	t.Helper()
	sameAs[tree](t, src)
	sameAs[loose](t, src)
	sameAs[*tree](t, src)
	sameAs[[]tree](t, src)
	sameAs[float32](t, src)
	sameAs[*string](t, src)
	sameAs[[]bool](t, src)
	sameAs[time.Time](t, src)
	sameAs[codec.Value](t, src)
	sameAs[map[string]tree](t, src)
	sameAs[odd](t, src)
	sameAs[number](t, src)
	sameAs[outer](t, src)
	sameAs[quoted](t, src)
	sameAs[twice](t, src)
}

func sameAs[T any](t *testing.T, src []byte) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(src, &want)
	c := codec.JSON[T]()
	for range 2 { // the second one may use the memory of the first one
		got, err := c.Decode(src)
		if wantErr != nil {
			corrupt := codecerr.NewCorrupt("json", src, wantErr)
			if err == nil || err.Error() != corrupt.Error() || !reflect.ValueOf(&got).Elem().IsZero() {
				t.Fatalf("%T of %q is %+v, %v; want %v", want, src, got, err, corrupt)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%T of %q is %+v, %v; want %+v", want, src, got, err, want)
		}
	}
}

var jsonTexts = []string{
	``, ` `, `null`, `{}`, ` { } `, `[]`, `1`, `-0`, `1.5`, `true`, `"a"`, `{"a":1}`, `{"a":1,"a":2}`, `{"a":1,"a":null}`, `{"A":1,"a":2}`,
	`{"b":true,"B":false}`, `{"u":65535}`, `{"U":65536}`, `{"u":-1}`, `{"u":1.0}`, `{"n":9223372036854775807}`, `{"N":9223372036854775808}`,
	`{"n":1e3}`, `{"a":1e400}`, `{"a":-1e-400}`, `{"k":1e39}`, `{"k":3.4e38,"K":1}`, "{\"\u212a\":2}", `{"A":127}`, `{"A":128}`, `{"A":1,"A":null}`,
	`{"\u0061":1}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":"1"}`, `{"a":[]}`, `{"a":{}}`, `{"a":true}`, `{"b":1}`, `{"b":tru}`, `{"a":nul}`,
	`{"s.t-u_1":"x\u00e4\ud83d\ude00\ud800 "}`, "{\"s.t-u_1\":\"\xff\"}", "{\"s.t-u_1\":\"\u00e4\"}", "{\"s.t-u_1\":\"\x01\"}", `{"s.t-u_1":"\x"}`, `{"s.t-u_1":1}`, `{"S.T-U_1":"x"}`,
	`{"at":"2026-01-02T03:04:05.25+01:00"}`, `{"at":"2026"}`, `{"at":null}`, `{"at":{}}`, `{"at":1}`, `{"v":1}`, `{"v":null}`, `{"v":1,"v":null}`, `{"v":{"a":1}}`, `{"v":[1,"x"]}`, `{"v":1e400}`,
	`{"list":[]}`, `{"list":[1,2,3]}`, `{"list":[1],"list":[2,null]}`, `{"list":[1],"list":null}`, `{"list":[null]}`, `{"list":[1,]}`, `{"list":[1}`, `{"list":{}}`, `{"list":["x"]}`,
	`{"trees":[null,{},{"a":1,"trees":[{"b":true}]}]}`, `{"trees":[{"a":1}],"trees":[{"b":true}]}`, `{"below":{"a":1,"B":null}}`, `{"below":{"a":1},"below":{"b":2}}`, `{"below":null}`,
	`{"below":{"texts":[["a"],null,[]]}}`, `{"-":1}`, `{"Hidden":1,"hidden":2}`, `{"other":[{"a":"\u12"}]}`, `{"other":[{"a":"\u12ab"}]}`, `{"a":1}{}`, `{"a":1} x`, `{"a":1,}`, `{"a" 1}`, `{"a":1 "b":true}`, `{"a":}`, `{a:1}`, `{"a`,
	"\xef\xbb\xbf{}", `{"any":{"a":1},"map":{"a":1},"pair":[1,2,3],"number":1e400,"bytes":"AAA=","quoted":"7","Same":1}`, `{"a":"7"}`, `{"number":"x"}`, `{"a\"b":1}`,
	`[{"a":1},{"b":true}]`, `"2026-01-02T03:04:05Z"`, `[true,false,null]`, `{"x":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999) + `}`, `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	`{"list":[1234567890123456789012345678901234567890.5,0.1e-7]}`, "{\n\t\"a\" : 1 ,\r\"b\" : true }", `{"a":1,"\ud800":2}`, "{\"\xff\":1}",
}

func TestJSONDecodesAsPackageJSON(t *testing.T) {
	for _, text := range jsonTexts {
		sameAsJSON(t, []byte(text))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 / testkit.Stride(10) {
		choices := make([]byte, random.IntN(24))
		for i := range choices {
			choices[i] = byte(random.IntN(256))
		}
		sameAsJSON(t, jsonText(choices))
	}
}

// FuzzJSONAsPackageJSON compares the codec with package json, of any text and of text of JSON's own parts.
func FuzzJSONAsPackageJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		sameAsJSON(t, src)
		if len(src) < 100 {
			sameAsJSON(t, jsonText(src))
		}
	})
}

// jsonParts are names and values of objects. Some of them are no JSON.
var (
	jsonNames = []string{
		"a", "A", "\u212a", "k", "K", "b", "B", "U", "u", "N", "s.t-u_1", "S.t-u_1", "at", "v", "list", "trees", "below", "texts", "Hidden", "-", "x", "Same", "any", "map", `\u0061`,
	}
	jsonValues = []string{
		"1", "-0", "2.5", "1e2", "1e39", "1e999", "255", "65536", "-129", "99999999999999999999", "true", "false", "null", `"x"`, `"ä\n"`, "\"\xff\"", `"2026-01-02T03:04:05Z"`, "[]", "[1,null,2]", "{}", "tru", "01", "",
	}
)

// jsonText returns the text that choices make: objects and arrays whose names are often those of fields.
func jsonText(choices []byte) []byte {
	next := func(n int) int {
		if len(choices) == 0 {
			return 0
		}
		c := int(choices[0])
		choices = choices[1:]
		return c % n
	}
	var value func(depth int) string
	value = func(depth int) string {
		var parts []string
		switch kind := next(8); {
		case depth == 4 || kind < 4:
			return jsonValues[next(len(jsonValues))]
		case kind < 7:
			for range next(5) {
				parts = append(parts, `"`+jsonNames[next(len(jsonNames))]+`":`+value(depth+1))
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		for range next(4) {
			parts = append(parts, value(depth+1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var parts []string
	for range next(7) {
		parts = append(parts, ` "`+jsonNames[next(len(jsonNames))]+`" : `+value(1))
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}
