// Package gate opens the public types of this module to its other packages. A type T embeds Gate[C], under an
// unexported alias, and Of returns its core, a C. The compiler checks every call. Nothing outside of this module can
// reach a core: it cannot import this package, and a Gate has no exported method.
//
// Callers keep tsdb's guarantees: they build keys and ranges with package rowkey and a validated tenant, and each
// returned row is checked against the requested range.
package gate

// Gate is embedded by a public type whose core is a C. It takes no memory if it is the first field, and holds nothing:
// nil and the zero value have a core too.
type Gate[C any] struct{}

func (Gate[C]) core() (c C) { return c }

// Face is embedded by a public interface whose core is a C. Types of other modules cannot implement it.
type Face[C any] interface{ core() C }

// Core is all that a core consists of; its methods are what it is for. Only Of makes one with a value, so a core that
// reflection makes has none.
type Core[P any] struct{ value P }

// Value returns the value whose core it is.
func (c Core[P]) Value() P { return c.value }

// Of returns the core of a value. A core's methods that make or convert a value use none: nil is enough for them.
func Of[P Face[C], C interface{ ~struct{ Core[P] } }](p P) C { return C{Core[P]{p}} }

// Handle is a Gate with a core that is data: what packages below that of the type need.
type Handle[C any] struct{ held C }

// Hold returns a handle of a core.
func Hold[C any](core C) Handle[C] { return Handle[C]{core} }

func (h Handle[C]) core() C { return h.held }

// Held returns the core of a value of an interface, whose types embed a Handle. It is zero if there is none, as in nil
// pointers and in types of other modules that embed nil.
func Held[C any](f Face[C]) (core C) {
	defer func() { _ = recover() }() // of a nil pointer, however deep it is embedded
	return f.core()
}
