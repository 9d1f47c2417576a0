// Package mutation measures what the tests of a package notice. It changes the package's code in hundreds of small
// ways, one at a time, and runs the package's own tests on each: a comparison is turned round or includes its bound,
// half of a condition is left out, an integer is one more, a statement is left out. A change that no test notices
// survives. All changes are compiled into one test binary, and switched on by an environment variable.
//
//	go test ./internal/proof/mutation -run TestSurvivors -timeout 5h -v -args -mutate
//
// testdata lists the known survivors of each package. A new one fails the test. The lists name them by function and
// text, so that code may move.
package mutation

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
)

// mutant is one change of the code.
type mutant struct {
	number         int
	file           string
	line           int
	function, what string
}

// String names a mutant without its line, which other changes move.
func (m mutant) String() string { return m.function + ": " + m.what }

// edit inserts text at an offset of a file.
type edit struct {
	at   int
	text string
}

// source is a file whose changes are being collected.
type source struct {
	set      *token.FileSet
	info     *types.Info
	name     string
	text     []byte
	function string
	edits    []edit
	first    int // the number of the first mutant
	mutants  []mutant
	refused  map[string]bool
}

// rewrite returns the text of a file with all changes behind switches. Mutants whose name is refused are left out.
func rewrite(set *token.FileSet, info *types.Info, file *ast.File, first int, refused map[string]bool) ([]byte, []mutant, error) {
	s := &source{set: set, info: info, name: set.Position(file.Pos()).Filename, first: first, refused: refused}
	var err error
	if s.text, err = os.ReadFile(s.name); err != nil {
		return nil, nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "init" {
			continue
		}
		s.function = f.Name.Name
		ast.Inspect(f.Body, s.visit)
	}
	if len(s.mutants) == 0 {
		return s.text, nil, nil
	}
	s.insert(s.set.Position(file.Name.End()).Offset, `; import _switches "github.com/tidemark-go/tidemark/internal/proof/mutation/switches"`)
	return s.apply(), s.mutants, nil
}

// apply returns the text with all edits. Of two at one place, the one that was added first stands outside of the other.
func (s *source) apply() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var out []byte
	at := 0
	for _, e := range s.edits {
		out = append(out, s.text[at:e.at]...)
		out = append(out, e.text...)
		at = e.at
	}
	return append(out, s.text[at:]...)
}

func (s *source) insert(at int, text string) { s.edits = append(s.edits, edit{at, text}) }

// wrap puts text before and after a node. Nodes are visited from the outside, so what closes an inner node comes first.
func (s *source) wrap(n ast.Node, before, after string) {
	from, to := s.offset(n.Pos()), s.offset(n.End())
	s.insert(from, before)
	s.edits = slices.Insert(s.edits, 0, edit{to, after})
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) source(n ast.Node) string {
	return strings.Join(strings.Fields(string(s.text[s.offset(n.Pos()):s.offset(n.End())])), " ")
}

// add returns the number of a new mutant, unless it is refused.
func (s *source) add(n ast.Node, what string) (int, bool) {
	if len(what) > 120 {
		what = what[:120]
	}
	m := mutant{s.first + len(s.mutants), s.name, s.set.Position(n.Pos()).Line, s.function, strings.ToValidUTF8(what, "")}
	if s.refused[fmt.Sprint(m.file, ":", m.line)] {
		return 0, false
	}
	s.mutants = append(s.mutants, m)
	return m.number, true
}

func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.IfStmt:
		return n.Else != nil || len(n.Body.List) != 1 || !counts(n.Body.List[0])
	}
	return true
}

// counts reports whether a statement only counts for the tests that have to reach a branch.
func counts(st ast.Stmt) bool {
	x, ok := st.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && of.Name == "reach"
}

var includes = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}

func (s *source) binary(n *ast.BinaryExpr) {
	tv := s.info.Types[n]
	if tv.Value != nil || tv.Type == nil {
		return // a constant
	}
	switch n.Op {
	case token.LAND, token.LOR:
		left, right := "true", s.source(n.Y)
		if n.Op == token.LOR {
			left = "false"
		}
		if !plainBool(s.info.TypeOf(n.Y)) {
			return
		}
		if i, ok := s.add(n.Y, fmt.Sprintf("without %q", n.Op.String()+" "+right)); ok {
			s.wrap(n.Y, fmt.Sprintf("_switches.Or(%d, bool(", i), "), "+left+")")
		}
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !plainBool(tv.Type) {
			return
		}
		if i, ok := s.add(n, fmt.Sprintf("not %q", s.source(n))); ok {
			s.wrap(n, fmt.Sprintf("_switches.Not(%d, ", i), ")")
		}
		if other, ok := includes[n.Op]; ok && pure(n) {
			if i, ok := s.add(n, fmt.Sprintf("%s instead of %q", other, s.source(n))); ok {
				s.wrap(n, fmt.Sprintf("_switches.Or(%d, ", i), fmt.Sprintf(", (%s) %s (%s))", s.source(n.X), other, s.source(n.Y)))
			}
		}
	case token.ADD, token.SUB:
		if b, ok := tv.Type.Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 && b.Info()&types.IsUntyped == 0 && b.Kind() != types.Uintptr {
			if i, ok := s.add(n, fmt.Sprintf("%q and 1", s.source(n))); ok {
				s.wrap(n, fmt.Sprintf("_switches.Plus(%d, ", i), ")")
			}
		}
	}
}

func plainBool(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// pure reports whether an expression can be evaluated twice.
func pure(e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, plain := n.Fun.(*ast.Ident)
			ok = ok && plain && slices.Contains([]string{"len", "cap", "int", "int64", "uint64"}, f.Name)
		case *ast.FuncLit:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}

// waits are calls without which a test hangs, or crashes: that is noticed, and takes long.
var waits = []string{"panic", "Lock", "Unlock", "RLock", "RUnlock", "Done", "Wait", "Add", "Signal", "Broadcast"}

// statements lets each statement of a list be left out that declares nothing and does not end the list.
func (s *source) statements(list []ast.Stmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.ExprStmt:
			call, ok := st.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if slices.Contains(waits, name) || strings.HasPrefix(s.source(st), "testing.") || counts(st) {
				continue
			}
		case *ast.AssignStmt:
			if st.Tok == token.DEFINE {
				continue
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		if i, ok := s.add(st, fmt.Sprintf("without %q", s.source(st))); ok {
			s.wrap(st, fmt.Sprintf("if _switches.Keep(%d) { ", i), " }")
		}
	}
}
