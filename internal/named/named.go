// Package named makes errors that metrics and traces tell apart by a name.
package named

// New returns an error like that of errors.New, which error.type gives its name, such as "tenants.ErrErasing".
func New(name, text string) error { return &sentinel{name, text} }

type sentinel struct{ name, text string }

func (e *sentinel) Error() string { return e.text }

// ErrorType is how OpenTelemetry asks an error for its type.
func (e *sentinel) ErrorType() string { return e.name }
