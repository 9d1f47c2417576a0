package window

import "errors"

// ErrTooManyFilled means that the gaps have more buckets than Options.MaxFilled. The other errors of this package match
// tsdb.ErrInvalid: an invalid argument, or an element of a sequence that contradicts the arguments. The error of a
// sequence that is out of order matches none, because it is a fault of the program.
var ErrTooManyFilled = errors.New("window: gaps hold too many buckets")
