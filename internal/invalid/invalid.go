// Package invalid is the one shape that every refused input of this module has: which field, which value, and the
// limit that it broke.
package invalid

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxValue is how many bytes of a refused value an error repeats.
const maxValue = 64

// ErrInput is what package tsdb and those that are built on it wrap.
var ErrInput = errors.New("tsdb: invalid input")

// What packages refuse that stand alone, and causes that have a response of their own. They do not match ErrInput: the
// refused value may be a stored one, and then it is not the caller's input.
var (
	ErrPolicy   = errors.New("gc: invalid retention")
	ErrVersions = errors.New("gc: versions policies do not apply to points")
	ErrCodec    = errors.New("codec: invalid")
	ErrLimits   = errors.New("limit: invalid limits")
	ErrHTTP     = errors.New("httptenant: invalid input")
	ErrGRPC     = errors.New("grpctenant: invalid input")
	ErrOrder    = errors.New("window: out of order")
	ErrPersonal = errors.New("keys: looks like personal data")
)

// Input returns err, as an error that matches ErrInput too: for a call whose arguments other packages check.
func Input(err error) error {
	if err == nil || errors.Is(err, ErrInput) {
		return err
	}
	return input{err}
}

// Under returns an error like errors.New that also matches a wider one.
func Under(wider error, text string) error { return &narrow{wider, text} }

type narrow struct {
	wider error
	text  string
}

func (e *narrow) Error() string { return e.text }
func (e *narrow) Unwrap() error { return e.wider }

type input struct{ error }

func (e input) Unwrap() []error { return []error{e.error, ErrInput} }

// Error says which input was refused and why.
type Error struct {
	// Field names the input, as the caller knows it: "tenant", "part 2", "time".
	Field string
	// Value is the refused value, quoted where it is text, shortened where it is long.
	Value string
	// Limit says what would have been accepted.
	Limit string
	// Err is the sentinel of the package that refused it.
	Err error
}

// New returns an Error that unwraps to sentinel. The sentinel's text leads the message, so it carries its package's
// name.
func New(sentinel error, field, value, limit string) *Error {
	return &Error{Field: field, Value: value, Limit: limit, Err: sentinel}
}

// Range returns nil if v is least to most, where a most of 0 is no bound, and otherwise an Error with that limit.
func Range[N ~int | ~int64](sentinel error, field string, v, least, most N, limit string) error {
	if v < least || most != 0 && v > most {
		return New(sentinel, field, fmt.Sprint(v), limit)
	}
	return nil
}

// OrZero returns e, or a zero error for nil: a method of an error type that begins with it does not panic on a nil
// pointer.
func OrZero[E any](e *E) *E {
	if e == nil {
		return new(E)
	}
	return e
}

// Error implements error.
func (e *Error) Error() string {
	e = OrZero(e)
	return fmt.Sprintf("%v: %s is %s; want %s", e.Err, e.Field, e.Value, e.Limit)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return OrZero(e).Err }

// Quote renders text from outside for an Error: quoted, control bytes escaped, and shortened to 64 bytes with its full
// length noted.
func Quote(s string) string {
	if s == "" {
		return "empty"
	}
	if len(s) <= maxValue {
		return strconv.Quote(s)
	}
	cut := maxValue
	for cut > maxValue-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// NameByte reports whether c is allowed in the name of a tenant or a dataset.
func NameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
