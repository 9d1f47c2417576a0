package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/jsonscan"
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
