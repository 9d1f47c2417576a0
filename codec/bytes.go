package codec

import (
	"errors"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// Bytes returns a codec that stores bytes unchanged. Its tag is "raw". Nil and empty are stored alike, and a read
// returns a new slice that is never nil. It accepts every value. A write allocates the payload, a read the copy. The
// codec is safe for concurrent use.
func Bytes() Codec[[]byte] { return bytesCodec{} }

// String returns a codec that stores text as plain UTF-8. Its tag is "str". Text that is not valid UTF-8 fails with
// [ErrEncode] on a write and with [ErrCorrupt] on a read, so readers in other languages can rely on it. A write
// allocates the payload, a read the string. The codec is safe for concurrent use.
func String() Codec[string] { return stringCodec{} }

const (
	tagBytes  = "raw"
	tagString = "str"
)

var errNotUTF8 = errors.New("not valid UTF-8")

// bytesCodec is the codec of Bytes.
type bytesCodec struct{}

// Tag implements Codec. It returns "raw".
func (bytesCodec) Tag() string { return tagBytes }

// Append implements Codec. It never fails.
func (bytesCodec) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode implements Codec. It returns a copy, and never fails.
func (bytesCodec) Decode(src []byte) ([]byte, error) { return append([]byte{}, src...), nil }

// stringCodec is the codec of String.
type stringCodec struct{}

// Tag implements Codec. It returns "str".
func (stringCodec) Tag() string { return tagString }

// Append implements Codec. Text that is not valid UTF-8 is refused with ErrEncode.
func (stringCodec) Append(dst []byte, v string) ([]byte, error) {
	if !utf8.ValidString(v) {
		return dst, codecerr.NewEncode(tagString, errNotUTF8)
	}
	return append(dst, v...), nil
}

// Decode implements Codec. A payload that is not valid UTF-8 is refused with ErrCorrupt.
func (stringCodec) Decode(src []byte) (string, error) {
	if !utf8.Valid(src) {
		return "", codecerr.NewCorrupt(tagString, src, errNotUTF8)
	}
	return string(src), nil
}
