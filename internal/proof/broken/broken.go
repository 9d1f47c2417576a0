// Package broken shows that a test catches the faults that it is for. Each patch in testdata/broken of the test's
// package breaks the code on purpose, in one way. The test has to fail on a build with the patch, and to pass without
// it.
//
//	func TestBroken(t *testing.T) { broken.Run(t) }
//
//	go test ./internal/proof/broken -run TestBroken -broken -v
//
// Without -broken, Run only checks that the patches still fit the code, which takes milliseconds. A patch is a unified
// diff against the root of the repository, as git diff prints it, after a text with three parts:
//
//	The engine acknowledges writes before they are synced.
//
//	args: -test.run=^TestHistories$ -history.seed=7
//	caught: acknowledged, but not stored
//
// args are the arguments of the test binary, with the seed that reaches the fault. caught is a regular expression that
// the output of the broken test has to match, so that it does not fail for another reason. To write a patch, change the
// code, run git diff, and undo the change.
package broken

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var enabled = flag.Bool("broken", false, "build each broken version of testdata/broken, and check that the tests catch it")

// Run checks each patch of the current package in a subtest that has the patch's name.
func Run(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.FromSlash("testdata/broken/*.patch"))
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/broken has the patches %v, %v; want some", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".patch"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.check(t.Context(), t.TempDir(), *enabled); err != nil {
				t.Fatalf("%s\n%v", p.meaning, err)
			}
			if *enabled {
				t.Logf("caught with %s: %s", strings.Join(p.args, " "), p.meaning)
			}
		})
	}
}

// patch is one deliberate fault.
type patch struct {
	meaning string
	args    []string
	caught  *regexp.Regexp
	files   []string // relative to the root of the repository, with slashes
	text    string
}

func parse(text string) (p patch, err error) {
	head, _, found := strings.Cut(text, "diff --git ")
	if !found {
		return p, errors.New("the patch has no line that begins with diff --git")
	}
	p.text = text
	p.meaning, _, _ = strings.Cut(head, "\n\n")
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "args":
			p.args = strings.Fields(value)
		case "caught":
			if p.caught, err = regexp.Compile(value); err != nil {
				return p, err
			}
		}
	}
	for line := range strings.Lines(text) {
		if file, ok := strings.CutPrefix(line, "--- a/"); ok {
			p.files = append(p.files, strings.TrimSpace(file))
		}
	}
	if p.meaning == "" || len(p.args) == 0 || p.caught == nil || len(p.files) == 0 {
		return p, errors.New("the patch needs a first sentence, args, caught, and files that it changes")
	}
	return p, nil
}

// check checks that the patch fits the code and, with run, that the tests of the current package catch it.
func (p patch) check(ctx context.Context, dir string, run bool) error {
	overlay, err := p.apply(dir)
	if err != nil || !run {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if out, err := p.run(ctx, self); err != nil {
		return fmt.Errorf("the test fails without the patch too: %w\n%s", err, tail(out))
	}
	binary := filepath.Join(dir, "broken.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the broken version does not compile: %w\n%s", err, tail(out))
	}
	out, err := p.run(ctx, binary)
	switch {
	case err == nil:
		return fmt.Errorf("the test does not catch it; it prints\n%s", tail(out))
	case !p.caught.Match(out):
		return fmt.Errorf("the test fails without the words %q: %w\n%s", p.caught, err, tail(out))
	}
	return nil
}

// apply copies the files that the patch changes into dir, changes the copies, and returns the overlay that replaces the
// files by the copies in a build.
func (p patch) apply(dir string) (overlay string, err error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, file := range p.files {
		from, to := filepath.Join(root, filepath.FromSlash(file)), filepath.Join(dir, filepath.FromSlash(file))
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		replace[from] = to
	}
	git := exec.Command("git", "apply", "-")
	git.Dir, git.Stdin = dir, strings.NewReader(p.text)
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // outside of a repository, all paths are relative to dir
	if out, err := git.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the patch no longer fits the code: %w\n%s", err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// mostTime bounds the run of one broken test.
const mostTime = 10 * time.Minute

func (p patch) run(ctx context.Context, binary string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, p.args...)
	cmd.WaitDelay = time.Second // a process that the test started may hold its output
	return cmd.CombinedOutput()
}

// repository returns the folder of the module that holds the SDK.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/tidemark-go/tidemark\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no folder above has the go.mod of the SDK")
		}
		dir = up
	}
}

// tail returns the end of a long output.
func tail(out []byte) string {
	const most = 4000
	return string(out[max(0, len(out)-most):])
}
