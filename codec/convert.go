package codec

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Convert returns a codec of To that stores the format of c. forth converts each From that was read to a To, and back
// converts each To to the From that is written. Use it to read an old format, whose Go type no longer exists, into
// the new type:
//
//	codec.Fallback(
//		codec.Proto[*pb.Reading](),
//		codec.Convert(codec.JSON[oldReading](), readingFromOld, nil),
//	)
//
// If back is nil, the codec only reads: writes and [Check] fail with [ErrReadOnly], except that Check accepts it as
// an old codec of a [Fallback]. Check rejects a nil forth. An error of forth becomes an [ErrCorrupt] for the payload,
// an error of back an [ErrEncode]; both wrap the original error.
//
// The codec reads every tag that c reads. It is safe for concurrent use if both functions are. It costs as much as
// they and c cost.
func Convert[From, To any](c Codec[From], forth func(From) (To, error), back func(To) (From, error)) Codec[To] {
	out := &convert[From, To]{from: c, forth: forth, back: back}
	switch {
	case c == nil:
		out.err = invalid.New(ErrInvalid, "codec", "nil", "a codec")
	case forth == nil:
		out.err = invalid.New(ErrInvalid, "forth", "nil", "a function")
	}
	return out
}

// convert is the codec of Convert.
type convert[From, To any] struct {
	from  Codec[From]
	forth func(From) (To, error)
	back  func(To) (From, error)
	err   error // why the arguments of Convert are invalid, or nil
}

// Tag implements Codec. It returns the tag of the other codec, or "" if that is nil.
func (c *convert[From, To]) Tag() string {
	if c.from == nil {
		return ""
	}
	return c.from.Tag()
}

// Check returns why the codec cannot write, or nil. Function Check calls it.
func (c *convert[From, To]) Check() error {
	if c.err != nil {
		return c.err
	}
	if err := Check(c.from); err != nil {
		return err
	}
	if c.back == nil {
		return invalid.New(ErrReadOnly, "back", "nil", "a function, so that values can be encoded")
	}
	return nil
}

// Readers returns a reader for each tag that the other codec reads. Function Readers calls it.
func (c *convert[From, To]) Readers() []Reader[To] {
	if c.err != nil {
		return nil
	}
	from := Readers(c.from)
	out := make([]Reader[To], len(from))
	for i, r := range from {
		out[i] = Reader[To]{Tag: r.Tag, Number: r.Number, Decode: func(src []byte) (To, error) {
			return c.decode(r.Tag, src, r.Decode)
		}}
	}
	return out
}

// Messages returns the messages of the other codec: the stored format is its own. Function Messages calls it.
func (c *convert[From, To]) Messages() map[string]protoreflect.MessageDescriptor {
	return messagesOf(c.from)
}

// Append implements Codec: it converts the value and appends the result. Errors match ErrEncode.
func (c *convert[From, To]) Append(dst []byte, v To) ([]byte, error) {
	switch {
	case c.err != nil:
		return dst, codecerr.NewEncode(c.Tag(), c.err)
	case c.back == nil:
		return dst, codecerr.NewEncode(c.Tag(), ErrReadOnly)
	}
	from, err := c.back(v)
	if err != nil {
		return dst, codecerr.NewEncode(c.Tag(), err)
	}
	return c.from.Append(dst, from)
}

// Decode implements Codec: it decodes a payload and converts the result. Errors match ErrCorrupt.
func (c *convert[From, To]) Decode(src []byte) (To, error) {
	if c.err != nil {
		var zero To
		return zero, codecerr.NewCorrupt(c.Tag(), src, c.err)
	}
	return c.decode(c.from.Tag(), src, c.from.Decode)
}

// decode is Decode for a payload with a tag that the other codec decodes with decode.
func (c *convert[From, To]) decode(tag string, src []byte, decode func([]byte) (From, error)) (To, error) {
	from, err := decode(src)
	if err == nil {
		var to To
		if to, err = c.forth(from); err == nil {
			return to, nil
		}
	}
	var zero To
	return zero, asCorrupt(tag, src, err)
}
