package adopt

import (
	"runtime"
	"strings"
	"testing"
	"unicode"
)

// TestHostileJSON gives the fields of a record JSON that devices may send. Nothing may be dropped or changed silently,
// an error has no control characters, which a terminal obeys, and is short.
func TestHostileJSON(t *testing.T) {
	m := &Mapping{columns: []column{{key: "a:b", as: asJSON}}}
	for text, want := range map[string]bool{
		`{"a":1}`:                     true,
		`{"a":{},"b":[[]],"c":1}`:     false,
		`{"a":1,"a":2}`:               false, // which one programs take differs
		`{"a":{"b":1},"a":{"c":2}}`:   false,
		`{"a":null,"a":1}`:            false,
		`{"a":{"b":1},"a.b":2}`:       false,
		`{"":1}`:                      false,
		`{"":{"a":1}}`:                false,
		`{"a":{"":1}}`:                false,
		`{"a":"\ud83d\ude00 \ufffd"}`: true,
		`{"a":"\ud83d"}`:              false, // no text: a decoder makes U+FFFD of it
		`{"\udc00":1}`:                false,
		`{"a":"\\ud83d"}`:             true,
		`{"a":"` + strings.Repeat("x", 1e5) + `"}`: true,
		`{"` + strings.Repeat("x", 256) + `":1}`:   false,
		"{\"\\u001b[2J\\u0007\":[1]}":              false,
		"{\"\\u001b[2J\":1e999}":                   false,
		"{\"a\":{\"\\u202e\":9007199254740993}}":   false,
		`{}`:                                       false,
	} {
		_, err := m.payload([]cell{{0, []byte(text)}})
		if (err == nil) != want {
			t.Errorf("the fields of %.60s: %v, want taken: %v", text, err, want)
		}
		if err != nil && (len(err.Error()) > 400 || strings.ContainsFunc(err.Error(), func(c rune) bool { return !unicode.IsPrint(c) })) {
			t.Errorf("the error of %.60q has %d bytes or control characters: %.100q", text, len(err.Error()), err.Error())
		}
	}
}

// TestNestedJSON bounds the memory for names of members that are deep in JSON.
func TestNestedJSON(t *testing.T) {
	const depth, members = 2000, 20_000
	text := strings.Repeat(`{"abcdefghijklmnop":`, depth) + "{" + strings.Repeat(`"a":1,`, members) + `"b":1}` + strings.Repeat("}", depth)
	m := &Mapping{columns: []column{{key: "a:b", as: asJSON}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := m.payload([]cell{{0, []byte(text)}}); err == nil {
		t.Error("a name that is too long is taken")
	}
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 20 {
		t.Errorf("a cell of %d KiB took %d MiB", len(text)>>10, mib)
	}
}
