package inbound

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
)

// object holds the values of a JSON object by name, as encoding/json decodes them. Names of nested objects are joined
// with a dot. Null is left out.
type object struct {
	route    *Route
	values   map[string]any
	nulls    int
	out      []leftOut
	each     string // the name of the array whose elements make points; empty while one of them is added
	elements []any
}

// leftOut is a field that is not stored, and the reason.
type leftOut struct {
	name string
	why  string // one of a few
}

// The reasons why fields are left out. They follow the field's name in texts.
const (
	outArray = "it is an array"
	outBytes = "it is bytes"
	outDeep  = "it is nested too deep"
	outLarge = "its number is too large"
	outName  = "its name is empty or too long"
	outTwice = "its name comes twice"
	outMany  = "the object has too many values"
	outTag   = "its name begins as those of tags"
	outPlace = "another element has its key and time"
)

// leaveOut leaves a field out. If the route is strict, it returns the error that refuses the message instead.
func (o *object) leaveOut(name, why string, strict error) error {
	if o.route.strict {
		return strict
	}
	o.out = append(o.out, leftOut{name, why})
	return nil
}

// flatten returns the objects of a decoded one: one for each element of the array that each= names, or one.
func (r *Route) flatten(from map[string]any) ([]*object, error) {
	base := &object{route: r, values: make(map[string]any, len(from)), each: r.each}
	if err := base.addAll("", from, maxDepth); err != nil {
		return nil, err
	}
	n := len(base.elements)
	if n == 0 {
		return []*object{base}, nil
	}
	if n > maxEvents || n*len(base.values) > maxEachValues {
		return nil, badSyntax("the array %.64q has %d elements next to %d values; a message makes at most %d points, which repeat at most %d values",
			r.each, n, len(base.values), maxEvents, maxEachValues)
	}
	objects := make([]*object, n)
	for i, v := range base.elements {
		o := &object{route: r, values: maps.Clone(base.values), nulls: base.nulls}
		if i == 0 {
			o.out = base.out // counted once
		}
		if err := o.add(r.each, v, maxDepth-1-strings.Count(r.each, ".")); err != nil {
			return nil, err
		}
		objects[i] = o
	}
	return objects, nil
}

// addAll adds the values of an object in the order of their names. So if several are refused, the error always names
// the same one.
func (o *object) addAll(prefix string, from map[string]any, depth int) error {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if n := len(prefix) + len(name); name == "" || n > codec.MaxFieldName {
			short := prefix + name[:min(len(name), 64)]
			err := badSyntax("the name of the field %.64q has %d bytes; want 1 to %d", short, n, codec.MaxFieldName)
			if err := o.leaveOut(short, outName, err); err != nil {
				return err
			}
			continue
		}
		if err := o.add(prefix+name, from[name], depth); err != nil {
			return err
		}
	}
	return nil
}

// add adds a value under its whole name, or those inside it.
func (o *object) add(name string, v any, depth int) error {
	switch v := v.(type) {
	case map[string]any:
		if depth <= 1 {
			return o.leaveOut(name, outDeep, badSyntax("objects are nested more than %d deep", maxDepth))
		}
		return o.addAll(name+".", v, depth-1)
	case []any:
		if name == o.each && o.elements != nil {
			return o.leaveOut(name, outTwice, badSyntax("the field %.64q comes twice", name))
		}
		if name == o.each {
			o.elements = v
			return nil
		}
		return o.addArray(name, v, depth)
	}
	switch codec.ValueOf(v).Kind() {
	case codec.KindNull:
		o.nulls++
		return nil
	case codec.KindBytes:
		return o.leaveOut(name, outBytes, badSyntax("the field %.64q is bytes, which are no text", name))
	case codec.KindInvalid:
		return o.leaveOut(name, outLarge, badSyntax("the field %.64q is %.64q, which is too large for a float", name, v))
	}
	if _, twice := o.values[name]; twice {
		return o.leaveOut(name, outTwice, badSyntax("the field %.64q comes twice", name))
	}
	if len(o.values) == maxValues {
		return o.leaveOut(name, outMany, badSyntax("an object has more than %d values", maxValues))
	}
	o.values[name] = v
	return nil
}

// addArray adds an array as arrays= says.
func (o *object) addArray(name string, list []any, depth int) error {
	switch o.route.arrays {
	case arraysJSON:
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(list); err != nil {
			return badSyntax("the field %.64q: %w", name, err)
		}
		return o.add(name, strings.TrimSuffix(text.String(), "\n"), depth)
	case arraysIndex:
		inner := make(map[string]any, len(list))
		for i, v := range list {
			inner[strconv.Itoa(i)] = v
		}
		return o.add(name, inner, depth)
	}
	return o.leaveOut(name, outArray, badSyntax("the field %.64q is an array; want a number, a text, true or false", name))
}

// take removes a value that is a part of a key or an identity, and returns its text. Numbers that are equal have the
// same text. An integer of more than 64 bits has its digits, because several would be the same float.
func (o *object) take(name string) (text string, ok bool) {
	v, ok := o.values[name]
	if ok {
		delete(o.values, name)
		typed := codec.ValueOf(v)
		if n, isNumber := v.(json.Number); isNumber && typed.Kind() == codec.KindFloat && !strings.ContainsAny(n.String(), ".eE") {
			return n.String(), true
		}
		text, ok = typed.Text()
	}
	return text, ok
}

// texts makes texts of the values that the route names as text: numbers as they are written.
func (o *object) texts(names []string) {
	for _, name := range names {
		if n, ok := o.values[name].(json.Number); ok {
			o.values[name] = n.String()
		} else if text, ok := codec.ValueOf(o.values[name]).Text(); ok {
			o.values[name] = text
		}
	}
}

// numbers makes numbers of the values that the route names as numbers.
func (o *object) numbers(names []string) error {
	for _, name := range names {
		v, ok := o.values[name]
		if !ok {
			continue
		}
		n := codec.ValueOf(v).AsNumber()
		if n.Kind() == codec.KindInvalid {
			return badSyntax("the field %.64q is %.64q; the route wants a number", name, v)
		}
		o.values[name] = n
	}
	return nil
}
