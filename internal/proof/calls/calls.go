// Package calls lists the public API for the tests that hold for all of it: no call panics, each stays in its tenant, is
// observed, and has a known cost. A new exported call belongs into one of its lists; TestEveryCallIsListed names what is missing.
package calls

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Call is a function or method that reads or writes data, takes a context or a store, or belongs to a type that does.
type Call struct {
	Func      any     // the function, or a method as a function of its receiver
	Tenants   Tenants // whose data it can see
	Operation string  // what telemetry reports of it, in db.operation.name; empty for nothing of its own
	Free      string  // why it makes no request; empty for a call that does, whose cost is counted
}

// Tenants are whose data a call can see. Each call that sees any is attacked in TestHostileTenants.
type Tenants int

// None: no tenant's points. One: those of the one that it is given or bound to. All: those of all, for operators; a context
// that carries a tenant is refused.
const (
	None Tenants = iota
	One
	All
)

// Name is the name of the call: "Repository.Put" for a method of package tsdb, "tenants.List" or "rollup.Reader.Many" for others.
func (c Call) Name() string {
	if c.IsMethod() {
		return strings.TrimPrefix(Name(c.Func), "tsdb.")
	}
	return Name(c.Func)
}

// IsMethod reports whether the call is a method.
func (c Call) IsMethod() bool { return strings.Count(Name(c.Func), ".") > 1 }

// Name returns the name of a function or method with its package, as "tsdb.Repository.Put".
func Name(f any) string {
	name := Path(f)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Path is Name with the package's path below the module, as "tsdb/rollup.Reader.Many".
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
