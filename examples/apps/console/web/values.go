package web

import (
	"math"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// A field is the name that package dynamic gives it: of nested objects, the names joined by dots. The name "" is a
// payload that is a single value, as of a dataset of plain numbers.
const (
	// itself is what addresses and pages call the field "".
	itself = "."
	// maxDepth is how many names a field can have, and maxName how long they can be.
	maxDepth = 16
	maxName  = 1_000
)

func parseField(text string) (string, error) {
	if text == itself {
		return "", nil
	}
	if text == "" || len(text) > maxName {
		return "", refused("field", shown(text), "1 to 1,000 bytes")
	}
	if strings.Count(text, ".") >= maxDepth {
		return "", refused("field", shown(text), "at most 16 names joined by dots")
	}
	return text, nil
}

func shownField(name string) string {
	if name == "" {
		return itself
	}
	return name
}

// number returns a field that the user has named as a number, if it is finite.
func number(fields codec.Record, name string) (float64, bool) {
	v, _ := fields.Lookup(name)
	x, ok := v.AsNumber().Number()
	return x, ok && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// state returns a field as the name of a state.
func state(v codec.Value) (string, bool) {
	text, ok := v.Text()
	return clipped(text, maxState), ok
}

// The most bytes of text that a page gets of one value, of one in a list of entities, and of the name of a state. Files
// have whole texts.
const (
	maxText   = 1_000
	maxListed = 200
	maxState  = 100
)

// plain is a value that JSON and JavaScript cannot carry as it is: a number above 2^53, NaN, a time, bytes, a list.
// Pages show its text.
type plain struct {
	Text   string  `json:"text"`
	Number float64 `json:"number,omitempty"` // what is drawn of it
}

// forJSON returns a value as pages get it: a number, text, true, false, null, or a plain. Text is cut after most bytes.
func forJSON(v codec.Value, most int) any {
	if b, ok := v.Bool(); ok {
		return b
	}
	if text, ok := v.Str(); ok {
		return clipped(text, most)
	}
	text, ok := v.Text()
	x, isNumber := v.Number()
	_, isFloat := v.Float()
	const exact = 1 << 53
	switch {
	case !isNumber && (v.Kind() == codec.KindNull || v.Kind() == codec.KindInvalid):
		return nil
	case !ok: // bytes, a list
		return plain{Text: clipped(v.String(), most)}
	case math.IsNaN(x) || math.IsInf(x, 0):
		return plain{Text: text}
	case v.Kind() == codec.KindTime || !isFloat && math.Abs(x) >= exact:
		return plain{text, x}
	}
	return x
}

func clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// valuesOf returns fields by their names, with at most most bytes of each text.
func valuesOf(names []string, fields codec.Record, most int) []any {
	out := make([]any, len(names))
	for i, name := range names {
		if v, ok := fields.Lookup(name); ok {
			out[i] = forJSON(v, most)
		}
	}
	return out
}

// field is a field that points have.
type field struct {
	Path    string `json:"path"`
	Numbers int    `json:"numbers"` // how many of the points have a number there
	States  int    `json:"states"`  // how many have text, true or false
}

// countFields adds the fields of a point. The first ones by name are kept.
func countFields(found map[string]*field, fields codec.Record) {
	for name, v := range fields.All() {
		_, isNumber := v.Number()
		_, isState := v.Text()
		name = shownField(name)
		if !isState || len(name) > maxName || found[name] == nil && len(found) >= 10*maxFields {
			continue
		}
		if found[name] == nil {
			found[name] = &field{Path: name}
		}
		if isNumber {
			found[name].Numbers++
		} else {
			found[name].States++
		}
	}
}

// addKnown adds the fields of a list that no point had, as if one point had them.
func addKnown(found map[string]*field, list dynamic.FieldList) {
	for _, f := range list.Fields {
		name := shownField(f.Name)
		if f.First.IsZero() || len(name) > maxName || found[name] != nil || len(found) >= 10*maxFields {
			continue
		}
		one := field{Path: name}
		for _, k := range f.Kinds {
			switch k {
			case codec.KindFloat, codec.KindInt, codec.KindUint, codec.KindTime:
				one.Numbers = 1
			case codec.KindStr, codec.KindBool:
				one.States = 1
			}
		}
		if one.Numbers+one.States > 0 {
			found[name] = &one
		}
	}
}
