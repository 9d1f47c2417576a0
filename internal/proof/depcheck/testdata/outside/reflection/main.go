// Command reflection tries to reach the core of public values by reflection, with nil, zero values and types of its
// own. It prints what it reaches.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

type (
	aroundStore   struct{ *tsdb.Store }
	aroundDataset struct{ tsdb.Dataset }
	aroundRollup  struct{ tsdb.Rollup }
	named         struct{ tsdb.Rollup }
)

func (named) Name() string { return "named" }

var reached int

func report(how string, what any) {
	reached++
	fmt.Printf("%s: %v\n", how, what)
}

// refused calls f, which panics or returns false if what it tries is refused.
func refused(how string, f func() bool) {
	defer func() { _ = recover() }()
	if f() {
		report(how, "was not refused")
	}
}

func main() {
	count := rollup.MustDefine[int]("count", window.Days(1), nil, rollup.Options{})
	schema := tsdb.MustDefine("readings", tsdb.Key("a"), codec.JSON[int](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{count}})
	repo := schema.For(new(tsdb.Store), tenant.MustParse("acme"))
	by, err := window.New(window.Days(1), []window.Measure[int]{{Name: "n", Of: func(n int) (float64, bool) { return float64(n), true }}}, window.Options{})
	if err != nil {
		panic(err)
	}
	values := []any{
		new(tsdb.Store), (*tsdb.Store)(nil), new(tsdb.Writer), repo, (*tsdb.Repository[int])(nil), schema, (*tsdb.Schema[int])(nil), by, count,
		rollup.For(count, repo), tsdb.NewEntity("a"), tsdb.NewPrefix("a"), tsdb.AllTime(),
		aroundStore{new(tsdb.Store)},
		&aroundStore{},
		aroundDataset{schema},
		&aroundDataset{},
		aroundRollup{count},
		&aroundRollup{},
	}
	seen := map[reflect.Type]bool{}
	for _, v := range values {
		methods(reflect.ValueOf(v))
		walk(reflect.TypeOf(v), seen)
		fields(reflect.ValueOf(v))
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[tsdb.Dataset](), reflect.TypeFor[tsdb.Rollup](), reflect.TypeFor[tsdb.ReadOption](), reflect.TypeFor[window.Ranger[int]](),
	} {
		walk(t, seen)
	}
	if !seen[reflect.TypeFor[tsdb.Store]()] || len(seen) < 100 {
		report("walk", "it sees too little to prove anything")
	}
	for t := range seen {
		forge(t, schema)
	}
	for _, r := range []tsdb.Rollup{nil, (*rollup.Rollup[int])(nil), new(rollup.Rollup[int]), aroundRollup{}, named{}, named{(*rollup.Rollup[int])(nil)}} {
		if r, ok := r.(aroundRollup); ok && r.Rollup == nil {
			continue // its Name cannot be called
		}
		if _, err := tsdb.Define("readings", tsdb.Key("a"), codec.JSON[int](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}}); err == nil {
			report("a rollup that is none", fmt.Sprintf("%#v", r))
		}
	}
	refused("a dataset that is none", func() bool { return new(tsdb.Store).Ensure(context.Background(), aroundDataset{}) == nil })
	if reached > 0 {
		os.Exit(1)
	}
}

// coreNames are methods of cores.
var coreNames = []string{"Internals", "Shape", "Begin", "Scope", "Tap", "Unlimited", "Aggregation", "Join", "ReadOptions", "Path", "At", "Watch"}

// isCore reports whether a type is a core.
func isCore(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Core")
	return ok && f.Anonymous && strings.HasSuffix(f.Type.PkgPath(), "/internal/gate")
}

// methods looks for the methods of cores among those of a public value.
func methods(v reflect.Value) {
	for _, name := range coreNames {
		if m := v.MethodByName(name); m.IsValid() && m.CanInterface() {
			report("method "+name, v.Type())
		}
	}
}

// fields takes the unexported fields of a value, and copies of them.
func fields(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if v.Type().Field(i).IsExported() {
			continue
		}
		name := fmt.Sprintf("field %s of %s", v.Type().Field(i).Name, v.Type())
		refused(name, func() bool { f.Interface(); return true })
		refused("copy of "+name, func() bool { reflect.New(f.Type()).Elem().Set(f); return true })
		for m := range f.NumMethod() {
			refused(fmt.Sprintf("method %d of %s", m, name), func() bool { f.Method(m).Call(nil); return true })
		}
		empty := reflect.New(f.Type()) // of a type without a name
		if strings.HasSuffix(f.Type().PkgPath(), "/internal/gate") && (empty.NumMethod() > 0 || empty.Elem().NumMethod() > 0) {
			report("methods of an empty "+name, f.Type())
		}
	}
}

// walk collects all types that reflection gets from one, also from unexported fields and from unexported methods of
// interfaces.
func walk(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan, reflect.Map:
		walk(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			walk(t.Field(i).Type, seen)
		}
	case reflect.Func:
		for i := range t.NumIn() {
			walk(t.In(i), seen)
		}
		for i := range t.NumOut() {
			walk(t.Out(i), seen)
		}
	}
	if t.Kind() == reflect.Map {
		walk(t.Key(), seen)
	}
	for i := range t.NumMethod() {
		walk(t.Method(i).Type, seen)
	}
}

// forge makes a core, and tries to give it a value or to have it accept one.
func forge(t reflect.Type, value any) {
	if !isCore(t) {
		if m, ok := t.MethodByName("Of"); ok && m.Type.NumOut() == 1 && m.Type.Out(0) == t {
			report("a method that makes a core of any value", t)
		}
		return
	}
	core := reflect.New(t).Elem()
	inner := core.FieldByName("Core")
	for i := range inner.NumField() {
		refused("setting a field of "+t.String(), func() bool { inner.Field(i).Set(reflect.ValueOf(value)); return true })
	}
	like := struct {
		Core struct{ value any }
	}{struct{ value any }{value}}
	refused("converting to "+t.String(), func() bool { return reflect.ValueOf(like).CanConvert(t) })
	for i := range core.NumMethod() {
		refused("calling "+t.Method(i).Name+" of an empty "+t.String(), func() bool {
			args := make([]reflect.Value, core.Method(i).Type().NumIn())
			for a := range args {
				if in := core.Method(i).Type().In(a); reflect.TypeOf(value).AssignableTo(in) {
					args[a] = reflect.ValueOf(value)
				} else {
					args[a] = reflect.Zero(in)
				}
			}
			out := core.Method(i).Call(args)
			last := out[len(out)-1]
			switch {
			case last.Type() == reflect.TypeFor[error]():
				return last.IsNil()
			case isCore(last.Type()):
				report(t.String()+"."+t.Method(i).Name, "makes a core of a value")
				return false
			}
			return !last.IsZero()
		})
	}
}
