// Package errtype makes errors that metrics and traces tell apart by a name.
package errtype

import "errors"

// New returns an error like that of errors.New, which error.type gives its name, such as "tenants.ErrErasing".
func New(name, text string) error { return &sentinel{name, text} }

type sentinel struct{ name, text string }

func (e *sentinel) Error() string { return e.text }

// ErrorType is how OpenTelemetry asks an error for its type.
func (e *sentinel) ErrorType() string { return e.name }

// Foreign returns an error of the program's own, so that whatever it holds is not taken for an answer of Bigtable. It has the
// type that it says itself, or else the given name.
func Foreign(name string, err error) error { return &foreign{name, err} }

type foreign struct {
	name string
	err  error
}

func (e *foreign) Error() string { return e.err.Error() }
func (e *foreign) Unwrap() error { return e.err }

func (e *foreign) ErrorType() string {
	var typed interface{ ErrorType() string }
	if errors.As(e.err, &typed) && typed.ErrorType() != "" {
		return typed.ErrorType()
	}
	return e.name
}
