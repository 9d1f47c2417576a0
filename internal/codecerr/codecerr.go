// Package codecerr has the errors of payloads and of tags. Package codec has the sentinels that programs compare them
// with.
package codecerr

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// The sentinels of package codec. It exports ErrCorrupt and ErrEncode.
var (
	ErrInvalid  = invalid.ErrCodec
	ErrReadOnly = errors.New("codec: read only")
	ErrCorrupt  = errors.New("codec: corrupt payload")
	ErrEncode   = errors.New("codec: value cannot be encoded")
)

// maxSample is how many bytes of a payload an error shows.
const maxSample = 32

// Corrupt says which payload could not be decoded and why. It matches [ErrCorrupt] and unwraps to the cause. The
// zero value describes an empty payload without a tag. It does not change after it was made, so goroutines may share
// it.
type Corrupt struct {
	// Tag is the stored tag of the payload.
	Tag string
	// Len is the length of the payload in bytes.
	Len int
	// Sample is a copy of its first bytes, 32 at most.
	Sample []byte
	// Err is the cause.
	Err error
}

// NewCorrupt returns a [*Corrupt] for the payload src. It copies at most 32 bytes of src.
func NewCorrupt(tag string, src []byte, cause error) *Corrupt {
	return &Corrupt{Tag: tag, Len: len(src), Sample: bytes.Clone(src[:min(len(src), maxSample)]), Err: cause}
}

// Error implements error. It shows the sample quoted, with everything except printable ASCII escaped.
func (e *Corrupt) Error() string {
	e = invalid.OrZero(e)
	more := ""
	if e.Len > len(e.Sample) {
		more = "…"
	}
	return fmt.Sprintf("codec: corrupt %q payload of %d bytes %+q%s: %v", e.Tag, e.Len, e.Sample, more, e.Err)
}

// Is reports whether target is [ErrCorrupt].
func (e *Corrupt) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *Corrupt) Unwrap() error { return invalid.OrZero(e).Err }

// Encode says why a value could not be encoded. It matches [ErrEncode] and unwraps to the cause. The zero value
// has neither tag nor cause. It does not change after it was made, so goroutines may share it.
type Encode struct {
	// Tag is the tag that the payload would have had.
	Tag string
	// Err is the cause.
	Err error
}

// NewEncode returns an [*Encode].
func NewEncode(tag string, cause error) *Encode {
	return &Encode{Tag: tag, Err: cause}
}

// Error implements error.
func (e *Encode) Error() string {
	e = invalid.OrZero(e)
	return fmt.Sprintf("codec: value cannot be encoded as %q: %v", e.Tag, e.Err)
}

// Is reports whether target is [ErrEncode].
func (e *Encode) Is(target error) bool { return target == ErrEncode }

// Unwrap returns the cause.
func (e *Encode) Unwrap() error { return invalid.OrZero(e).Err }
