package codec

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/codecerr"
)

var (
	// ErrCorrupt matches the error for a payload that cannot be decoded. Its text has the tag, the length, up to 32
	// bytes and the cause.
	ErrCorrupt = codecerr.ErrCorrupt

	// ErrEncode matches the error for a value that cannot be encoded.
	ErrEncode = codecerr.ErrEncode

	// ErrUnknownTag matches the error for a payload whose tag no reader has.
	ErrUnknownTag = errors.New("codec: unknown tag")

	errShrunk = errors.New("the codec returned a shorter buffer than it was given to append to")
)

// asCorrupt wraps err in a codecerr.Corrupt with tag, unless it is one.
func asCorrupt(tag string, src []byte, err error) error {
	if is, ok := err.(*codecerr.Corrupt); ok && is.Tag == tag { // a deeper one is about other bytes
		return err
	}
	return codecerr.NewCorrupt(tag, src, err)
}

// asEncode wraps err in a codecerr.Encode with tag, unless it is one.
func asEncode(tag string, err error) error {
	if is, ok := err.(*codecerr.Encode); ok && is.Tag == tag { // a deeper one is about another codec
		return err
	}
	return codecerr.NewEncode(tag, err)
}
