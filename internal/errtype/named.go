// Package errtype creates errors that metrics and traces distinguish by name.
package errtype

import "errors"

// New returns an error like errors.New, but with a name for error.type, such as "tenants.ErrErasing".
func New(name, text string) error { return &sentinel{name, text} }

type sentinel struct{ name, text string }

func (e *sentinel) Error() string { return e.text }

// ErrorType is the method with which OpenTelemetry gets an error's type.
func (e *sentinel) ErrorType() string { return e.name }

// Foreign wraps an error of the program, so that its contents are not mistaken for a response of Bigtable. It has the
// error's own type, or else the given name.
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
