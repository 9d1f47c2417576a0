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
// A write allocates the payload and a copy of v; a read allocates what [json.Unmarshal] does. The codec is safe for
// concurrent use.
func JSON[T any]() Codec[T] { return new(jsonCodec[T]) }

const tagJSON = "json"

type jsonCodec[T any] struct {
	writers sync.Pool // of *jsonWriter
}

func (*jsonCodec[T]) Tag() string { return tagJSON }

func (c *jsonCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	w, ok := c.writers.Get().(*jsonWriter)
	if !ok {
		w = newJSONWriter()
	}
	w.buf = dst
	err := w.enc.Encode(&v)
	out := w.buf
	w.buf = nil
	if err != nil {
		return dst, NewEncodeError(tagJSON, err)
	}
	c.writers.Put(w)
	return out[:len(out)-1], nil // without the newline that json.Encoder appends
}

func (*jsonCodec[T]) Decode(src []byte) (T, error) {
	var v T
	if err := json.Unmarshal(src, &v); err != nil {
		var zero T
		return zero, NewCorruptError(tagJSON, src, err)
	}
	return v, nil
}

// jsonWriter lets a json.Encoder append to a slice. Only a json.Encoder can leave HTML characters unescaped.
type jsonWriter struct {
	enc *json.Encoder
	buf []byte
}

func newJSONWriter() *jsonWriter {
	w := new(jsonWriter)
	w.enc = json.NewEncoder(w)
	w.enc.SetEscapeHTML(false)
	return w
}

func (w *jsonWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}
