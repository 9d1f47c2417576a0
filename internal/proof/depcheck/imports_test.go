package depcheck

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports are the rules about imports. Paths are relative to this module, or import paths of other modules. A path with
// /... covers a package and all packages below it. Tests may import everything.
var imports = []rule{
	{
		who: "internal/...", except: []string{"internal/proof/..."}, not: []string{"tsdb/..."},
		why: "the core knows paths, times and bytes; only the typed API above it knows users' types",
	},
	{
		who: "...", except: []string{"internal/proof/..."}, not: []string{"internal/proof/..."},
		why: "programs do not link test code",
	},
	{
		who: "...", except: []string{"internal/proof/...", "tsdb/tsdbtest"}, not: []string{"testing"}, direct: true,
		why: "programs link neither the test framework nor its flags",
	},
	{
		who: "codec/...", only: []string{"codec/...", "internal/codecerr", "internal/invalid", "internal/jsonscan", "internal/layout"},
		why: "programs without a store encode and decode too",
	},
	{
		who: "tenant/...", only: []string{"tenant/...", "internal/ctxerr", "internal/gate", "internal/invalid"},
		why: "servers without a store use tenants too",
	},
	{
		who: "gc", only: []string{"internal/gate", "internal/instant", "internal/invalid"},
		why: "programs without a store create and compare policies too",
	},

	{
		who: "internal/engine/...", not: []string{"internal/store/...", "internal/ingest/...", "internal/bt"},
		why: "the engine imitates Bigtable, and Bigtable knows no points",
	},
	{
		who:    "...",
		except: []string{"internal/engine/...", "internal/local", "internal/proof/...", "tsdb/embedded", "tsdb/tsdbtest"},
		not:    []string{"internal/engine/...", "internal/local"},
		why:    "programs on Cloud Bigtable link no storage engine",
	},
	{
		who: "internal/bt", not: []string{"internal/store/...", "internal/ingest/..."},
		why: "the package that calls Bigtable is the lowest layer",
	},
	{
		who: "internal/telemetry", not: []string{"internal/bt", "internal/store/...", "internal/ingest/..."},
		why: "every layer reports to telemetry, so telemetry is below all of them",
	},

	{
		who: "internal/store/rowkey", only: []string{"internal/instant", "internal/invalid", "internal/ctxerr", "tenant"},
		not: []string{"context", "net/...", "os", "cloud.google.com/go/...", "google.golang.org/..."}, direct: true,
		why: "row keys are a pure function of tenant, dataset, path and time",
	},
	{
		who: "internal/store/dataset", direct: true,
		not: []string{"internal/bt", "context", "cloud.google.com/go/bigtable/apiv2/..."}, // the client cannot be called without a context
		why: "the shape of a dataset is known without I/O",
	},
	{
		who: "internal/store/...", not: []string{"internal/ingest/..."},
		why: "the buffer and the journal build on the store, not the reverse",
	},
	{
		who: "internal/store/points", not: []string{"internal/store/skipscan"},
		why: "the skip scan builds on points, not the reverse",
	},
	{
		who: "internal/ingest/spool", only: []string{"internal/diskerr", "internal/invalid", "internal/private", "internal/ctxerr"},
		why: "the spool stores bytes",
	},
	{
		who: "internal/ingest/journal", not: []string{"internal/store/dataset", "internal/store/points"},
		why: "the journal stores bytes, so a new kind of point does not change it",
	},
	{
		who: "internal/ingest/buffer", not: []string{"internal/ingest/spool", "internal/ingest/journal", "internal/store/..."},
		why: "the buffer knows neither the contents nor the source of writes",
	},
	{
		who: "internal/ingest/delivery", not: []string{"internal/ingest/spool"}, direct: true,
		why: "only the journal reads and writes the spool's file",
	},
}

// rule says what packages may not import: the packages in not, and if only is set, all packages of this module except
// those in only.
type rule struct {
	who       string
	except    []string
	not, only []string
	direct    bool // check direct imports only
	why       string
}

// breaks returns the imports of a package that a rule forbids.
func (r rule) breaks(p pkg) (forbidden []string) {
	if !matches(r.who, p.path) || slices.ContainsFunc(r.except, func(e string) bool { return matches(e, p.path) }) {
		return nil
	}
	imported := p.deps
	if r.direct {
		imported = p.imports
	}
	for _, of := range imported {
		name := relative(of)
		if is := func(pattern string) bool { return matches(pattern, name) }; slices.ContainsFunc(r.not, is) ||
			r.only != nil && below(of, module) && !slices.ContainsFunc(r.only, is) {
			forbidden = append(forbidden, name)
		}
	}
	return forbidden
}

