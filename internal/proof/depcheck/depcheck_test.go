// Package depcheck tests what a program links when it imports a package of this module.
package depcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tidemark-go/tidemark"

// rooms are the packages that users import, each with the import paths that must stay out of their binaries, together
// with all below them.
var rooms = []struct {
	path string
	not  []string
}{
	// A program that talks to Cloud Bigtable carries no storage engine, no fake and no compression that it did not ask for.
	{"tsdb", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd",
		module + "/internal/engine", module + "/internal/engine/inproc", module + "/tsdb/embedded",
	}},
	{"tsdb/chart", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd", module + "/internal/engine",
	}},
	{"tsdb/window", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd", module + "/internal/engine",
	}},
	// A policy needs the client's types and nothing of the store.
	{"gc", []string{"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest", module + "/tsdb"}},
	// Codecs and tenants are for programs that never open a store, too.
	{"codec", []string{"cloud.google.com", "google.golang.org/grpc", "github.com"}},
	{"tenant", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	{"tenant/httptenant", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	{"tenant/grpctenant", []string{"cloud.google.com", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	// Keys are hashed by programs that only send them to a store's service, too.
	{"tsdb/privacy", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io"}},
	{"tenant/limit", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
}

func TestLinkedPackages(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil { // read, so that a change to it reruns the test
		t.Fatal(err)
	}
	for _, room := range rooms {
		t.Run(room.path, func(t *testing.T) {
			if files, _ := filepath.Glob(filepath.Join(root, room.path, "*.go")); len(files) == 0 {
				t.Skipf("there is no package %s", room.path)
			}
			linked := list(t, root, "./"+room.path)
			if len(linked) == 0 {
				t.Fatalf("go list says that %s links nothing, not even itself", room.path)
			}
			for _, pkg := range linked {
				rerunOnChange(root, pkg)
				for _, not := range room.not {
					if forbids(not, pkg) {
						t.Errorf("a program that imports %s links %s", room.path, pkg)
					}
				}
			}
		})
	}
}

// forbids reports whether the path not covers pkg. This module's packages are covered only by its own paths: "github.com"
// means everybody else's there.
func forbids(not, pkg string) bool {
	return below(pkg, not) && below(pkg, module) == below(not, module)
}

// below reports whether the import path pkg is path or below it, as major versions are.
func below(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}

func list(t *testing.T, root string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off") // as in a user's module, where the examples raise no version
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}

// rerunOnChange reads the folder of a package of this module: go test then sees that a cached result is out of date when
// a file in it changes.
func rerunOnChange(root, pkg string) {
	if below(pkg, module) {
		_, _ = os.ReadDir(filepath.Join(root, strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")))
	}
}

// TestNotice fails where NOTICE lacks a module that a program links, or has one that none links.
func TestNotice(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(notice), "Linked by every program:\n")
	if !ok {
		t.Fatal("NOTICE has no list of what every program links")
	}
	every, more, _ := strings.Cut(text, "Linked by the embedded engine and by codec/zstd:\n")
	cloud := modules(t, root, "./tsdb", "./tsdb/advise", "./tsdb/inspect", "./tsdb/rollup", "./tsdb/tenants", "./tsdb/retention", "./tsdb/transfer", "./tenant/...", "./gc")
	engine := modules(t, root, "./tsdb/embedded", "./codec/zstd")
	for _, list := range []struct {
		name, text string
		want       func(module string) bool
	}{
		{"every program", every, func(m string) bool { return cloud[m] }},
		{"the embedded engine", more, func(m string) bool { return engine[m] && !cloud[m] }},
	} {
		listed := map[string]bool{}
		for line := range strings.Lines(list.text) {
			if fields := strings.Fields(line); len(fields) == 2 {
				if listed[fields[0]] = true; !list.want(fields[0]) {
					t.Errorf("NOTICE says that %s links %s, which it does not", list.name, fields[0])
				}
			}
		}
		for _, linked := range []map[string]bool{cloud, engine} {
			for m := range linked {
				if list.want(m) && !listed[m] {
					t.Errorf("%s links %s, and NOTICE does not say so", list.name, m)
				}
			}
		}
	}
}

// modules returns the modules of others that packages link.
func modules(t *testing.T, root string, pkgs ...string) map[string]bool {
	t.Helper()
	linked := map[string]bool{}
	for _, m := range list(t, root, append([]string{"-f", "{{with .Module}}{{.Path}}{{end}}"}, pkgs...)...) {
		if m != module {
			linked[m] = true
		}
	}
	return linked
}
