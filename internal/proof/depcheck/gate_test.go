package depcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCoreIsOutOfReach compiles packages outside this module that try to reach a store's table without a tenant.
// None of them compiles. A package that uses only the public API does.
func TestTheCoreIsOutOfReach(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	write("go.mod", "module example.com/outside\n"+required+"\nrequire "+module+" v0.0.0\nreplace "+module+" => "+root+"\n")
	write("go.sum", string(sum))
	compile := func(imports, body string) (string, error) {
		write("outside.go", "package outside\n\nimport (\n"+imports+")\n\nfunc use() {\n"+body+"\n}\n") // a package, not a program: linking takes seconds
		cmd := exec.Command("go", "build", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	store := "\t\"" + module + "/tsdb\"\n"
	if out, err := compile(store, "var s tsdb.Store\n_ = s.Table()"); err != nil {
		t.Fatalf("the valid package outside the module does not compile, so the test proves nothing: %v\n%s", err, out)
	}
	for name, try := range map[string]struct{ imports, body, want string }{
		"the store's methods":      {store, "var s *tsdb.Store\ns.Inside(struct{}{})\ns.Watch(struct{}{})\ns.inside()", "s.Inside undefined"},
		"the repository's methods": {store, "var r *tsdb.Repository[int]\nr.Inside(struct{}{})\nr.Unlimited(struct{}{}, true)\nr.asUnlimited(true)", "r.Unlimited undefined"},
		"functions":                {store, "tsdb.Described(struct{}{}, nil)\ntsdb.EntityAt(struct{}{}, \"x\")", "undefined: tsdb.EntityAt"},
		"the gate":                 {"\t\"" + module + "/internal/inside\"\n", "inside.OfStore(nil)", "use of internal package"},
		"the client of the core":   {"\t\"" + module + "/internal/bt\"\n", "var t bt.Table\n_ = t", "use of internal package"},
	} {
		out, err := compile(try.imports, try.body)
		if err == nil || !strings.Contains(out, try.want) {
			t.Errorf("%s: got %v, want an error with %q:\n%s", name, err, try.want, out)
		}
		for line := range strings.Lines(try.body) {
			call, _, _ := strings.Cut(strings.TrimSpace(line), "(")
			if strings.Contains(line, "struct{}{}") && !strings.Contains(out, call+" undefined") && !strings.Contains(out, "undefined: "+call) {
				t.Errorf("%s: line %q compiles, want an error:\n%s", name, line, out)
			}
		}
	}
}

// TestDocsShowNoCore checks that no exported declaration names a type of package inside. Users can neither make nor use
// such a type.
func TestDocsShowNoCore(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"tsdb", "tsdb/adopt", "tsdb/advise", "tsdb/embedded", "tsdb/inspect", "tsdb/retention", "tsdb/rollup", "tsdb/tenants", "tsdb/transfer", "tsdb/tsdbtest"} {
		cmd := exec.Command("go", "doc", "-all", "./"+pkg)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil || len(out) < 1000 {
			t.Fatalf("go doc of %s: got %d bytes, %v", pkg, len(out), err)
		}
		if _, after, found := strings.Cut(string(out), "inside."); found {
			t.Errorf("the documentation of %s names a type of internal/inside, want none: inside.%.80s", pkg, after)
		}
	}
}
