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
		module + "/internal/engine", module + "/internal/inproc", module + "/tsdb/embedded",
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
	root, err := filepath.Abs(filepath.Join("..", ".."))
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

func list(t *testing.T, root, pkg string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", pkg, err, stderr.String())
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
