package codec

import "github.com/tidemark-go/tidemark/internal/invalid"

// Convert returns a codec of To that stores what c stores: forth turns each From that was read into a To, back turns
// each To into the From that is written. With it an old format whose Go type has gone is read into the new type:
//
//	codec.Fallback(
//		codec.Proto[*pb.Reading](),
//		codec.Convert(codec.JSON[oldReading](), readingFromOld, nil),
//	)
//
// Where back is nil the codec only reads: writes fail with [ErrReadOnly], and [Check] says the same, except for an old
// codec of a [Fallback]. A nil forth is reported by Check too. An error of forth becomes an [ErrCorrupt] about the
// payload, one of back an [ErrEncode]; both keep it as their cause.
//
// The codec reads every tag that c reads. It is safe for concurrent use if both functions are, and costs what they and
// c cost.
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

type convert[From, To any] struct {
	from  Codec[From]
	forth func(From) (To, error)
	back  func(To) (From, error)
	err   error
}

func (c *convert[From, To]) Tag() string {
	if c.from == nil {
		return ""
	}
	return c.from.Tag()
}

func (c *convert[From, To]) Check() error {
	if c.err != nil {
		return c.err
	}
	if err := Check(c.from); err != nil {
		return err
	}
	if c.back == nil {
		return invalid.New(ErrReadOnly, "back", "nil", "a function, to write")
	}
	return nil
}

func (c *convert[From, To]) Readers() []Reader[To] {
	if c.err != nil {
		return nil
	}
	from := Readers(c.from)
	out := make([]Reader[To], len(from))
	for i, r := range from {
		out[i] = Reader[To]{Tag: r.Tag, Decode: func(src []byte) (To, error) {
			return c.decode(r.Tag, src, r.Decode)
		}}
	}
	return out
}

func (c *convert[From, To]) Append(dst []byte, v To) ([]byte, error) {
	switch {
	case c.err != nil:
		return dst, NewEncodeError(c.Tag(), c.err)
	case c.back == nil:
		return dst, NewEncodeError(c.Tag(), ErrReadOnly)
	}
	from, err := c.back(v)
	if err != nil {
		return dst, NewEncodeError(c.Tag(), err)
	}
	return c.from.Append(dst, from)
}

func (c *convert[From, To]) Decode(src []byte) (To, error) {
	if c.err != nil {
		var zero To
		return zero, NewCorruptError(c.Tag(), src, c.err)
	}
	return c.decode(c.from.Tag(), src, c.from.Decode)
}

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
