package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/typed"
)

var (
	mutate = flag.Bool("mutate", false, "change the code of the packages, and run their tests on each change")
	only   = flag.String("mutate.only", "", "only this package")
	share  = flag.Float64("mutate.share", 1, "the share of the changes to try, which is chosen by their names")
	accept = flag.Bool("mutate.update", false, "write the survivors to testdata")
)

// packages are those whose survivors are known. Of the engine, whose tests take seconds, they are known of a fifth of
// the changes: -mutate.share cannot be larger there.
var packages = map[string]float64{"internal/store/rowkey": 1, "internal/ingest/buffer": 1, "internal/bt": 1, "internal/engine": 0.2}

// TestSurvivors checks that each change that survives is known.
func TestSurvivors(t *testing.T) {
	if !*mutate {
		t.Skip("it takes hours; give -mutate")
	}
	for path, most := range packages {
		if *only != "" && path != *only {
			continue
		}
		t.Run(path, func(t *testing.T) {
			p := load(t, path)
			bin, mutants := p.build(t)
			tests := p.measure(t, bin)
			tried, survivors := 0, []string{}
			began := time.Now()
			for _, m := range mutants {
				if !chosen(m, min(*share, most)) {
					continue
				}
				tried++
				if p.survives(t, bin, tests, m) {
					survivors = append(survivors, m.String())
					t.Logf("survives: %s:%d %s", m.file, m.line, m)
				}
			}
			t.Logf("%s: of %d changes %d were tried, %d survive; %v", path, len(mutants), tried, len(survivors), time.Since(began).Round(time.Second))
			compare(t, path, survivors)
		})
	}
}

// chosen reports whether a change is in a share. It is, wherever its code moves.
func chosen(m mutant, share float64) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, m.String())
	return float64(h.Sum32()) < share*(1<<32)
}

// compare checks survivors against the known ones of a package.
func compare(t *testing.T, path string, survivors []string) {
	t.Helper()
	slices.Sort(survivors)
	file := filepath.Join("testdata", strings.ReplaceAll(path, "/", "-")+".txt")
	if *accept {
		if err := os.WriteFile(file, []byte(strings.Join(append(survivors, ""), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		known[strings.TrimSpace(line)]++
	}
	for _, s := range survivors {
		if known[s]--; known[s] < 0 {
			t.Errorf("no test of %s notices a change in %s", path, s)
		}
	}
}

// loaded is a package whose code is changed.
type loaded struct{ typed.Package }

func load(t *testing.T, path string) *loaded {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return &loaded{typed.Load(t, root, "./"+path)[0]}
}

var position = regexp.MustCompile(`(?m)([^\s:]+\.go):(\d+):\d+: `)

// build compiles the tests of the package with all changes. What does not compile on a line is left out.
func (p *loaded) build(t *testing.T) (bin string, mutants []mutant) {
	t.Helper()
	dir := t.TempDir()
	bin = filepath.Join(dir, "test")
	refused := map[string]bool{}
	for range 20 {
		mutants = nil
		overlay := map[string]string{}
		for i, f := range p.Files {
			text, more, err := rewrite(p.Set, &p.Info, f, len(mutants), refused)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, strconv.Itoa(i)+".go")
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
			overlay[p.Set.Position(f.Pos()).Filename] = to
			mutants = append(mutants, more...)
		}
		text, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-gcflags=-e", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, p.Dir).CombinedOutput()
		if err == nil {
			return bin, mutants
		}
		before := len(refused)
		for _, m := range position.FindAllStringSubmatch(string(out), -1) {
			refused[filepath.Join(p.Dir, filepath.Base(m[1]))+":"+m[2]] = true
		}
		if len(refused) == before {
			t.Fatalf("the changed tests do not compile: %v\n%s", err, out)
		}
	}
	t.Fatal("the changed tests do not compile after 20 tries")
	return "", nil
}

// passed is a test that passes on the code as it is, with the changes that it passes.
type passed struct {
	name    string
	took    time.Duration
	reached map[int]bool
}

// measure runs each test alone, without a change. The fastest come first.
func (p *loaded) measure(t *testing.T, bin string) (tests []passed) {
	t.Helper()
	out, err := p.command(t.Context(), bin, "-test.list=^(Test|Example)").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		file := filepath.Join(t.TempDir(), "reached")
		cmd := p.command(t.Context(), bin, "-test.run=^"+name+"$", "-test.short", "-test.timeout=2m")
		cmd.Env = append(cmd.Env, "TIDEMARK_MUTANTS_REACHED="+file)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("left out, since it fails without a change: %s: %v\n%.300s", name, err, out)
			continue
		}
		test := passed{name, time.Since(began), map[int]bool{}}
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, n := range strings.Fields(string(text)) {
			i, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			test.reached[i] = true
		}
		tests = append(tests, test)
	}
	slices.SortFunc(tests, func(a, b passed) int { return int(a.took - b.took) })
	return tests
}

// survives reports whether all tests that reach a change pass with it. A test that hangs notices it.
func (p *loaded) survives(t *testing.T, bin string, tests []passed, m mutant) bool {
	t.Helper()
	var names []string
	var took time.Duration
	run := func() bool {
		if len(names) == 0 {
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second+10*took)
		defer cancel()
		cmd := p.command(ctx, bin, "-test.run=^("+strings.Join(names, "|")+")$", "-test.short", "-test.failfast")
		cmd.Env = append(cmd.Env, "TIDEMARK_MUTANT="+strconv.Itoa(m.number))
		err := cmd.Run()
		names, took = nil, 0
		return err == nil
	}
	for _, test := range tests {
		if !test.reached[m.number] {
			continue
		}
		names, took = append(names, test.name), took+test.took
		if took > 500*time.Millisecond && !run() {
			return false
		}
	}
	return run()
}

func (p *loaded) command(ctx context.Context, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "CI=true")
	return cmd
}

// TestRewrite checks the changes of a small file.
func TestRewrite(t *testing.T) {
	const text = `package small

func add(a, b int, ok bool) int {
	if a < b && ok {
		a++
	}
	print(a)
	return a + b
}
`
	name := filepath.Join(t.TempDir(), "small.go")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := new(types.Config).Check("small", set, []*ast.File{file}, &info); err != nil {
		t.Fatal(err)
	}
	out, mutants, err := rewrite(set, &info, file, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(out), "func add")
	const want = `(a, b int, ok bool) int {
	if _switches.Not(12, _switches.Or(13, a < b, (a) <= (b))) && _switches.Or(11, bool(ok), true) {
		if _switches.Keep(14) { a++ }
	}
	if _switches.Keep(10) { print(a) }
	return _switches.Plus(15, a + b)
}
`
	if body != want {
		t.Errorf("the changed function is\n%s\nwant\n%s", body, want)
	}
	names := ""
	for _, m := range mutants {
		names += fmt.Sprintln(m)
	}
	const list = "add: without \"print(a)\"\nadd: without \"&& ok\"\nadd: not \"a < b\"\nadd: <= instead of \"a < b\"\nadd: without \"a++\"\nadd: \"a + b\" and 1\n"
	if names != list {
		t.Errorf("the changes are\n%s\nwant\n%s", names, list)
	}
}
