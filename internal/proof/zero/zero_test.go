// Package zero holds tests that call everything public with nothing: methods of zero values and nil pointers, functions with
// zero arguments, and live stores with nil contexts. None may panic.
package zero

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

const module = "github.com/tidemark-go/tidemark"

// exported returns the exported types and functions of all public packages, as "tsdb.Store", by parsing their source.
func exported(t *testing.T) (types, funcs []string) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "internal" || rel == "examples" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel)) + "."
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					funcs = append(funcs, pkg+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if ok && s.Name.IsExported() && !s.Assign.IsValid() {
						if _, isInterface := s.Type.(*ast.InterfaceType); !isInterface {
							types = append(types, pkg+s.Name.Name)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(types) < 100 || len(funcs) < 100 {
		t.Fatalf("found %d types and %d functions in %s", len(types), len(funcs), root)
	}
	return types, funcs
}

// short returns a name without the module's path and type arguments.
func short(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return strings.TrimPrefix(name, module+"/")
}

func typeName(t reflect.Type) string { return short(t.PkgPath() + "." + t.Name()) }

func funcName(f any) string {
	return short(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
}

// same fails the test where the list of what is called is not all that there is.
func same(t *testing.T, what string, listed, exist []string) {
	t.Helper()
	for _, name := range exist {
		if !slices.Contains(listed, name) {
			t.Errorf("%s %s is exported and not in the list of this test", what, name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(exist, name) {
			t.Errorf("%s %s is in the list of this test and not exported", what, name)
		}
	}
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// arguments returns zero arguments for a function, with ctx for contexts where it is not nil. Of what is variadic there is one.
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

// call calls a function with zero arguments, without and with a context, and uses what it returns.
func call(t *testing.T, name string, f reflect.Value) {
	t.Helper()
	callWith(t, name, f, nil)
	callWith(t, name, f, t.Context())
}

// callWith fails the test where the call panics, or does not end.
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
			t.Errorf("%s panics with a context %v: %v", name, ctx != nil, r)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not end", name)
	}
}

// use does with a result what a caller would: it reads an error, takes the first pairs of a sequence and calls a function.
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

// TestZeroValues: no method of an exported type panics on its zero value or, where it has a pointer for a receiver, on nil. Left out are
// nil errors, which are none, and nil connections of tests, which end the test as a panic does.
func TestZeroValues(t *testing.T) {
	var listed []string
	for _, of := range types {
		listed = append(listed, typeName(of))
		methods(t, reflect.New(of), nil)
		methods(t, reflect.Zero(reflect.PointerTo(of)), func(name string) bool {
			_, ofValue := of.MethodByName(name)
			return ofValue || // Go itself panics
				reflect.PointerTo(of).Implements(errorType) || strings.HasSuffix(of.PkgPath(), "/tsdbtest")
		})
	}
	exist, _ := exported(t)
	same(t, "type", listed, exist)
}

// TestZeroArguments: no exported function panics on zero arguments, but those that say so.
func TestZeroArguments(t *testing.T) {
	_, exist := exported(t)
	dir := t.TempDir()
	t.Chdir(dir)
	var listed []string
	for _, f := range funcs {
		listed = append(listed, funcName(f))
		if !strings.Contains(funcName(f), ".Must") {
			call(t, funcName(f), reflect.ValueOf(f))
		}
	}
	same(t, "function", append(listed, testHelpers...), exist)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("calls without arguments have left %v, %v", left, err)
	}
}

// namesContext reports whether an error says that a context was nil.
func namesContext(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ctx is nil") && !errors.Is(err, context.DeadlineExceeded)
}
