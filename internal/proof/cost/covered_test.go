package cost

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
)

// free are the public calls that make no request, and why. A call belongs here or among those that are counted.
var free = map[string]string{
	"Repository.Schema":  "returns what is known",
	"Repository.Store":   "returns what is known",
	"Repository.Tenant":  "returns what is known",
	"Repository.WithID":  "binds an ID; no request is made",
	"Repository.Via":     "binds a writer; what is put into it is counted",
	"Schema.FromContext": "binds a schema to a store and the context's tenant",

	"Store.CacheStats": "reads counters in memory",
	"Store.Close":      "closes connections",
	"Store.NewWriter":  "begins with an empty buffer, or reads a journal on disk; what it finds there costs what putting it costs",
	"Store.Table":      "returns what is known",
	"tsdb.Open":        "dials: the official client warms its connections, and reads no row",

	"Writer.DeadLetters":      "reads the journal on disk",
	"Writer.ScrubJournal":     "changes the journal on disk",
	"Writer.DropDeadLetters":  "changes the journal on disk",
	"Writer.RetryDeadLetters": "changes the journal on disk; what is delivered then costs what putting it costs",
	"Writer.Stats":            "reads counters in memory",

	"transfer.Check":        "reads a file",
	"transfer.Recover":      "reads a file",
	"embedded.New":          "opens a folder or memory: no service is asked",
	"embedded.Open":         "opens a folder or memory: no service is asked",
	"embedded.OpenMemory":   "opens a folder or memory: no service is asked",
	"embedded.Server.Serve": "answers other processes",
}

// TestEveryCallIsCounted fails for a call that has neither a figure nor a reason to have none: nobody could tell what it costs.
func TestEveryCallIsCounted(t *testing.T) {
	public := map[string]bool{}
	for name, typ := range map[string]reflect.Type{
		"Repository": reflect.TypeFor[*tsdb.Repository[reading]](),
		"Sink":       reflect.TypeFor[*tsdb.Sink[reading]](),
		"Store":      reflect.TypeFor[*tsdb.Store](),
		"Writer":     reflect.TypeFor[*tsdb.Writer](),
	} {
		for m := range typ.Methods() {
			public[name+"."+m.Name] = true
		}
	}
	for _, dir := range []string{"tsdb", "tsdb/embedded", "tsdb/inspect", "tsdb/retention", "tsdb/rollup", "tsdb/tenants", "tsdb/transfer", "tsdb/window"} {
		for _, name := range withContext(t, dir) {
			public[name] = true
		}
	}
	covered := map[string]bool{}
	for _, g := range groupsOfCalls {
		for _, c := range g.calls {
			for _, name := range c.covers {
				covered[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(public)) {
		switch _, isFree := free[name]; {
		case !covered[name] && !isFree:
			t.Errorf("%s is public, and neither counted nor among those that cost nothing", name)
		case covered[name] && isFree:
			t.Errorf("%s is counted, and said to cost nothing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		if !public[name] {
			t.Errorf("%s is counted, and there is no such call", name)
		}
	}
	for name := range free {
		if !public[name] {
			t.Errorf("%s is said to cost nothing, and there is no such call", name)
		}
	}
}

// withContext returns the exported functions and methods of a package whose first argument is a context.
func withContext(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(dir), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, files, err)
	}
	pkg := path.Base(dir)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(&fs.PathError{Op: "parse", Path: file, Err: err})
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && takesContext(f) {
				if name := called(pkg, f); name != "" {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func takesContext(f *ast.FuncDecl) bool {
	if len(f.Type.Params.List) == 0 {
		return false
	}
	sel, ok := f.Type.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Context"
}

// called is the name of a call in the document; empty for a method of a type that is not exported.
func called(pkg string, f *ast.FuncDecl) string {
	name := f.Name.Name
	if f.Recv != nil {
		typ := f.Recv.List[0].Type
		for {
			switch of := typ.(type) {
			case *ast.StarExpr:
				typ = of.X
				continue
			case *ast.IndexExpr:
				typ = of.X
				continue
			}
			break
		}
		id, ok := typ.(*ast.Ident)
		if !ok || !id.IsExported() {
			return ""
		}
		name = id.Name + "." + name
		if pkg == "tsdb" {
			return name
		}
	}
	return pkg + "." + name
}
