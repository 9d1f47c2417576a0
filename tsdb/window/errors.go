package window

import "errors"

var (
	// ErrInvalid: invalid argument, or an element of a sequence that contradicts the arguments. A tsdb.InvalidError names the
	// field, the value and what is allowed.
	ErrInvalid = errors.New("window: invalid input")
	// ErrOrder: the sequence is not in the order that the caller stated.
	ErrOrder = errors.New("window: out of order")
	// ErrTooManyFilled: the gaps have more buckets than Options.MaxFilled.
	ErrTooManyFilled = errors.New("window: gaps hold too many buckets")
)
