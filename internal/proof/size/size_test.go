// Package size compares how large the project is with committed figures, so that no change makes it larger unnoticed.
package size_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the figures to testdata/figures.txt")

// figures says how large the project is. Generated files, tests and test data do not count as code.
type figures struct {
	sdk, all       int // lines that hold more than a comment
	packages       int // that other modules can import
	names, fields  int // exported ones of these packages: types, functions, methods, constants and variables; fields of structs
	words          int // of documents and package comments
	publicPackages map[string]bool
}

// String prints lines of code and words up to the next hundred, so that small changes leave the figures as they are.
func (f *figures) String() string {
	hundreds := func(n int) int { return (n + 99) / 100 * 100 }
	return fmt.Sprintf("lines of code in the SDK, at most: %d\nlines of code, at most: %d\npublic packages: %d\nexported names: %d\n"+
		"exported fields: %d\nwords of documents, at most: %d\n",
		hundreds(f.sdk), hundreds(f.all), f.packages, f.names, f.fields, hundreds(f.words))
}

// TestSize compares the figures with testdata/figures.txt. A change that moves one states the new figure in the same
// commit.
func TestSize(t *testing.T) {
	const root = "../../.."
	f := figures{publicPackages: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(path)
			f.words += len(bytes.Fields(text))
			return err
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(rel, "/testdata/"):
			return f.addFile(path, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.packages = len(f.publicPackages)
	if *update {
		if err := os.WriteFile("testdata/figures.txt", []byte(f.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/figures.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.String(); got != string(want) {
		t.Errorf("the project's size is\n%stestdata/figures.txt says\n%sIf the change is meant, run the test with -update and commit the file.", got, want)
	}
}

// addFile adds a file of code. The path is relative to the project's root.
func (f *figures) addFile(file, path string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(syntax) {
		return err
	}
	if filepath.Base(path) == "doc.go" {
		f.words += len(strings.Fields(syntax.Doc.Text()))
	}
	lines := codeLines(src)
	f.all += lines
	if !inSDK(path) {
		return nil
	}
	f.sdk += lines
	if dir := filepath.ToSlash(filepath.Dir(path)); !strings.Contains("/"+dir+"/", "/internal/") {
		f.publicPackages[dir] = true
		f.addNames(syntax)
	}
	return nil
}

// inSDK reports whether a file belongs to what programs link, not to the examples, the proofs or the tools.
func inSDK(path string) bool {
	for _, dir := range []string{"examples/", "internal/proof/", "internal/bench/", "internal/browser/", "internal/tools/"} {
		if strings.HasPrefix(path, dir) {
			return false
		}
	}
	return strings.Contains(path, "/")
}

// codeLines returns how many lines hold more than a comment.
func codeLines(src []byte) int {
	file := token.NewFileSet().AddFile("", 1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	lines := map[int]bool{}
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		if tok == token.SEMICOLON && text == "\n" { // inserted by the scanner
			continue
		}
		for i := range strings.Count(text, "\n") + 1 {
			lines[file.Line(pos)+i] = true
		}
	}
	return len(lines)
}

// addNames counts the exported names of a file.
func (f *figures) addNames(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type))) {
				f.names++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				f.addSpec(spec)
			}
		}
	}
}

func (f *figures) addSpec(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		f.names += exported(s.Names)
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		f.names++
		if st, ok := s.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				f.fields += exported(field.Names)
			}
		}
	}
}

func exported(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// typeName returns the name of a receiver's type.
func typeName(t ast.Expr) string {
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
