package codec

import (
	"encoding/json"
	"sync"
)

// JSON returns a codec that stores values as JSON text, by the rules of [encoding/json]: struct tags, MarshalJSON and
// UnmarshalJSON all count, unknown fields are skipped, and map keys are written in order. Its tag is "json".
//
// Three things differ from [json.Marshal]: '<', '>' and '&' are stored as they are; a MarshalJSON of *T is used for a T
// too; and on an error no half-filled value comes back. JSON has no NaN and no infinity: a value that holds one is
// refused with [ErrEncode]. Text that is not valid UTF-8 is stored with U+FFFD in the place of the bad bytes.
//
// A write allocates the payload and a copy of v; a read what [json.Unmarshal] does. The codec is safe for concurrent
// use.
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
	return out[:len(out)-1], nil // without the newline that ends each value of a stream
}

func (*jsonCodec[T]) Decode(src []byte) (T, error) {
	var v T
	if err := json.Unmarshal(src, &v); err != nil {
		var zero T
		return zero, NewCorruptError(tagJSON, src, err)
	}
	return v, nil
}

// jsonWriter lets a json.Encoder, which alone can leave HTML characters as they are, append to a slice.
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
