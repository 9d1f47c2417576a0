package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tidemark-go/tidemark"

// imports are the packages that fragments may use. A whole program has its own imports.
var imports = []string{
	"bytes", "context", "encoding/json", "errors", "fmt", "io", "iter", "log", "log/slog", "net/http", "os", "slices", "strings", "testing", "time",
	"cloud.google.com/go/bigtable", "google.golang.org/grpc", "google.golang.org/grpc/codes", "google.golang.org/protobuf/types/known/durationpb", "go.opentelemetry.io/otel",
	module + "/codec", module + "/codec/zstd", module + "/gc",
	module + "/tenant", module + "/tenant/httptenant", module + "/tenant/grpctenant", module + "/tenant/limit",
	module + "/tsdb", module + "/tsdb/embedded", module + "/tsdb/keys", module + "/tsdb/retention",
	module + "/tsdb/dynamic", module + "/tsdb/errstatus",
	module + "/tsdb/heatmap", module + "/tsdb/rollup", module + "/tsdb/tenants", module + "/tsdb/tsdbtest", module + "/tsdb/transfer", module + "/tsdb/window",
}

// TestSnippets compiles all Go code of README.md and docs/, runs it page by page, and compares what it prints with the
// text fence after it. A failure means that a reader who copies the code gets an error, or other output than the page
// shows.
//
// A fence that starts with "package main" is a whole program. The other fences of a page are one program together: see
// source.
func TestSnippets(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	dependOnCode(t, root)
	b := newBuild(t, root)
	wants := map[string][]string{} // the output of each fence, by the name of the package that is run
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := fences(string(text))
		if got, want := len(all), strings.Count("\n"+string(text), "\n```go\n"); got != want {
			t.Errorf("%s: got %d of %d Go fences", file, got, want)
		}
		name := strings.ToLower(strings.TrimSuffix(filepath.Base(file), ".md"))
		fragments := false
		for _, f := range all {
			switch {
			case f.program():
				b.add("program"+name, f.asPackage("program"+name, file))
				wants["program"+name] = []string{f.output}
			default:
				fragments = true
				if !f.declares() {
					wants[name] = append(wants[name], f.output)
				}
			}
		}
		if !fragments {
			continue
		}
		code, err := source(name, file, all)
		if err != nil {
			t.Errorf("a fence does not parse as Go: %v", err)
			continue
		}
		b.add(name, code)
	}
	if t.Failed() {
		return
	}
	if len(wants) < 5 {
		t.Fatalf("found %d pages with code to run, want at least 5", len(wants))
	}
	binary := b.build()
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr strings.Builder
			cmd := exec.Command(binary, name)
			cmd.Dir, cmd.Stderr = t.TempDir(), &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("running the code of the page: %v\n%s%s", err, out, stderr.String())
			}
			got := strings.Split(strings.TrimPrefix(string(out), "\x00\n"), "\x00\n")
			if len(got) != len(want) {
				t.Fatalf("ran %d fences, want %d", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("fence %d: got output\n%s\nwant, as on the page,\n%s", i+1, got[i], want[i])
				}
			}
		})
	}
}

// dependOnCode looks at each Go file of the module, so that go test reruns the test when one of them changes.
func dependOnCode(t *testing.T, root string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == "examples" || e.Name() == "testdata" || e.Name() == ".git") {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			seen++
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Fatalf("found %d Go files: %v", seen, err)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// build is a program that can run the code of every page. Its files are an overlay of this folder, so nothing is
// written to the repository, and all pages are compiled and linked at once.
type build struct {
	t       *testing.T
	root    string
	dir     string
	replace map[string]string
	main    strings.Builder
	imports strings.Builder
}

func newBuild(t *testing.T, root string) *build {
	return &build{t: t, root: root, dir: t.TempDir(), replace: map[string]string{}}
}

const folder = "internal/proof/docs/generated"

// file adds one file below folder.
func (b *build) file(name, text string) {
	b.t.Helper()
	if strings.Contains(text, `"`+module+"/internal/") && name != "main.go" {
		b.t.Errorf("%s imports an internal package, which readers cannot import", name)
	}
	real := filepath.Join(b.dir, strings.ReplaceAll(name, "/", "_"))
	if err := os.WriteFile(real, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.replace[filepath.Join(b.root, folder, filepath.FromSlash(name))] = real
}

// add adds a package with the function Run.
func (b *build) add(name, code string) {
	b.t.Helper()
	b.file(name+"/code.go", code)
	b.imports.WriteString("\t\"" + module + "/" + folder + "/" + name + "\"\n")
	b.main.WriteString("\t\"" + name + "\": " + name + ".Run,\n")
}

// build compiles the added files and returns the program's path.
func (b *build) build() string {
	b.t.Helper()
	b.file("main.go", "package main\n\nimport (\n\t\"context\"\n\t\"log\"\n\t\"os\"\n\n"+b.imports.String()+")\n\nvar pages = map[string]func(context.Context) error{\n"+
		b.main.String()+"}\n\nfunc main() {\n\tif err := pages[os.Args[1]](context.Background()); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n")
	binary := filepath.Join(b.dir, "pages")
	b.compile("-o", binary, "./"+folder)
	return binary
}

// compile runs go build with some arguments on the added files.
func (b *build) compile(args ...string) {
	b.t.Helper()
	overlay := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(overlay, must(json.Marshal(map[string]any{"Replace": b.replace})), 0o600); err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"build", "-ldflags=-s", "-overlay", overlay}, args...)...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("compiling the code of the documentation: %v\n%s", err, out)
	}
}
