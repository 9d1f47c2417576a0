package codec

import (
	"fmt"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Check returns an error if c cannot store and read values. c must not be nil, its tags must be valid ([Codec]), its
// readers must have different tags, it must be able to write, and the codecs that it wraps must pass, too.
// Constructors of this package return no error, so that codecs can be written in one expression. An invalid codec
// fails Check, and each call on it returns the same error. Defining a schema calls Check, so most programs need not.
//
// If a codec has a method Check() error, Check calls it first. A codec that wraps another one calls Check for it
// there.
func Check[T any](c Codec[T]) error {
	if c == nil {
		return invalid.New(codecerr.ErrInvalid, "codec", "nil", "a codec")
	}
	if own, ok := c.(interface{ Check() error }); ok {
		if err := own.Check(); err != nil {
			return err
		}
	}
	return checkReaders(c.Tag(), bareReaders(c))
}

func checkReaders[T any](written string, readers []Reader[T]) error {
	if len(readers) == 0 || readers[0].Tag != written {
		return invalid.New(codecerr.ErrInvalid, "readers", strconv.Itoa(len(readers)),
			fmt.Sprintf("the first to be of the tag that is written, %s", invalid.Quote(written)))
	}
	seen := make(map[string]bool, len(readers))
	for i, r := range readers {
		if err := codecerr.CheckTag(r.Tag); err != nil {
			return err
		}
		if seen[r.Tag] {
			return invalid.New(codecerr.ErrInvalid, "tag", invalid.Quote(r.Tag),
				"one reader per tag; Tagged gives a codec another tag")
		}
		seen[r.Tag] = true
		if r.Decode == nil {
			return invalid.New(codecerr.ErrInvalid, fmt.Sprintf("reader %d", i), "nil", "a decode function")
		}
	}
	return nil
}
