package calls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEveryCallIsListed: whatever is exported is in the lists of this package, once. The tests that hold for the whole API miss
// what is not.
func TestEveryCallIsListed(t *testing.T) {
	var types, functions, calls []string
	for _, typ := range Types {
		name, _, _ := strings.Cut(typ.Name(), "[")
		types = append(types, strings.TrimPrefix(typ.PkgPath(), module)+"."+name)
	}
	for _, f := range slices.Concat(Functions, TestHelpers) {
		functions = append(functions, Path(f))
	}
	for _, c := range List {
		calls = append(calls, Path(c.Func))
	}
	exist := exported(t)
	compare(t, "type", "Types", types, exist.types)
	compare(t, "function", "Functions", functions, exist.functions)
	compare(t, "call", "List", calls, exist.calls)
}

// TestReasons: a call that makes no request is not observed, and each operation is that of a call.
func TestReasons(t *testing.T) {
	for _, c := range List {
		if c.Free != "" && c.Operation != "" {
			t.Errorf("%s makes no request, for it %s, and is observed as %s", c.Name(), c.Free, c.Operation)
		}
	}
}

func compare(t *testing.T, what, list string, listed, exist []string) {
	t.Helper()
	for _, name := range exist {
		switch n := len(slices.DeleteFunc(slices.Clone(listed), func(l string) bool { return l != name })); {
		case n == 0:
			t.Errorf("the %s %s is exported, and the tests of the whole API miss it: add it to calls.%s", what, name, list)
		case n > 1:
			t.Errorf("the %s %s is in calls.%s %d times", what, name, list, n)
		}
	}
	for _, name := range listed {
		if !slices.Contains(exist, name) {
			t.Errorf("the %s %s is in calls.%s, where it does not belong", what, name, list)
		}
	}
}

// api is what is exported, by name with the package's path below the module.
type api struct{ types, functions, calls []string }

// handles are the types all of whose methods are calls.
var handles = []string{"tsdb.Repository", "tsdb.Sink", "tsdb.Store", "tsdb.Writer"}

// exported parses all public packages.
func exported(t *testing.T) (all api) {
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
		pkg := filepath.ToSlash(filepath.Dir(rel))
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				all.add(pkg, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if ok && s.Name.IsExported() && !s.Assign.IsValid() {
						if _, isInterface := s.Type.(*ast.InterfaceType); !isInterface {
							all.types = append(all.types, pkg+"."+s.Name.Name)
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
	if len(all.types) < 100 || len(all.functions) < 80 || len(all.calls) < 80 {
		t.Fatalf("found %d types, %d functions and %d calls in %s", len(all.types), len(all.functions), len(all.calls), root)
	}
	return all
}

func (a *api) add(pkg string, f *ast.FuncDecl) {
	if !f.Name.IsExported() {
		return
	}
	of := pkg
	if f.Recv != nil {
		name := receiver(f)
		if !ast.IsExported(name) {
			return
		}
		of += "." + name
	}
	// Other packages know no store.
	isCall := (pkg == "tsdb" || strings.HasPrefix(pkg, "tsdb/")) && pkg != "tsdb/tsdbtest" &&
		(f.Recv != nil && slices.Contains(handles, of) || takes(f, "Context") || takes(f, "Store"))
	switch name := of + "." + f.Name.Name; {
	case isCall:
		a.calls = append(a.calls, name)
	case f.Recv == nil:
		a.functions = append(a.functions, name)
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	for {
		switch of := typ.(type) {
		case *ast.StarExpr:
			typ = of.X
		case *ast.IndexExpr:
			typ = of.X
		case *ast.IndexListExpr:
			typ = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

// takes reports whether a function takes a type of another package by that name, or a pointer to it.
func takes(f *ast.FuncDecl, name string) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		typ := p.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, ok := typ.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == name
	})
}

// TestNames: methods of types with and without parameters, and functions, are named alike.
func TestNames(t *testing.T) {
	var got []string
	for _, c := range Of("Repository.PutMany", "Store.Ping", "tenants.List", "rollup.Reader.Many", "embedded.Server") {
		got = append(got, c.Name())
	}
	if want := []string{"Repository.PutMany", "Store.Ping", "embedded.Server.Serve", "rollup.Reader.Many", "tenants.List"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
}
