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

// TestEveryCallIsListed checks that the lists of this package hold everything that is exported, once. Tests of the
// whole API do not cover what is missing.
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

// TestReasons checks that no call both makes no request and has an operation in telemetry.
func TestReasons(t *testing.T) {
	for _, c := range List {
		if c.Free != "" && c.Operation != "" {
			t.Errorf("%s has a reason to make no request (%s) and the operation %s, want only one of them", c.Name(), c.Free, c.Operation)
		}
	}
}

func compare(t *testing.T, what, list string, listed, exist []string) {
	t.Helper()
	for _, name := range exist {
		switch n := len(slices.DeleteFunc(slices.Clone(listed), func(l string) bool { return l != name })); {
		case n == 0:
			t.Errorf("the exported %s %s is in no list, so tests of the whole API do not cover it: add it to calls.%s", what, name, list)
		case n > 1:
			t.Errorf("the %s %s is in calls.%s %d times, want once", what, name, list, n)
		}
	}
	for _, name := range listed {
		if !slices.Contains(exist, name) {
			t.Errorf("the %s %s in calls.%s is not exported, or belongs in another list", what, name, list)
		}
	}
}

// api is the exported API: names with the package's path in the module.
type api struct{ types, functions, calls []string }

// handles are the types whose methods are all calls.
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
		t.Fatalf("found only %d types, %d functions and %d calls in %s", len(all.types), len(all.functions), len(all.calls), root)
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
	// Other packages have no calls on a store.
	isCall := (pkg == "tsdb" || strings.HasPrefix(pkg, "tsdb/")) && pkg != "tsdb/tsdbtest" &&
		(f.Recv != nil && slices.Contains(handles, of) || takes(f, "Context") || takes(f, "Store"))
	switch name := of + "." + f.Name.Name; {
	case isCall:
		a.calls = append(a.calls, name)
	case f.Recv == nil:
		a.functions = append(a.functions, name)
	}
}

// receiver returns the name of a method's type.
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

// takes reports whether a function has a parameter of another package's type with that name, or a pointer to it.
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

// TestNames checks the names of functions, and of methods of generic and other types.
func TestNames(t *testing.T) {
	var got []string
	for _, c := range Of("Repository.PutMany", "Store.Ping", "tenants.List", "rollup.Reader.Many", "embedded.Server") {
		got = append(got, c.Name())
	}
	if want := []string{"Repository.PutMany", "Store.Ping", "embedded.Server.Serve", "rollup.Reader.Many", "tenants.List"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got names %q, want %q", got, want)
	}
}
