package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/jsonscan"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// FuzzValue: the scanner accepts exactly what package json does, and strings are those of package json.
func FuzzValue(f *testing.F) {
	deep := strings.Repeat("[", 10_000)
	for _, text := range []string{
		``, ` {"a" : [1, -0.5e+3, true, false, null, "\u00e4\n\ud83d\ude00"], "b":{}, "":[] } `, `{"a":1,}`, `[,1]`, `[1,]`, `{"a" 1}`, `{,}`, `"\x"`,
		`"\u12"`, `01`, `1.`, `-`, `1e`, "\"\xb3\"", "\"\n\"", `tru`, `1 2`, deep + strings.Repeat("]", 10_000), "[" + deep + strings.Repeat("]", 10_001),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s := jsonscan.Scanner{Src: src}
		text := s.Value()
		if got, want := s.End(), json.Valid(src); got != want {
			t.Fatalf("%q: valid is %v (%v), want %v", src, got, s.Err, want)
		}
		if (text == nil) != (s.Err != nil) {
			t.Errorf("%q: the value is %q with the error %v", src, text, s.Err)
		}
		if s.Err == nil && text[0] == '"' {
			var want string
			if got := (jsonscan.Text{Quoted: text}).Decode(); json.Unmarshal(text, &want) != nil || got != want {
				t.Errorf("%s is %q, want %q", text, got, want)
			}
		}
	})
}

// TestDecodeAllocatesOnce: a decoded string without escapes is all that Decode allocates. Each text in a payload is
// decoded by it.
func TestDecodeAllocatesOnce(t *testing.T) {
	if testkit.Raced {
		t.Skip("the race detector allocates, too")
	}
	text := jsonscan.Text{Quoted: []byte(`"a driver with a long name"`), Plain: true}
	var got string
	if n := testing.AllocsPerRun(100, func() { got = text.Decode() }); n != 1 || got != "a driver with a long name" {
		t.Errorf("%q was decoded with %v allocations, want 1", got, n)
	}
}