// pkg is a package of this module: its path in the module, its direct imports, and all its dependencies.
type pkg struct {
	path          string
	imports, deps []string
}

// relative returns the path in this module, and import paths of other modules unchanged.
func relative(path string) string { return strings.TrimPrefix(path, module+"/") }

// matches reports whether a path matches a pattern. The pattern "..." means all of this module, which has no package at
// its root.
func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if up, all := strings.CutSuffix(pattern, "/..."); all {
		return below(path, up)
	}
	return path == pattern
}

// TestImports checks that each package imports only what the rules allow.
func TestImports(t *testing.T) {
	packages := packages(t)
	for _, r := range imports {
		for _, p := range packages {
			for _, of := range r.breaks(p) {
				t.Errorf("%s imports %s%s, which breaks the rule for %s: %s", p.path, of, through(packages, p, of), r.who, r.why)
			}
		}
	}
}

// through names the packages of this module that p imports and that import of.
func through(packages []pkg, p pkg, of string) string {
	direct := func(p pkg) bool {
		return slices.ContainsFunc(p.imports, func(i string) bool { return relative(i) == of })
	}
	if direct(p) {
		return ""
	}
	var by []string
	for _, q := range packages {
		if direct(q) && slices.Contains(p.deps, module+"/"+q.path) {
			by = append(by, q.path)
		}
	}
	return " through " + strings.Join(by, ", ")
}

// TestImportRules checks each rule with an import that breaks it.
func TestImportRules(t *testing.T) {
	for _, tc := range []struct {
		p    pkg
		want string // how the broken rule's reason begins; empty if the import is allowed
	}{
		{pkg{path: "internal/store/points", deps: []string{module + "/tsdb/window"}}, "the core knows"},
		{pkg{path: "tsdb", deps: []string{module + "/internal/proof/testkit"}}, "programs do not link test code"},
		{pkg{path: "tsdb/window", imports: []string{"testing"}}, "programs link neither"},
		{pkg{path: "codec/zstd", deps: []string{module + "/tenant"}}, "programs without a store encode"},
		{pkg{path: "internal/engine/inproc", deps: []string{module + "/internal/store/rowkey"}}, "the engine imitates"},
		{pkg{path: "internal/store/rowkey", imports: []string{"cloud.google.com/go/bigtable"}}, "row keys are"},
		{pkg{path: "internal/store/rowkey", imports: []string{"context"}}, "row keys are"},
		{pkg{path: "internal/store/dataset", imports: []string{module + "/internal/bt"}}, "the shape of a dataset"},
		{pkg{path: "internal/store/dataset", imports: []string{"context"}}, "the shape of a dataset"},
		{pkg{path: "internal/store/points", deps: []string{module + "/internal/ingest/buffer"}}, "the buffer and the journal"},
		{pkg{path: "internal/store/points", deps: []string{module + "/internal/ingest/spool"}}, "the buffer and the journal"},
		{pkg{path: "internal/store/points", deps: []string{module + "/internal/store/skipscan"}}, "the skip scan"},
		{pkg{path: "internal/ingest/journal", deps: []string{module + "/internal/store/dataset"}}, "the journal stores"},
		{pkg{path: "internal/ingest/journal", deps: []string{module + "/internal/store/points"}}, "the journal stores"},
		{pkg{path: "internal/ingest/delivery", imports: []string{module + "/internal/ingest/spool"}}, "only the journal"},

		{pkg{path: "internal/store/dataset", imports: []string{"cloud.google.com/go/bigtable"}}, ""},
		{pkg{path: "internal/store/skipscan", deps: []string{module + "/internal/store/points"}}, ""},
		{pkg{path: "internal/proof/soak", deps: []string{module + "/tsdb"}}, ""},
		{pkg{path: "tsdb/tsdbtest", imports: []string{"testing"}, deps: []string{module + "/internal/engine"}}, ""},
		{pkg{path: "internal/engine", deps: []string{module + "/internal/engine/rowfilter"}}, ""},
	} {
		var whys []string
		for _, r := range imports {
			if len(r.breaks(tc.p)) > 0 {
				whys = append(whys, r.why)
			}
		}
		if got := strings.Join(whys, "; "); tc.want == "" && got != "" || tc.want != "" && (len(whys) != 1 || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%+v: got the broken rule %q, want %q", tc.p, got, tc.want)
		}
	}
}

// packages returns this module's packages.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath    string
			Imports, Deps []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rerunOnChange(root, p.ImportPath)
		all = append(all, pkg{path: relative(p.ImportPath), imports: p.Imports, deps: p.Deps})
	}
	if len(all) < 40 {
		t.Fatalf("got only %d packages from go list", len(all))
	}
	return all
}
