// Package depcheck tests what a program links when it imports a package of this module.
package depcheck

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemark-go/tidemark"

// linkRules are the packages that users import, each with import paths that their binaries must not contain, including
// packages below those paths.
var linkRules = []struct {
	path string
	not  []string
}{
	// Programs that use Cloud Bigtable link no storage engine, no fake and no compression.
	{"tsdb", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd",
		module + "/internal/engine", module + "/internal/engine/inproc", module + "/internal/attach", module + "/internal/backup", module + "/tsdb/embedded", module + "/tsdb/heatmap",
	}},
	{"tsdb/embedded", []string{module + "/tsdb/heatmap"}},
	{"tsdb/heatmap", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd", module + "/internal/engine", module + "/internal/bt",
	}},
	{"tsdb/window", []string{
		"github.com/cockroachdb/pebble", "cloud.google.com/go/bigtable/bttest",
		"github.com/klauspost/compress", "github.com/DataDog/zstd", module + "/internal/engine",
	}},
	{"gc", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	// Programs without a store use codecs and tenants too.
	{"codec", []string{"cloud.google.com", "google.golang.org/grpc", "github.com"}},
	{"tenant", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	{"tenant/httptenant", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	{"tenant/grpctenant", []string{"cloud.google.com", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
	{"tenant/limit", []string{"cloud.google.com", "google.golang.org", "github.com", "go.opentelemetry.io", module + "/tsdb"}},
}

func TestLinkedPackages(t *testing.T) {
	all := packages(t)
	for _, rule := range linkRules {
		i := slices.IndexFunc(all, func(p pkg) bool { return p.path == rule.path })
		if i < 0 {
			t.Errorf("there is no package %s", rule.path)
			continue
		}
		for _, linked := range append(all[i].deps, module+"/"+rule.path) {
			for _, not := range rule.not {
				if forbids(not, linked) {
					t.Errorf("a program that imports %s links %s, which is forbidden", rule.path, linked)
				}
			}
		}
	}
}

// forbids reports whether the path not covers pkg. "github.com" means other modules there: only this module's own paths
// cover its packages.
func forbids(not, pkg string) bool {
	return below(pkg, not) && below(pkg, module) == below(not, module)
}

// below reports whether the import path pkg is path or below it.
func below(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}

func list(t *testing.T, root string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, args...)...)
	cmd.Dir = root
	// As in a user's module: in the workspace, the examples could raise versions. The build with cgo links one module more, and so do
	// builds without tags.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=1", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}

// rerunOnChange reads the folder of a package, so that go test reruns this test when a file there changes.
func rerunOnChange(root, pkg string) {
	if below(pkg, module) {
		_, _ = os.ReadDir(filepath.Join(root, strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")))
	}
}

// TestModulesAgree checks that the modules select the same versions. Where they differ, go compiles every package that
// depends on the difference again for the examples: plainly, under the race detector and for go vet.
func TestModulesAgree(t *testing.T) {
	root, examples, promapi := versions(t, "go.mod"), versions(t, "examples/go.mod"), versions(t, "examples/apps/promapi/go.mod")
	for path, version := range root {
		if have := examples[path]; have != version {
			t.Errorf("go.mod selects %s %s and examples/go.mod %s: go get the newer one in the other module, then go mod tidy", path, version, cmp.Or(have, "none"))
		}
		if have := promapi[path]; have != version && have != "" {
			t.Errorf("go.mod selects %s %s and examples/apps/promapi/go.mod %s: go get the newer one, then go mod tidy", path, version, have)
		}
	}
	if len(root) < 10 || len(examples) < 10 || len(promapi) < 10 {
		t.Errorf("go.mod lists %d modules, examples/go.mod %d and examples/apps/promapi/go.mod %d", len(root), len(examples), len(promapi))
	}
}

// versions returns the versions of the modules that a go.mod lists in its blocks, by path.
func versions(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case !strings.HasPrefix(line, "\t") || len(fields) < 2:
		case fields[1] != "=>":
			out[fields[0]] = fields[1]
		case len(fields) == 4:
			out[fields[0]] = fields[3] // a replacement comes after what is required
		}
	}
	return out
}

// TestNotice checks that NOTICE lists exactly the modules that programs link.
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
		t.Fatal("NOTICE has no list for every program")
	}
	every, more, _ := strings.Cut(text, "Linked by the embedded engine, by codec/zstd or by tsdb/heatmap:\n")
	cloud := modules(t, root, "./tsdb", "./tsdb/keys", "./tsdb/rollup", "./tsdb/tenants", "./tsdb/retention", "./tsdb/transfer", "./tenant/...", "./gc")
	engine := modules(t, root, "./tsdb/embedded", "./codec/zstd", "./tsdb/dynamic", "./tsdb/heatmap")
	for _, list := range []struct {
		name, text string
		want       func(module string) bool
	}{
		{"every program", every, func(m string) bool { return cloud[m] }},
		{"the embedded engine, codec/zstd or tsdb/heatmap", more, func(m string) bool { return engine[m] && !cloud[m] }},
	} {
		listed := map[string]bool{}
		for line := range strings.Lines(list.text) {
			if fields := strings.Fields(line); len(fields) == 2 {
				if listed[fields[0]] = true; !list.want(fields[0]) {
					t.Errorf("NOTICE lists, for %s, %s, which it does not link", list.name, fields[0])
				}
			}
		}
		for _, linked := range []map[string]bool{cloud, engine} {
			for m := range linked {
				if list.want(m) && !listed[m] {
					t.Errorf("%s links %s, which NOTICE does not list", list.name, m)
				}
			}
		}
	}
}

// modules returns the other modules that packages link.
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
