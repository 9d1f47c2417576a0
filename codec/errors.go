package codec

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

var (
	// ErrCorrupt matches the error for a payload that cannot be decoded, a [*CorruptError].
	ErrCorrupt = errors.New("codec: corrupt payload")

	// ErrEncode matches the error for a value that cannot be encoded, an [*EncodeError].
	ErrEncode = errors.New("codec: value cannot be encoded")

	// ErrUnknownTag matches the error for a payload whose tag no reader has.
	ErrUnknownTag = errors.New("codec: unknown tag")

	// ErrReadOnly matches the error for a write with a codec that can only read: see [Convert].
	ErrReadOnly = errors.New("codec: read only")

	errShrunk = errors.New("the codec returned a shorter buffer than it was given to append to")
)

// maxSample is how many bytes of a payload an error shows.
const maxSample = 32

// CorruptError says which payload could not be decoded and why. It matches [ErrCorrupt] and unwraps to the cause. The
// zero value describes an empty payload without a tag. It does not change after it was made, so goroutines may share
// it.
type CorruptError struct {
	// Tag is the stored tag of the payload.
	Tag string
	// Len is the length of the payload in bytes.
	Len int
	// Sample is a copy of its first bytes, 32 at most.
	Sample []byte
	// Err is the cause.
	Err error
}

// NewCorruptError returns a [*CorruptError] for the payload src. It copies at most 32 bytes of src. Authors of codecs
// return it from Decode.
func NewCorruptError(tag string, src []byte, cause error) *CorruptError {
	return &CorruptError{Tag: tag, Len: len(src), Sample: bytes.Clone(src[:min(len(src), maxSample)]), Err: cause}
}

// Error implements error. It shows the sample quoted, with everything except printable ASCII escaped.
func (e *CorruptError) Error() string {
	e = invalid.OrZero(e)
	more := ""
	if e.Len > len(e.Sample) {
		more = "…"
	}
	return fmt.Sprintf("codec: corrupt %q payload of %d bytes %+q%s: %v", e.Tag, e.Len, e.Sample, more, e.Err)
}

// Is reports whether target is [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return invalid.OrZero(e).Err }

// EncodeError says why a value could not be encoded. It matches [ErrEncode] and unwraps to the cause. The zero value
// has neither tag nor cause. It does not change after it was made, so goroutines may share it.
type EncodeError struct {
	// Tag is the tag that the payload would have had.
	Tag string
	// Err is the cause.
	Err error
}

// NewEncodeError returns an [*EncodeError]. Authors of codecs return it from Append.
func NewEncodeError(tag string, cause error) *EncodeError {
	return &EncodeError{Tag: tag, Err: cause}
}

// Error implements error.
func (e *EncodeError) Error() string {
	e = invalid.OrZero(e)
	return fmt.Sprintf("codec: value cannot be encoded as %q: %v", e.Tag, e.Err)
}

// Is reports whether target is [ErrEncode].
func (e *EncodeError) Is(target error) bool { return target == ErrEncode }

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return invalid.OrZero(e).Err }

// asCorrupt wraps err in a CorruptError with tag, unless it is one.
func asCorrupt(tag string, src []byte, err error) error {
	if is, ok := err.(*CorruptError); ok && is.Tag == tag { // a deeper one is about other bytes
		return err
	}
	return NewCorruptError(tag, src, err)
}

// asEncode wraps err in an EncodeError with tag, unless it is one.
func asEncode(tag string, err error) error {
	if is, ok := err.(*EncodeError); ok && is.Tag == tag { // a deeper one is about another codec
		return err
	}
	return NewEncodeError(tag, err)
}
