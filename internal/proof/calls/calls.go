// Package calls lists the public API for the tests that cover all of it: no call panics, each call stays within its
// tenant, is reported to telemetry, and has a known cost. Add a new exported function, method or type to one of its
// lists; TestEveryCallIsListed names what is missing.
package calls

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Call is an exported function or method that reads or writes data, takes a context or a store, or belongs to a type
// that does.
type Call struct {
	Func      any     // the function, or a method expression
	Tenants   Tenants // the tenants whose data it can see
	Operation string  // its db.operation.name in telemetry; empty if it has none of its own
	Free      string  // why it makes no request; empty if it makes requests, whose cost is then counted
}

// Tenants says whose data a call can see. TestHostileTenants attacks each call that sees any.
type Tenants int

// None: no tenant's points. One: the points of the tenant that the call is given or bound to. All: all tenants' points,
// for operators; a context with a tenant is refused.
const (
	None Tenants = iota
	One
	All
)

// Name returns the name of the call: "Repository.Put" for a method of package tsdb, "tenants.List" or
// "rollup.Reader.Many" for others.
func (c Call) Name() string {
	if c.IsMethod() {
		return strings.TrimPrefix(Name(c.Func), "tsdb.")
	}
	return Name(c.Func)
}

// IsMethod reports whether the call is a method.
func (c Call) IsMethod() bool { return strings.Count(Name(c.Func), ".") > 1 }

// Name returns the name of a function or method with its package, such as "tsdb.Repository.Put".
func Name(f any) string {
	name := Path(f)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Path is Name with the package's path in the module, such as "tsdb/rollup.Reader.Many".
func Path(f any) string {
	name := strings.NewReplacer("[...]", "", "(*", "", ")", "").Replace(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
	return strings.TrimPrefix(name, module)
}

const module = "github.com/tidemark-go/tidemark/"

// Of returns the calls whose names begin with one of the prefixes.
func Of(prefixes ...string) (found []Call) {
	for _, c := range List {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(c.Name(), p) }) {
			found = append(found, c)
		}
	}
	return found
}
