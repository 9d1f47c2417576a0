package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// path is the place of a field in values: the names of nested objects, the outermost first. None is the value itself, as of a dataset
// of plain numbers.
type path []string

const (
	// itself is the path of the value itself as text.
	itself = "."
	// maxDepth is how many objects a field can be in, and maxName how long a path can be as text.
	maxDepth = 16
	maxName  = 1_000
)

var escapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`)

// String returns the names joined by dots. A dot in a name is \. and a backslash is \\.
func (p path) String() string {
	if len(p) == 0 {
		return itself
	}
	names := make([]string, len(p))
	for i, name := range p {
		names[i] = escapes.Replace(name)
	}
	return strings.Join(names, ".")
}

func parsePath(text string) (path, error) {
	if text == itself {
		return path{}, nil
	}
	if text == "" || len(text) > maxName {
		return nil, refused("field", shown(text), "1 to 1,000 bytes")
	}
	var p path
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			name.WriteByte(text[i])
		case text[i] == '.':
			p = append(p, name.String())
			name.Reset()
		default:
			name.WriteByte(text[i])
		}
	}
	if p = append(p, name.String()); len(p) > maxDepth {
		return nil, refused("field", shown(text), "at most 16 names joined by dots")
	}
	return p, nil
}

// of returns what a value has at the path.
func (p path) of(value any) (any, bool) {
	for _, name := range p {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[name]; !ok {
			return nil, false
		}
	}
	return value, value != nil
}

// state returns the value at the path as the name of a state.
func (p path) state(value any) (string, bool) {
	switch v, _ := p.of(value); v := v.(type) {
	case string:
		return clipped(v, maxState), true
	case bool:
		return fmt.Sprint(v), true
	case int64:
		return fmt.Sprint(v), true
	case uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// The most bytes of text that a page gets of one value, of one in a list of entities, and of the name of a state. Files have whole texts.
const (
	maxText   = 1_000
	maxListed = 200
	maxState  = 100
)

// plain is a value that JSON and JavaScript cannot carry as it is: a number above 2^53, NaN, bytes, a list. Pages show its text.
type plain struct {
	Text   string  `json:"text"`
	Number float64 `json:"number,omitempty"` // what is drawn of a whole number
}

// forJSON returns a value as pages get it: a number, text, true, false, null, or a plain. Text is cut after most bytes.
func forJSON(v any, most int) any {
	const exact = 1 << 53
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		return clipped(v, most)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return plain{Text: fmt.Sprint(v)}
		}
		return v
	case int64:
		if v > exact || v < -exact {
			return plain{fmt.Sprint(v), float64(v)}
		}
		return v
	case uint64:
		if v > exact {
			return plain{fmt.Sprint(v), float64(v)}
		}
		return v
	case []byte:
		return plain{Text: clipped(base64.StdEncoding.EncodeToString(v), most)}
	}
	text, err := json.Marshal(v)
	if err != nil { // a number in it that JSON does not have
		text = fmt.Append(nil, v)
	}
	return plain{Text: clipped(string(text), most)}
}

func clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// valuesOf returns what a value has at each path, with at most most bytes of each text.
func valuesOf(paths []path, value any, most int) []any {
	out := make([]any, len(paths))
	for i, p := range paths {
		if v, ok := p.of(value); ok {
			out[i] = forJSON(v, most)
		}
	}
	return out
}

// field is a field that values have.
type field struct {
	Path    string `json:"path"`
	Numbers int    `json:"numbers"` // how many of the values have a number there
	States  int    `json:"states"`  // how many have text, true or false
}

// fieldsOf adds the fields of a value. All names of a value are looked at in their order, so that the first ones are kept.
func fieldsOf(found map[string]*field, p path, value any) {
	count := func(n, s int) {
		key := p.String()
		if len(key) > maxName || found[key] == nil && len(found) >= 10*maxFields {
			return
		}
		if found[key] == nil {
			found[key] = &field{Path: key}
		}
		found[key].Numbers += n
		found[key].States += s
	}
	switch v := value.(type) {
	case map[string]any:
		if len(p) == maxDepth {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fieldsOf(found, append(slices.Clone(p), name), v[name])
		}
	case float64, int64, uint64:
		count(1, 0)
	case string, bool:
		count(0, 1)
	}
}
