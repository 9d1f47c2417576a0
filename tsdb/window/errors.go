package window

import "errors"

var (
	// ErrInvalid: an argument that nothing can be made of, or an element of a sequence that does not fit what was said of
	// it; a tsdb.InvalidError says which, and the limit.
	ErrInvalid = errors.New("window: invalid input")
	// ErrOrder: the sequence does not run in the order that it was said to have.
	ErrOrder = errors.New("window: out of order")
	// ErrTooManyFilled: gaps hold more buckets than Options.MaxFilled.
	ErrTooManyFilled = errors.New("window: gaps hold too many buckets")
)
