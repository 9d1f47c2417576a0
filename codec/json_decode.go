package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-go/tidemark/internal/jsonscan"
)

// jsonType decodes JSON text into values of one Go type, without the memory that package json makes for each text. It
// gives up on what it does not know, and the whole text is then left to package json: so all answers and all errors are
// those of package json.
type jsonType struct {
	kind   reflect.Kind
	bits   int         // of a number
	own    bool        // the type's UnmarshalJSON reads the text
	elem   *jsonType   // of a pointer or a slice
	fields []jsonField // of a struct
}

// jsonField is a field of a struct.
type jsonField struct {
	name  string
	index int
	of    *jsonType
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// jsonTypeOf returns nil for a type that only package json decodes: one with a map, an interface, an array, an embedded
// struct or a method of its own for JSON or text. known has the types around t.
func jsonTypeOf(t reflect.Type, known map[reflect.Type]*jsonType) *jsonType {
	if of := known[t]; of != nil {
		return of
	}
	out := &jsonType{kind: t.Kind()}
	known[t] = out
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[Value]():
		out.own = true
		return out
	case t == reflect.TypeFor[json.Number](), pointer.Implements(jsonUnmarshaler), pointer.Implements(textUnmarshaler):
		return nil
	}
	switch kind := t.Kind(); {
	case kind == reflect.Bool, kind == reflect.String:
	case reflect.Int <= kind && kind <= reflect.Uint64, kind == reflect.Float32, kind == reflect.Float64:
		out.bits = t.Bits()
	case kind == reflect.Pointer, kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		if out.elem = jsonTypeOf(t.Elem(), known); out.elem == nil {
			return nil
		}
	case kind == reflect.Struct:
		if !out.addFields(t, known) {
			return nil
		}
	default:
		return nil
	}
	return out
}

// addFields adds the fields of a struct. It returns false for a struct that only package json decodes.
func (t *jsonType) addFields(of reflect.Type, known map[reflect.Type]*jsonType) bool {
	for i := range of.NumField() {
		f := of.Field(i)
		tag := f.Tag.Get("json")
		switch {
		case f.Anonymous:
			return false
		case !f.IsExported() || tag == "-":
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		odd := func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}
		if strings.ContainsFunc(name, odd) || slices.Contains(strings.Split(options, ","), "string") ||
			slices.ContainsFunc(t.fields, func(f jsonField) bool { return f.name == name }) {
			return false
		}
		field := jsonField{name, i, jsonTypeOf(f.Type, known)}
		if field.of == nil {
			return false
		}
		t.fields = append(t.fields, field)
	}
	return true
}

// field returns the index of the field with a name of ASCII, or -1. Without one with just this name it is the first one
// whose name differs in case only. Most texts have the fields in their order, so it looks at the next one first.
func (t *jsonType) field(name []byte, next int) int {
	if next < len(t.fields) && t.fields[next].name == string(name) {
		return next
	}
	for i := range t.fields {
		if t.fields[i].name == string(name) {
			return i
		}
	}
	text := string(name)
	return slices.IndexFunc(t.fields, func(f jsonField) bool { return strings.EqualFold(f.name, text) })
}

// decode reads the next value of the text into v. It returns false if it gives up, and may then have changed v.
func (t *jsonType) decode(s *jsonscan.Scanner, v reflect.Value) bool {
	c := s.Next()
	if c == 'n' {
		if t.kind == reflect.Pointer || t.kind == reflect.Slice {
			v.SetZero()
		}
		s.Literal("null")
		return s.Err == nil // of others, null changes nothing
	}
	switch {
	case t.own:
		text := s.Value()
		u, ok := v.Addr().Interface().(json.Unmarshaler)
		return ok && text != nil && u.UnmarshalJSON(text) == nil
	case t.kind == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return t.elem.decode(s, v.Elem())
	case t.kind == reflect.Struct:
		return c == '{' && t.object(s, v)
	case t.kind == reflect.Slice:
		return c == '[' && t.array(s, v)
	case t.kind == reflect.String:
		text := s.String()
		v.SetString(text.Decode())
		return s.Err == nil
	case t.kind == reflect.Bool:
		v.SetBool(c == 't')
		s.Literal(strconv.FormatBool(c == 't'))
		return s.Err == nil
	}
	from := s.At
	if s.Number(); s.Err != nil {
		return false
	}
	text := s.Src[from:s.At]
	switch {
	case t.kind >= reflect.Float32:
		x, err := strconv.ParseFloat(string(text), t.bits)
		v.SetFloat(x)
		return err == nil
	case t.kind >= reflect.Uint:
		n, err := strconv.ParseUint(string(text), 10, t.bits)
		v.SetUint(n)
		return err == nil
	}
	n, err := strconv.ParseInt(string(text), 10, t.bits)
	v.SetInt(n)
	return err == nil
}

// object reads an object into a struct.
func (t *jsonType) object(s *jsonscan.Scanner, v reflect.Value) bool {
	next := 0
	for more := s.Open('}'); more; more = s.More('}') {
		key := s.Name()
		if !key.Plain {
			return false
		}
		if at := t.field(key.Inside(), next); at >= 0 {
			next = at + 1
			if f := &t.fields[at]; !f.of.decode(s, v.Field(f.index)) {
				return false
			}
		} else {
			s.Value()
		}
	}
	return s.Err == nil
}

// array reads an array into a slice. An earlier field of the same name may have left elements, as in package json.
func (t *jsonType) array(s *jsonscan.Scanner, v reflect.Value) bool {
	more := s.Open(']')
	if !more {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	for n := 0; more; n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		if !t.elem.decode(s, v.Index(n)) {
			return false
		}
		more = s.More(']')
	}
	return s.Err == nil
}
