package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSplit: messages are disjoint parts of the body in order, at most one more than allowed. Those of valid JSON are
// its elements, and those of lines its lines.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{"", "[]", "[{}]", `[{"a":"]}\""},{"b":[1,{}]}]`, "[{},,{}", "{}\n{\n{}", "[1,2]", "on", "[{}]x", "\ufeff[{}]", `["\`, "[}]", "[[],{}]"} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	const most = 20
	f.Fuzz(func(t *testing.T, body []byte, ndjson bool) {
		messages, parts := splitBody(bytes.Clone(body), ndjson, most)
		if len(messages) > most+2 || !parts && len(messages) > 1 {
			t.Fatalf("%d messages, parts %v", len(messages), parts)
		}
		rest := body
		for i, m := range messages {
			_, after, found := bytes.Cut(rest, m)
			if !found || m == nil && i < len(messages)-1 {
				t.Fatalf("message %d %q is not a part of %q", i, m, rest)
			}
			rest = after
		}
		var elements []json.RawMessage
		if !ndjson && parts && len(messages) <= most && json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &elements) == nil {
			if len(elements) != len(messages) {
				t.Fatalf("%q has %d elements, and %d messages", body, len(elements), len(messages))
			}
			for i, e := range elements {
				if !bytes.Equal(bytes.TrimSpace(e), messages[i]) {
					t.Errorf("element %d is %q, and message %q", i, e, messages[i])
				}
			}
		}
		if ndjson {
			for i, m := range messages {
				if len(m) == 0 || bytes.ContainsRune(m, '\n') {
					t.Errorf("line %d is %q", i, m)
				}
			}
		}
	})
}
