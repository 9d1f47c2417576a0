package fields

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// OfJSON returns the shape of a type that package json encodes, or nil if each payload has its own fields: of a map, an
// interface, and a type that encodes itself. A type that is no struct is one field. Within a struct, a type that
// encodes itself, a map, an interface and a slice are one field each, and so is a struct within itself.
func OfJSON(t reflect.Type) *Shape {
	for range maxDepth {
		if t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	switch {
	case t == nil, t.Kind() == reflect.Map, t.Kind() == reflect.Interface, encodesItself(t) && t != reflect.TypeFor[time.Time]():
		return nil
	case t.Kind() != reflect.Struct || encodesItself(t):
		return OfLeaves([]Leaf{{Kind: jsonKind(t)}})
	}
	return atMost(func(depth int) []Leaf {
		l := jsonLister{depth: depth}
		l.object(t, place{})
		return l.leaves
	})
}

var itself = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

func encodesItself(t reflect.Type) bool {
	return slices.ContainsFunc(itself, reflect.PointerTo(t).Implements)
}

type jsonLister struct {
	depth  int
	leaves []Leaf
	around []reflect.Type
}

func (l *jsonLister) object(t reflect.Type, at place) {
	l.around = append(l.around, t)
	for _, f := range jsonFields(t) {
		p := at.in(appendName("", f.name, 0), f.name)
		of := f.typ
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case l.inner(of):
			l.object(of, p)
		case len(l.leaves) <= MaxLeaves:
			kind := jsonKind(of)
			if f.quoted && slices.Contains(quotable, kind) {
				kind = "str"
			}
			l.leaves = append(l.leaves, p.leaf(kind))
		}
	}
	l.around = l.around[:len(l.around)-1]
}

// inner reports whether the fields of a type are leaves of their own.
func (l *jsonLister) inner(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !encodesItself(t) && len(l.around) < l.depth && len(l.leaves) <= MaxLeaves &&
		!slices.Contains(l.around, t) && len(jsonFields(t)) > 0
}

// quotable are the kinds that the option "string" of a tag makes text.
var quotable = []string{"bool", "int", "uint", "float"}

func jsonKind(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		return "str"
	case encodesItself(t), t.PkgPath() == "encoding/json": // its Number is text that becomes a number
		return ""
	case k == reflect.Bool:
		return "bool"
	case k == reflect.String, k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "str"
	case k == reflect.Slice, k == reflect.Array:
		return "list"
	case k == reflect.Float32, k == reflect.Float64:
		return "float"
	case reflect.Int <= k && k <= reflect.Int64:
		return "int"
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return "uint"
	}
	return ""
}

// jsonField is a field of a struct as package json sees it.
type jsonField struct {
	name   string
	typ    reflect.Type
	depth  int // in embedded structs
	tagged bool
	quoted bool
}

// jsonFields returns the fields of a struct, with those of embedded structs, in their order. Of several with one name
// the outermost counts, and of these the one whose tag has the name; if there are still several, none does.
func jsonFields(t reflect.Type) []jsonField {
	all := embedded(t, 0, nil)
	var out []jsonField
	for i, f := range all {
		if slices.ContainsFunc(all[:i], func(o jsonField) bool { return o.name == f.name }) {
			continue
		}
		best, several := f, false
		for _, o := range all[i+1:] {
			if o.name != f.name {
				continue
			}
			c := cmp.Or(cmp.Compare(o.depth, best.depth), -cmp.Compare(rank(o.tagged), rank(best.tagged)))
			if c < 0 {
				best, several = o, false
			} else if c == 0 {
				several = true
			}
		}
		if !several {
			out = append(out, best)
		}
	}
	return out
}

func rank(tagged bool) int {
	if tagged {
		return 1
	}
	return 0
}

// embedded lists all fields of a struct and of the structs that it embeds.
func embedded(t reflect.Type, depth int, around []reflect.Type) (all []jsonField) {
	around = append(slices.Clip(around), t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			name = ""
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer && inner.Name() == "" {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			if !slices.Contains(around, inner) {
				all = append(all, embedded(inner, depth+1, around)...)
			}
		case f.IsExported():
			all = append(all, jsonField{cmp.Or(name, f.Name), f.Type, depth, name != "", slices.Contains(strings.Split(options, ","), "string")})
		}
	}
	return all
}
