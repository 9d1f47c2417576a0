package rowfilter_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		expr, text string
		want       bool
	}{
		{"abc", "abc", true},
		{"abc", "abcd", false},
		{"b", "abc", false},
		{"a|b", "b", true},
		{"ab|cd", "abd", false},
		{"^abc$", "abc", true},
		{"^", "", true},
		{"^", "a", false},
		{"(a)(b)?", "ab", true},
		{"(a)(b)?", "a", true},
		{"(?i)abc", "aBC", true},
		{"a.*", "abc", true},
		{"a.*", "a\nc", false},
		{`a\C*`, "a\n\xffc", true},
		{`a\C`, "a\xff", true},
		{`a\C`, "a", false},
		{`\C*`, "", true},
		{`\C+`, "", false},
		{`.`, "\xff", true},
		{`.`, "\n", false},
		{`.`, "é", false},
		{`..`, "é", true},
		{"é", "é", true},
		{"é", "\xe9", false},
		{"\xe9", "\xe9", true},
		{`\xe9`, "\xe9", true},
		{"[\xe0-\xef]+", "\xe5\xe9", true},
		{"[\xe0-\xef]+", "\xdf", false},
		{"[^a]", "\xff", true},
		{"[]a]+", "]a", true},
		{`[\]C]+`, "]C", true},
		{`[[:alpha:]]+`, "ab", true},
		{`[[:alpha:]\]]+`, "a]", true},
		{`\Qa.b\E.`, "a.bc", true},
		{`\Qa.b\E.`, "axbc", false},
		{`\Q\C\E`, `\C`, true},
		{`\Q\C\E`, "xx", false},
		{`\Qab`, "ab", true},
		{`\Qab)`, "ab)", true},
		{`\\C`, `\C`, true},
		{`a\.b`, "a.b", true},
		{`a\.b`, "axb", false},
		{"a\x00b", "a\x00b", true},
		{`[0-9]{2,3}`, "12", true},
		{`[0-9]{2,3}`, "1234", false},
		{`\x{100}`, "\x00", false},
		{`a\x{100}?`, "a", true},
		{"(?s).", "\n", true},
		{`[a-p][a-p]`, "ba", true},
	} {
		f, err := rowfilter.Compile(value(tt.expr))
		if err != nil {
			t.Errorf("compiling %q: %v", tt.expr, err)
			continue
		}
		c := cell("f:q@1=")
		c.Value = []byte(tt.text)
		if got := len(f.Apply([]byte("r"), []rowfilter.Cell{c})) == 1; got != tt.want {
			t.Errorf("%q on %q: got %v, want %v: RE2 reads both as bytes and matches the whole text", tt.expr, tt.text, got, tt.want)
		}
	}
}
