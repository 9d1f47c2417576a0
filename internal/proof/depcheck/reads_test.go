package depcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownRows read tables that they have made for a moment: to measure row keys that are not a store's, and to check what
// the service answers.
var ownRows = []string{"examples/internal/lab/driver_raw.go", "examples/internal/conform/"}

// TestOneRangeRead checks that only one function of internal/bt calls the client's ReadRows, and that only internal/bt
// calls its other methods that read data. So every range read is bounded in time, reported, and checked for foreign
// rows in one place.
func TestOneRangeRead(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var ranges []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if slices.ContainsFunc(ownRows, func(own string) bool { return strings.HasPrefix(filepath.ToSlash(rel), own) }) {
			return nil
		}
		for _, read := range readsIn(file) {
			where := filepath.ToSlash(rel) + ": " + read.in
			if read.method == "ReadRows" {
				ranges = append(ranges, where)
			}
			if !strings.HasPrefix(where, "internal/bt/") {
				t.Errorf("%s calls the client's %s, want calls in internal/bt only", where, read.method)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(ranges) != 1 {
		t.Errorf("the client's ReadRows is called in %q, want one place", ranges)
	}
}

// read is a use of one of the client's methods, with the function around it.
type read struct{ in, method string }

// readsIn returns the uses of the client's reading methods in a file that imports the client.
func readsIn(file *ast.File) (reads []read) {
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"cloud.google.com/go/bigtable"` }) {
		return nil
	}
	for _, decl := range file.Decls {
		in := "a declaration"
		if f, ok := decl.(*ast.FuncDecl); ok {
			in = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"ReadRows", "ReadRow", "SampleRowKeys", "PrepareStatement"}, sel.Sel.Name) {
				reads = append(reads, read{in, sel.Sel.Name})
			}
			return true
		})
	}
	return reads
}
