package window

import "errors"

// The other errors of this package match tsdb.ErrInvalid: an invalid argument, or an element of a sequence that
// contradicts the arguments.
var (
	// ErrOrder: the sequence is not in the order that the caller stated.
	ErrOrder = errors.New("window: out of order")
	// ErrTooManyFilled: the gaps have more buckets than Options.MaxFilled.
	ErrTooManyFilled = errors.New("window: gaps hold too many buckets")
)
