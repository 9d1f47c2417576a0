package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// A fence is one block of Go code on a page.
type fence struct {
	line    int // the number of its first line of code, from 1
	code    string
	output  string // the text fence directly after it: the expected output
	skipped string // why it is only compiled; empty if it is run
}

// fenced matches a fence of Go code, with the comment before it and the output after it.
var fenced = regexp.MustCompile("(?m)^(?:<!-- not run: (.+) -->\n)?```go\n((?:.*\n)*?)```\n(?:\n```text\n((?:.*\n)*?)```\n)?")

// fences returns the Go fences of a page.
func fences(page string) []fence {
	var out []fence
	for _, m := range fenced.FindAllStringSubmatchIndex(page, -1) {
		at := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return page[m[2*i]:m[2*i+1]]
		}
		out = append(out, fence{line: 1 + strings.Count(page[:m[4]], "\n"), skipped: at(1), code: at(2), output: at(3)})
	}
	return out
}

// program reports whether the fence is a whole program.
func (f fence) program() bool { return strings.HasPrefix(f.code, "package main\n") }

// declares reports whether the fence holds package-level declarations rather than statements.
func (f fence) declares() bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+f.code, 0)
	return err == nil
}

// asPackage returns a whole program as a package whose function Run is the program's main.
func (f fence) asPackage(name, file string) string {
	const start = "\nfunc main() {\n"
	head, rest, _ := strings.Cut(strings.TrimPrefix(f.code, "package main\n"), start)
	at := f.line + 2 + strings.Count(head, "\n")
	return fmt.Sprintf("package %s\n//line %s:%d\n%s\nfunc Run(context.Context) error { main(); return nil }\n//line %s:%d%s%s", name, file, f.line+1, head, file, at, start, rest)
}

// source writes the fragments of a page as one Go file with the function Run:
//
//   - declarations are of package level;
//   - all other code is the body of Run, in the order of the page. Its context is ctx;
//   - after a statement of Run that sets err, Run returns err unless the next statement of the fence uses it;
//   - a variable may be declared and not used;
//   - code after <!-- not run: reason --> is compiled and not run, and its variables end with it;
//   - packages are imported as needed (see imports).
//
// Before each fence Run prints a line with a zero byte, so that the output can be cut into that of each fence.
func source(name, file string, all []fence) (string, error) {
	var decls, body strings.Builder
	for _, f := range all {
		position := fmt.Sprintf("//line %s:%d\n", file, f.line)
		switch {
		case f.program():
		case f.declares():
			decls.WriteString(position + f.code)
		default:
			code, err := statements(f.code, position)
			if err != nil {
				return "", fmt.Errorf("%s:%d: %w", file, f.line, err)
			}
			if f.skipped != "" {
				code = "if false {\n" + code + "}\n"
			}
			body.WriteString("fmt.Print(\"\\x00\\n\")\n" + code)
		}
	}
	text := decls.String() + "\n//line generated.go:1\nfunc Run(ctx context.Context) error {\n" + body.String() + "\n//line generated.go:1\nreturn nil\n}\n"
	return withImports(name, text), nil
}

// withImports returns code as a package that imports what it uses.
func withImports(name, text string) string {
	head := "package " + name + "\n\nimport (\n"
	for _, path := range imports {
		if regexp.MustCompile(`\b` + path[strings.LastIndexByte(path, '/')+1:] + `\.[A-Z]`).MatchString(text) {
			head += "\t\"" + path + "\"\n"
		}
	}
	return head + ")\n" + text
}

// statements returns the code of a fence with its variables used and its errors returned.
func statements(code, position string) (string, error) {
	const before = "package p; func _() {\n"
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", before+code+"}", 0)
	if err != nil {
		return "", err
	}
	list := parsed.Decls[0].(*ast.FuncDecl).Body.List
	text := func(s ast.Stmt) string {
		return code[files.Position(s.Pos()).Offset-len(before) : files.Position(s.End()).Offset-len(before)]
	}
	var out bytes.Buffer
	line := regexp.MustCompile(`:(\d+)\n$`)
	first := 0
	fmt.Sscan(line.FindStringSubmatch(position)[1], &first)
	for i, s := range list {
		fmt.Fprintf(&out, "%s%s\n", line.ReplaceAllString(position, fmt.Sprintf(":%d\n", first+files.Position(s.Pos()).Line-2)), text(s))
		assign, ok := s.(*ast.AssignStmt)
		if !ok {
			continue
		}
		for _, e := range assign.Lhs {
			v, ok := e.(*ast.Ident)
			switch {
			case !ok || v.Name == "_":
			case v.Name != "err":
				if assign.Tok == token.DEFINE {
					fmt.Fprintf(&out, "_ = %s\n", v.Name)
				}
			case i+1 == len(list) || !reads(list[i+1], "err"):
				out.WriteString("if err != nil {\nreturn err\n}\n")
			}
		}
	}
	return out.String(), nil
}

// reads reports whether the statement uses the value of a variable. An assignment to it, or a declaration of another
// variable with its name, is not a use.
func reads(s ast.Stmt, name string) bool {
	targets := map[ast.Expr]bool{}
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				targets[e] = true
			}
		case *ast.RangeStmt:
			if isVariable(n.Key, name) || isVariable(n.Value, name) {
				found = found || reads(&ast.ExprStmt{X: n.X}, name)
				return false
			}
		case *ast.Ident:
			found = found || n.Name == name && !targets[n]
		}
		return true
	})
	return found
}

// is reports whether the expression is the variable with that name.
func isVariable(e ast.Expr, name string) bool {
	v, ok := e.(*ast.Ident)
	return ok && v.Name == name
}
