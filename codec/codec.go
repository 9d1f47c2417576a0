package codec

import (
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Codec turns values of one Go type into stored bytes and back. Its tag is stored beside each payload and selects the
// decoder of a read, so a tag is a contract: once data carries it, it must mean the same bytes for ever.
//
// A Codec is used by many goroutines at once and must not change after its first use. Neither Append nor Decode may
// panic on any input. Write one for a type of your own in three methods; the package example shows how.
type Codec[T any] interface {
	// Tag names the stored format. It is constant and satisfies [CheckTag].
	Tag() string

	// Append adds the encoding of v to dst and returns the longer slice, as the built-in append does. Equal values give
	// equal bytes. It keeps neither dst nor anything of v. On an error the caller drops whatever was appended;
	// [NewEncodeError] makes the error that callers look for.
	Append(dst []byte, v T) ([]byte, error)

	// Decode reads one value that takes up the whole of src. Bytes that are left over are an error. The result must not
	// share memory with src, which the caller may overwrite at once. [NewCorruptError] makes the error that callers
	// look for.
	Decode(src []byte) (T, error)
}

// Multi is implemented by a [Codec] that reads more tags than the one that it writes, as that of [Fallback] does.
type Multi[T any] interface {
	// Readers lists what can be read, the tag that is written first. The caller may change the slice.
	Readers() []Reader[T]
}

// Reader decodes the payloads of one tag. Its zero value is not usable. A Reader that [Readers] returned may be used
// by many goroutines at once.
type Reader[T any] struct {
	// Tag is the stored tag that selects this reader.
	Tag string
	// Decode reads one payload of that tag, under the rules of [Codec].
	Decode func(src []byte) (T, error)
}

// Readers lists the formats that c can read, the one that it writes first. Each Decode returns errors that match
// [ErrCorrupt], also where the codec's own do not, and a zero value beside them. Readers allocates: call it once and
// keep the result.
func Readers[T any](c Codec[T]) []Reader[T] {
	readers := bareReaders(c)
	for i, r := range readers {
		readers[i].Decode = func(src []byte) (T, error) {
			v, err := r.Decode(src)
			if err != nil {
				var zero T
				return zero, asCorrupt(r.Tag, src, err)
			}
			return v, nil
		}
	}
	return readers
}

// bareReaders is Readers without the promise about errors.
func bareReaders[T any](c Codec[T]) []Reader[T] {
	if c == nil {
		return nil
	}
	if m, ok := c.(Multi[T]); ok {
		return m.Readers()
	}
	return []Reader[T]{{Tag: c.Tag(), Decode: c.Decode}}
}

// Tags lists the tags that c reads, the one that it writes first. It allocates: call it once and keep the result.
func Tags[T any](c Codec[T]) []string {
	readers := bareReaders(c)
	tags := make([]string, len(readers))
	for i, r := range readers {
		tags[i] = r.Tag
	}
	return tags
}

// Decoder returns the function that decodes payloads of one tag, or an error that matches [ErrUnknownTag] and names
// the tag where c does not read it. The function costs what the codec's own decoder costs, may be used by many
// goroutines at once, and its errors match [ErrCorrupt]. Decoder itself allocates: call it once a tag.
func Decoder[T any](c Codec[T], tag string) (func(src []byte) (T, error), error) {
	readers := Readers(c)
	i := slices.IndexFunc(readers, func(r Reader[T]) bool { return r.Tag == tag })
	if i < 0 {
		return nil, invalid.New(ErrUnknownTag, "tag", invalid.Quote(tag), "one of "+strings.Join(Tags(c), ", "))
	}
	return readers[i].Decode, nil
}

// DecodeTag decodes one payload that is stored under tag. Its errors match [ErrUnknownTag] or [ErrCorrupt]. It looks
// the tag up each time; a program that decodes many payloads keeps the function that [Decoder] returns.
func DecodeTag[T any](c Codec[T], tag string, src []byte) (T, error) {
	decode, err := Decoder(c, tag)
	if err != nil {
		var zero T
		return zero, err
	}
	return decode(src)
}

// Append adds the encoding of v to dst, as c.Append does, with two promises more: an error matches [ErrEncode]
// whoever wrote the codec, and dst comes back as it was beside an error. It adds no allocation.
func Append[T any](c Codec[T], dst []byte, v T) ([]byte, error) {
	if c == nil {
		return dst, NewEncodeError("", Check(c))
	}
	out, err := c.Append(dst, v)
	if err != nil {
		return dst, asEncode(c.Tag(), err)
	}
	if len(out) < len(dst) {
		return dst, NewEncodeError(c.Tag(), errShrunk)
	}
	return out, nil
}
