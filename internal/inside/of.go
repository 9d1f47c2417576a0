// Package inside has the cores of public types. Package gate says how they are reached.
//
// Callers keep tsdb's guarantees: they build keys and ranges with package rowkey and a validated tenant, and each
// returned row is checked against the requested range.
package inside

import "github.com/tidemark-go/tidemark/internal/gate"

// These are those of package gate.
type (
	Gate[C any]   = gate.Gate[C]
	Face[C any]   = gate.Face[C]
	Core[P any]   = gate.Core[P]
	Handle[C any] = gate.Handle[C]
)

// Of returns the core of a value: see gate.Of.
func Of[P Face[C], C interface{ ~struct{ Core[P] } }](p P) C { return gate.Of[P, C](p) }

// Hold returns a handle of a core.
func Hold[C any](core C) Handle[C] { return gate.Hold(core) }

// Held returns the core of a value of an interface: see gate.Held.
func Held[C any](f Face[C]) C { return gate.Held(f) }
