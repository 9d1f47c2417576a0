// Package typed reads the packages of a module with the types of their code, for tests that check or change code.
package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Package is a package without its tests.
type Package struct {
	Path, Dir string
	Set       *token.FileSet
	Files     []*ast.File
	Types     *types.Package
	Info      types.Info
}

// Load type-checks the packages that a pattern names in the folder of a module. Imports come from what the go command
// has compiled. env is added to the environment.
func Load(t *testing.T, dir, pattern string, env ...string) (out []Package) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,DepOnly", pattern)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -export %s in %s: %v\n%s", pattern, dir, err, stderr.String())
	}
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
		DepOnly                 bool
	}
	var packages []listed
	exports := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			packages = append(packages, l)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, l := range packages {
		p := Package{Path: l.ImportPath, Dir: l.Dir, Set: set, Info: types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.Files = append(p.Files, f)
		}
		if p.Types, err = (&types.Config{Importer: imports}).Check(l.ImportPath, set, p.Files, &p.Info); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", l.ImportPath, err))
		}
		out = append(out, p)
	}
	return out
}
