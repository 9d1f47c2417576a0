package codec

import (
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
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
// If back is nil, the codec only reads: writes and [Check] fail, except that Check accepts it as
// an old codec of a [Fallback]. Check rejects a nil forth. An error of forth becomes an [ErrCorrupt] for the payload,
// an error of back an [ErrEncode]; both wrap the original error.
//
// The codec reads every tag that c reads. It is safe for concurrent use if both functions are. It costs as much as
// they and c cost.
func Convert[From, To any](c Codec[From], forth func(From) (To, error), back func(To) (From, error)) Codec[To] {
	out := &composed[To]{}
	if c == nil {
		out.err = invalid.New(codecerr.ErrInvalid, "codec", "nil", "a codec")
		return out
	}
	out.tag, out.messages = c.Tag(), messagesOf(c) // the stored format is that of c
	if forth == nil {
		out.err = invalid.New(codecerr.ErrInvalid, "forth", "nil", "a function")
		return out
	}
	if out.check = Check(c); out.check == nil && back == nil {
		out.check = invalid.New(codecerr.ErrReadOnly, "back", "nil", "a function, so that values can be encoded")
	}
	for _, r := range Readers(c) {
		out.readers = append(out.readers, Reader[To]{Tag: r.Tag, Number: r.Number, Decode: converted(r.Tag, r.Decode, forth)})
	}
	out.layouts = make(map[string]layout.Of[To])
	for tag, l := range layout.ByTag[From](c) {
		to := layout.Of[To]{Fields: layout.Fields{Format: l.Format, JSON: l.JSON, Message: l.Message, Unpack: l.Unpack}}
		if l.Decode != nil {
			to.Decode = converted(tag, l.Decode, forth)
		}
		out.layouts[tag] = to
	}
	out.decode = converted(out.tag, c.Decode, forth)
	out.append = func(dst []byte, v To) ([]byte, error) {
		if back == nil {
			return dst, codecerr.NewEncode(out.tag, codecerr.ErrReadOnly)
		}
		from, err := back(v)
		if err != nil {
			return dst, codecerr.NewEncode(out.tag, err)
		}
		return c.Append(dst, from)
	}
	return out
}

// converted returns a function that decodes a payload with a tag and converts the result.
func converted[From, To any](tag string, decode func([]byte) (From, error), forth func(From) (To, error)) func([]byte) (To, error) {
	return func(src []byte) (To, error) {
		from, err := decode(src)
		if err == nil {
			var to To
			if to, err = forth(from); err == nil {
				return to, nil
			}
		}
		var zero To
		return zero, asCorrupt(tag, src, err)
	}
}
