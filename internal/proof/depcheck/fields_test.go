package depcheck

import (
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/typed"
)

// readers are the packages that read the fields of payloads. All other packages ask them.
var readers = []string{"codec", "tsdb/dynamic"}

// ownNumbers are files that turn something else than a payload's field into a number, a text or a bool, each with what
// that is.
var ownNumbers = map[string]string{
	"internal/rollupadd/shape.go":                "the greatest magnitude of a measure, as the catalogue writes it",
	"tsdb/rollup/catalog.go":                     "the same",
	"tsdb/embedded/names.go":                     "the names of tables in requests",
	"tenant/limit/parse.go":                      "limits in a file of settings",
	"examples/internal/adopt/value.go":           "the cells of a table with another layout, as its description says",
	"examples/internal/lab/parse.go":             "a description of a workload",
	"examples/internal/lab/units.go":             "a description of a workload",
	"examples/internal/display/value.go":         "Go values of typed points, for JSON",
	"tsdb/window/summary.go":                     "results without rounding",
	"examples/internal/aggregate/aggregate.go":   "the same",
	"examples/internal/aggregate/tables.go":      "results of package window, as text",
	"examples/internal/fieldtable/same.go":       "what programs print, in a test",
	"examples/internal/inbound/payload.go":       "JSON from devices, before it is a record",
	"examples/internal/inbound/object.go":        "JSON from devices, before it is a record; its numbers go through codec.ParseNumber",
	"examples/internal/inbound/times.go":         "times in such JSON",
	"examples/internal/infile/csv.go":            "a cell of a file, as a number of such JSON",
	"examples/internal/infile/parquet_values.go": "a decimal of a file, as a number of such JSON, and the digits of a float32",
	"examples/apps/console/web/api.go":           "a quality of Accept-Encoding",
	"examples/apps/console/web/csv.go":           "whether a spreadsheet would take a text for a formula",
	"examples/apps/latestapi/server.go":          "a quality of Accept",
	"examples/apps/promapi/params.go":            "parameters of a query",
	"examples/apps/tidectl/output.go":            "numbers of tables, with fewer digits",
	"examples/apps/tidectl/advise.go":            "a rate in a file of keys",
}

// TestOneReaderOfFields checks that no other package turns what a payload holds into a number, a text or a bool. It
// looks at types, so a helper of another package or an alias hides nothing: each way from JSON or protobuf to a Go
// value goes through one of these.
func TestOneReaderOfFields(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_FIELDS") == "" {
		t.Skip("it compiles the programs of all modules; .ci/check fields runs it")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for file := range ownNumbers {
		unused[file] = true
	}
	for _, dir := range []string{".", "examples", "examples/apps/promapi"} {
		var env []string
		if dir == "examples/apps/promapi" {
			env = []string{"GOWORK=off"} // it is not in the workspace
		}
		for _, p := range typed.Load(t, filepath.Join(root, dir), "./...", env...) {
			path := strings.TrimPrefix(p.Path, module+"/")
			if slices.Contains(readers, path) {
				continue
			}
			for _, use := range (&reading{p}).reads() {
				file, err := filepath.Rel(root, use.file)
				if err != nil {
					t.Fatal(err)
				}
				delete(unused, file)
				if ownNumbers[file] == "" {
					t.Errorf("%s:%d uses %s: read fields with codec.Lookup or package dynamic", file, use.line, use.what)
				}
			}
		}
	}
	for file := range unused {
		t.Errorf("%s is listed in ownNumbers and converts nothing", file)
	}
}

// reading finds what reads fields in a package.
type reading struct{ typed.Package }

// conversion is a place where code turns a value of unknown type, or text, into a Go value.
type conversion struct {
	file, what string
	line       int
}

// reads returns where a package converts values as a reader of fields does.
func (p *reading) reads() (found []conversion) {
	add := func(n ast.Node, what string) {
		at := p.Set.Position(n.Pos())
		found = append(found, conversion{at.Filename, what, at.Line})
	}
	for _, file := range p.Files {
		if strings.HasSuffix(p.Set.Position(file.Pos()).Filename, ".pb.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if what := converter(p.Info.Uses[n]); what != "" {
					add(n, what)
				}
			case *ast.TypeAssertExpr:
				if n.Type != nil && p.untyped(n.X) && number(p.Info.TypeOf(n.Type)) {
					add(n, "an assertion of any to a number")
				}
			case *ast.TypeSwitchStmt:
				p.cases(n, add)
			}
			return true
		})
	}
	return found
}

// cases reports the cases of a type switch on an any that are numbers.
func (p *reading) cases(s *ast.TypeSwitchStmt, add func(ast.Node, string)) {
	var asserted ast.Expr
	ast.Inspect(s.Assign, func(n ast.Node) bool {
		if a, ok := n.(*ast.TypeAssertExpr); ok {
			asserted = a.X
		}
		return true
	})
	if !p.untyped(asserted) {
		return
	}
	for _, clause := range s.Body.List {
		for _, c := range clause.(*ast.CaseClause).List {
			if number(p.Info.TypeOf(c)) {
				add(c, "a case of any that is a number")
			}
		}
	}
}

func (p *reading) untyped(e ast.Expr) bool {
	i, ok := p.Info.TypeOf(e).Underlying().(*types.Interface)
	return ok && i.Empty() && !isParam(p.Info.TypeOf(e))
}

func isParam(t types.Type) bool { _, ok := t.(*types.TypeParam); return ok }

// number reports whether a type is a number with a width that payloads have.
func number(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && slices.Contains([]types.BasicKind{types.Float64, types.Float32, types.Int64, types.Uint64}, b.Kind()) && types.Unalias(t) == types.Type(types.Typ[b.Kind()])
}

// converter names an object that turns JSON, protobuf or text into a number, a text or a bool.
func converter(o types.Object) string {
	if o == nil || o.Pkg() == nil {
		return ""
	}
	name, pkg := o.Name(), o.Pkg().Path()
	switch {
	case pkg == "encoding/json" && (name == "Number" || name == "UseNumber"), pkg == "strconv" && name == "ParseFloat":
		return pkg + "." + name
	case pkg == "google.golang.org/protobuf/reflect/protoreflect" && slices.Contains([]string{"Bool", "Int", "Uint", "Float", "Enum", "String"}, name):
		f, ok := o.(*types.Func)
		if ok && strings.HasSuffix(types.TypeString(f.Signature().Recv().Type(), nil), "protoreflect.Value") {
			return pkg + ".Value." + name
		}
	}
	return ""
}
