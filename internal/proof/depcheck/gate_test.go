package depcheck

import (
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/typed"
)

// TestTheCoreIsOutOfReach compiles and runs packages of another module that try to reach the core of public types: a
// store's table without a tenant, or the rows of another one. The compiler refuses each line that is marked so, and no
// other, and the program reaches nothing.
func TestTheCoreIsOutOfReach(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/outside")); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	_, required, _ := strings.Cut(string(mod), "\n") // the same versions as in this module
	for name, text := range map[string]string{
		"go.mod": "module example.com/outside\n" + required + "\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n",
		"go.sum": string(sum),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		if err == nil {
			return ""
		}
		return err.Error() + "\n" + string(out)
	}
	if out := run("build", "./valid"); out != "" {
		t.Fatalf("the valid package outside the module does not compile, so the test proves nothing: %s", out)
	}
	for _, internal := range []string{"gate", "inside", "bt", "store/points"} {
		name := strings.ReplaceAll(internal, "/", "")
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "package x\n\nimport _ \"" + module + "/internal/" + internal + "\"\n"
		if err := os.WriteFile(filepath.Join(dir, name, "x.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := run("build", "./"+name); !strings.Contains(out, "use of internal package") {
			t.Errorf("an import of internal/%s: got %q, want an error", internal, out)
		}
	}
	const file = "refused/refused.go" // a package, not a program: linking takes seconds
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	out := run("build", "-gcflags=-e", "./refused")
	for i, line := range strings.Split(string(text), "\n") {
		want, got := strings.Contains(line, "// refused"), strings.Contains(out, fmt.Sprintf("%s:%d:", file, i+1))
		if want != got {
			t.Errorf("%s:%d: refused is %v, want %v: %s\n%s", file, i+1, got, want, strings.TrimSpace(line), out)
		}
	}
	if out := run("run", "./reflection"); out != "" {
		t.Errorf("a program outside of the module reaches the core:\n%s", out)
	}
}

// TestDeclarationsShowNoCore: what other modules see of public packages names neither a type of package inside nor one
// of the store's layers, so a generic function has nothing to infer a core from. It looks at functions, types, exported
// fields, and the exported methods of each type, with those that it gets from what it embeds.
func TestDeclarationsShowNoCore(t *testing.T) {
	seen := 0
	for _, p := range typed.Load(t, filepath.Join("..", "..", ".."), "./...") {
		if strings.Contains(p.Path, "/internal/") {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			if o := p.Types.Scope().Lookup(name); o.Exported() {
				seen++
				look := shown{where: p.Types.Name() + "." + name, report: t.Errorf, seen: map[types.Type]bool{}}
				look.declaration(o)
			}
		}
	}
	if seen < 400 {
		t.Errorf("the test sees %d declarations, want at least 400, or it proves nothing", seen)
	}
}

// shown looks for types of the core in what one declaration shows.
type shown struct {
	where  string
	report func(format string, args ...any)
	seen   map[types.Type]bool
}

func (s *shown) declaration(o types.Object) {
	if _, ok := o.(*types.TypeName); !ok {
		s.uses(o.Type())
		return
	}
	of := o.Type()
	if a, ok := of.(*types.Alias); ok && !a.Obj().Exported() {
		return
	}
	s.uses(of.Underlying())
	methods := types.NewMethodSet(types.NewPointer(of))
	if types.IsInterface(of) {
		methods = types.NewMethodSet(of)
	}
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			s.uses(m.Type())
		}
	}
}

// uses reports the types of the core that a type is made of.
func (s *shown) uses(t types.Type) {
	if s.seen[t] {
		return
	}
	s.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		s.uses(types.Unalias(t))
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil {
			path := strings.TrimPrefix(p.Path(), module+"/internal/")
			if first, _, _ := strings.Cut(path, "/"); slices.Contains([]string{"gate", "inside", "bt", "store", "ingest"}, first) {
				s.report("%s shows %s to other modules", s.where, t)
			}
			if strings.HasPrefix(p.Path(), module) && !t.Obj().Exported() {
				s.report("%s shows the unexported %s to other modules", s.where, t)
			}
		}
		for arg := range t.TypeArgs().Types() {
			s.uses(arg)
		}
	case *types.Signature:
		s.uses(t.Params())
		s.uses(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			s.uses(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				s.uses(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				s.uses(m.Type())
			}
		}
	case *types.Map:
		s.uses(t.Key())
		s.uses(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		s.uses(t.Elem())
	}
}
