package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/jsonscan"
	"github.com/tidemark-go/tidemark/internal/layout"
)

// JSON returns a codec that stores values as JSON text, by the rules of [encoding/json]: struct tags, MarshalJSON and
// UnmarshalJSON apply, unknown fields are ignored, and map keys are sorted. Its tag is "json".
//
// It differs from [json.Marshal] in three ways. It stores '<', '>' and '&' unescaped. It uses a MarshalJSON of *T for
// a T, too. On an error it returns no partial value. JSON has no NaN and no infinity: a value with one fails with
// [ErrEncode]. In text that is not valid UTF-8, U+FFFD replaces the invalid bytes.
//
// A write allocates the payload. A read allocates the texts, pointers and slices of the value, if all parts of T are
// numbers, booleans, texts, times, Values, and pointers to, slices of and structs of these; any other T, and text with
// names in escapes or beyond ASCII, costs what [json.Unmarshal] costs. If a part of T has a method of its own for JSON
// or text, each also allocates a T. The codec is safe for concurrent use.
func JSON[T any]() Codec[T] {
	t := reflect.TypeFor[T]()
	return &jsonCodec[T]{reuse: reusable(t), fast: jsonTypeOf(t, map[reflect.Type]*jsonType{})}
}

const tagJSON = "json"

type jsonCodec[T any] struct {
	writers sync.Pool // of *jsonWriter[T]
	values  sync.Pool // of *T, all zero
	reuse   bool      // the memory of a T may be used again
	fast    *jsonType // nil if only package json decodes a T
}

// methods are the interfaces whose methods package json calls.
var methods = []reflect.Type{
	reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[interface{ IsZero() bool }](),
}

// reusable reports whether package json calls no method on the memory of a value of type t. A method may keep a pointer
// into it: it must not find another value there later.
func reusable(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[Value]() { // keep none
		return true
	}
	p := reflect.PointerTo(t)
	if slices.ContainsFunc(methods, p.Implements) {
		return false
	}
	switch t.Kind() {
	case reflect.Array:
		return reusable(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !reusable(t.Field(i).Type) {
				return false
			}
		}
	}
	return true // what a value points to is made for each
}

func (*jsonCodec[T]) Tag() string { return tagJSON }

// Layouts says which fields payloads have. Package tsdb calls it.
func (*jsonCodec[T]) Layouts() map[string]layout.Of[T] {
	return map[string]layout.Of[T]{tagJSON: {Fields: layout.Fields{Format: tagJSON, JSON: reflect.TypeFor[T]()}}}
}

func (c *jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	w, ok := c.writers.Get().(*jsonWriter[T])
	if !ok {
		w = newJSONWriter[T]()
	}
	w.buf = dst
	p := &w.value
	if !c.reuse {
		p = new(T)
	}
	*p = v
	err := w.enc.Encode(p)
	out := w.buf
	*w = jsonWriter[T]{enc: w.enc}
	if err != nil {
		return dst, codecerr.NewEncode(tagJSON, err)
	}
	c.writers.Put(w)
	return out[:len(out)-1], nil // without the newline that json.Encoder appends
}

func (c *jsonCodec[T]) Decode(src []byte) (T, error) {
	var zero T
	p, ok := c.values.Get().(*T)
	if !ok {
		p = new(T)
	}
	if s := (jsonscan.Scanner{Src: src}); c.fast == nil || !c.fast.decode(&s, reflect.ValueOf(p).Elem()) || !s.End() {
		*p = zero
		if err := json.Unmarshal(src, p); err != nil {
			return zero, codecerr.NewCorrupt(tagJSON, src, err)
		}
	}
	v := *p
	if c.reuse {
		*p = zero
		c.values.Put(p)
	}
	return v, nil
}

// jsonWriter lets a json.Encoder append a value to a slice. Only a json.Encoder can leave HTML characters unescaped.
type jsonWriter[T any] struct {
	enc   *json.Encoder
	buf   []byte
	value T
}

func newJSONWriter[T any]() *jsonWriter[T] {
	w := new(jsonWriter[T])
	w.enc = json.NewEncoder(w)
	w.enc.SetEscapeHTML(false)
	return w
}

func (w *jsonWriter[T]) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}
