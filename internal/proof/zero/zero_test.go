// Package zero tests that no exported call panics on zero values: methods of zero values and nil pointers, functions
// with zero arguments, and live stores with nil contexts.
package zero

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// arguments returns an argument for each parameter of a function. A variadic parameter gets one.
func arguments(f reflect.Type, argument func(reflect.Type) reflect.Value) []reflect.Value {
	var in []reflect.Value
	for i := range f.NumIn() {
		of := f.In(i)
		if f.IsVariadic() && i == f.NumIn()-1 {
			of = of.Elem()
		}
		in = append(in, argument(of))
	}
	return in
}

// call calls a function with zero arguments, first without and then with a context, and uses the results.
func call(t *testing.T, name string, f reflect.Value) {
	t.Helper()
	callWith(t, name, f, reflect.Zero)
	callWith(t, name+" with a context", f, func(of reflect.Type) reflect.Value {
		if of == contextType {
			return reflect.ValueOf(t.Context())
		}
		return reflect.Zero(of)
	})
}

// callWith fails the test if the call panics or does not return.
func callWith(t *testing.T, name string, f reflect.Value, argument func(reflect.Type) reflect.Value) {
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
		for _, v := range f.Call(arguments(f.Type(), argument)) {
			use(v)
		}
	}()
	select {
	case r := <-done:
		if r != nil {
			t.Errorf("%s panics: %v", name, r)
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
		for _, r := range v.Call(arguments(v.Type(), reflect.Zero)) {
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
// on nil. It skips nil connections of tests, which end the test as a panic does.
func TestZeroValues(t *testing.T) {
	for _, of := range append(slices.Clone(calls.Types), reflect.TypeFor[tsdb.InvalidError]()) {
		methods(t, reflect.New(of), nil)
		methods(t, reflect.Zero(reflect.PointerTo(of)), func(name string) bool {
			_, ofValue := of.MethodByName(name)
			return ofValue || strings.HasSuffix(of.PkgPath(), "/tsdbtest") // of a method of values, Go itself panics
		})
	}
}

// TestOddValues checks that no method of an exported type, and no function that computes, panics on values that only a
// broken program or file makes.
func TestOddValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		for _, of := range calls.Types {
			v := reflect.New(of)
			fill(v.Elem(), x, 4)
			methods(t, v, nil)
		}
		for _, c := range calls.Functions {
			name, f := calls.Name(c), reflect.ValueOf(c)
			if strings.Contains(name, ".Must") {
				continue
			}
			odd := func(of reflect.Type) reflect.Value {
				v := reflect.New(of).Elem()
				fill(v, x, 4)
				return v
			}
			callWith(t, name, f, odd)
		}
	}
}

// fill sets a value, the exported fields of a struct, and what they hold, down to a depth: floats to x, integers to the
// value of their type that is closest to x, texts to a letter or, for infinities, to no UTF-8. Slices have a zero
// element and a filled one.
func fill(v reflect.Value, x float64, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), x, depth)
		}
	case reflect.Float64:
		v.SetFloat(x)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		top := int64(1)<<(v.Type().Bits()-1) - 1
		switch {
		case x == -1:
			v.SetInt(-1)
		case x < 0:
			v.SetInt(-top - 1)
		default:
			v.SetInt(top)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(math.MaxUint64 >> (64 - v.Type().Bits()))
	case reflect.String:
		v.SetString("a")
		if math.IsInf(x, 0) {
			v.SetString("\x00\xff")
		}
	case reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		fill(key, x, depth-1)
		fill(element, x, depth-1)
		v.SetMapIndex(key, element)
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), 2, 2)
		fill(s.Index(1), x, depth-1)
		v.Set(s)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		fill(p.Elem(), x, depth-1)
		v.Set(p)
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
