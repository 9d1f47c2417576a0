package codec

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is what a codec that cannot be used, or a tag that cannot be stored, matches.
var ErrInvalid = errors.New("codec: invalid")

// Check reports whether c can store and read values: it is there, its tags satisfy [CheckTag], no two of its readers
// claim the same tag, it can write, and whatever it wraps passes too. Constructors of this package return no error, so
// that codecs can be written in one expression; a codec that cannot work says so here, and refuses each call with the
// same error. Defining a schema calls Check, so most programs need not.
//
// A codec that has a method Check() error is asked by it first; a codec that wraps another forwards to the other there.
//
// Errors match [ErrInvalid], or [ErrReadOnly] where c can only read.
func Check[T any](c Codec[T]) error {
	if c == nil {
		return invalid.New(ErrInvalid, "codec", "nil", "a codec")
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
		return invalid.New(ErrInvalid, "readers", strconv.Itoa(len(readers)),
			fmt.Sprintf("the first to be of the tag that is written, %s", invalid.Quote(written)))
	}
	seen := make(map[string]bool, len(readers))
	for i, r := range readers {
		if err := CheckTag(r.Tag); err != nil {
			return err
		}
		if seen[r.Tag] {
			return invalid.New(ErrInvalid, "tag", invalid.Quote(r.Tag),
				"one reader a tag; Tagged gives a codec another tag")
		}
		seen[r.Tag] = true
		if r.Decode == nil {
			return invalid.New(ErrInvalid, fmt.Sprintf("reader %d", i), "nil", "a decode function")
		}
	}
	return nil
}
