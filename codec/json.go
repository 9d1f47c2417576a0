package codec

import (
	"encoding/json"
	"sync"
)

// JSON returns a codec that stores values as JSON text, by the rules of [encoding/json]: struct tags, MarshalJSON and
// UnmarshalJSON apply, unknown fields are ignored, and map keys are sorted. Its tag is "json".
//
// It differs from [json.Marshal] in three ways. It stores '<', '>' and '&' unescaped. It uses a MarshalJSON of *T for
// a T, too. On an error it returns no partial value. JSON has no NaN and no infinity: a value with one fails with
// [ErrEncode]. In text that is not valid UTF-8, U+FFFD replaces the invalid bytes.
//
// A write allocates the payload; a read allocates what [json.Unmarshal] does, without the value itself. The codec is safe for
// concurrent use.
func JSON[T any]() Codec[T] { return new(jsonCodec[T]) }

const tagJSON = "json"

type jsonCodec[T any] struct {
	writers sync.Pool // of *jsonWriter[T]
	values  sync.Pool // of *T, all zero
}

func (*jsonCodec[T]) Tag() string { return tagJSON }

func (c *jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	w, ok := c.writers.Get().(*jsonWriter[T])
	if !ok {
		w = newJSONWriter[T]()
	}
	w.buf, w.value = dst, v
	err := w.enc.Encode(&w.value)
	out := w.buf
	*w = jsonWriter[T]{enc: w.enc}
	if err != nil {
		return dst, NewEncodeError(tagJSON, err)
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
	if err := json.Unmarshal(src, p); err != nil {
		return zero, NewCorruptError(tagJSON, src, err)
	}
	v := *p
	*p = zero
	c.values.Put(p)
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
