// Package zero tests that no exported call panics on zero values: methods of zero values and nil pointers, functions
// with zero arguments, and live stores with nil contexts.
package zero

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// arguments returns zero arguments for a function. For contexts it returns ctx if that is not nil. Variadic parameters
// get one argument.
func arguments(f reflect.Type, ctx context.Context) []reflect.Value {
	var in []reflect.Value
	for i := range f.NumIn() {
		of := f.In(i)
		if f.IsVariadic() && i == f.NumIn()-1 {
			of = of.Elem()
		}
		v := reflect.Zero(of)
		if of == contextType && ctx != nil {
			v = reflect.ValueOf(ctx)
		}
		in = append(in, v)
	}
	return in
}

// call calls a function with zero arguments, first without and then with a context, and uses the results.
func call(t *testing.T, name string, f reflect.Value) {
	t.Helper()
	callWith(t, name, f, nil)
	callWith(t, name, f, t.Context())
}

// callWith fails the test if the call panics or does not return.
func callWith(t *testing.T, name string, f reflect.Value, ctx context.Context) {
	t.Helper()
	done := make(chan any, 1)
	go func() {
		defer func() {
			r := recover()
			if r != nil {
				r = fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
			done <- r
		}()
		for _, v := range f.Call(arguments(f.Type(), ctx)) {
			use(v)
		}
	}()
	select {
	case r := <-done:
		if r != nil {
			t.Errorf("%s (with a context: %v) panics: %v", name, ctx != nil, r)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not return", name)
	}
}

// use uses a result as a caller would: it reads an error, takes the first pairs of a sequence, and calls a function.
func use(v reflect.Value) {
	n := 0
	switch {
	case v.Type() == errorType && !v.IsNil():
		_ = v.Interface().(error).Error()
	case v.Kind() != reflect.Func || v.IsNil():
	case v.Type().CanSeq2():
		for _, err := range v.Seq2() {
			use(err)
			if n++; n == 3 {
				break
			}
		}
	case v.Type().CanSeq():
		for range v.Seq() {
			if n++; n == 3 {
				break
			}
		}
	default:
		for _, r := range v.Call(arguments(v.Type(), nil)) {
			use(r)
		}
	}
}

// methods calls each method of a value.
func methods(t *testing.T, v reflect.Value, skip func(method string) bool) {
	t.Helper()
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if skip == nil || !skip(name) {
			call(t, v.Type().String()+"."+name, v.Method(i))
		}
	}
}

// TestZeroValues checks that no method of an exported type panics on its zero value or, if it has a pointer receiver,
// on nil. It skips nil errors, which are not errors, and nil connections of tests, which end the test as a panic does.
func TestZeroValues(t *testing.T) {
	for _, of := range calls.Types {
		methods(t, reflect.New(of), nil)
		methods(t, reflect.Zero(reflect.PointerTo(of)), func(name string) bool {
			_, ofValue := of.MethodByName(name)
			return ofValue || // Go itself panics
				reflect.PointerTo(of).Implements(errorType) || strings.HasSuffix(of.PkgPath(), "/tsdbtest")
		})
	}
}

// TestZeroArguments checks that no exported function panics on zero arguments, except functions whose documentation
// says that they do.
func TestZeroArguments(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	functions := calls.Functions
	for _, c := range calls.List {
		if !c.IsMethod() {
			functions = append(functions, c.Func)
		}
	}
	for _, f := range functions {
		if name := calls.Name(f); !strings.Contains(name, ".Must") {
			call(t, name, reflect.ValueOf(f))
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("calls without arguments left files behind: %v, %v", left, err)
	}
}

// namesContext reports whether an error says that a context was nil.
func namesContext(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ctx is nil") && !errors.Is(err, context.DeadlineExceeded)
}
