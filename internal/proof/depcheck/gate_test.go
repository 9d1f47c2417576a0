package depcheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCoreIsOutOfReach compiles and runs packages of another module that try to reach the core of public types: a store's table without
// a tenant, or the rows of another one. The compiler refuses each line that is marked so, and no other, and the program reaches nothing.
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
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		if err == nil {
			return ""
		}
		return err.Error() + "\n" + string(out)
	}
	if out := run("build", "./valid"); out != "" {
		t.Fatalf("the valid package outside the module does not compile, so the test proves nothing: %s", out)
	}
	for _, internal := range []string{"inside", "bt", "store/points"} {
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
