package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestMain runs the program itself if a test started this binary as a child process.
func TestMain(m *testing.M) {
	programtest.RunMain(main)
	goleak.VerifyTestMain(m)
}

// short returns the arguments of a short run.
func short(dir string) []string { return []string{"-dir", dir, "-for", "250ms", "-every", "50ms"} }

// runShort runs the program and returns its output.
func runShort(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), short(dir), &out); err != nil {
		t.Fatalf("run: %v, after\n%s", err, out.String())
	}
	return out.String()
}

// number returns the only number that the pattern matches in a run's output.
func number(t *testing.T, out, pattern string) int {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("the output has no line %q:\n%s", pattern, out)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSecondRunFindsTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by the program")

	first := runShort(t, dir)
	checkReport(t, first)
	if want := "no points of earlier runs"; !strings.Contains(first, want) {
		t.Errorf("a new folder is not said to be empty; want %q in\n%s", want, first)
	}
	stored := number(t, first, `\n +(\d+) points stored\n`)

	second := runShort(t, dir)
	checkReport(t, second)
	found := number(t, second, `\nFound +(\d+) points of earlier runs, the first of \d{4}-\d\d-\d\d `)
	if found != stored {
		t.Errorf("the second run found %d points of earlier runs, want the %d that the first one stored", found, stored)
	}
}

// checkReport checks the lines that show the features of the store. Which devices can be read depends on the machine, so it
// requires only acme's cpu and memory.
func checkReport(t *testing.T, out string) {
	t.Helper()
	for _, pattern := range []string{
		`\nDataset +readings, kept in d30 \(maxage=30d\)\n`,
		`\n  acme +cpu +\d\d:\d\d:\d\d\.\d{3} +[\d.]+ of +[\d.]+ cores +\d+ %\n`,
		`\n  acme +memory +\d\d:\d\d:\d\d\.\d{3} +[\d.]+ of +[\d.]+ GiB +\d+ %\n`,
		`\nLatestN: the last \d+ of acme's cpu, newest first\n  \d\d:\d\d:\d\d\.\d{3} .* [█░]{20}\n`,
		`\n  acme +memory +\d+ points +min +[\d.]+ +mean +[\d.]+ +max +[\d.]+\n`,
		`\n  acme +asks for load +tsdb: not found\n`,
		`\n  acme +asks for disk +tsdb: not found\n`,
		`\n  acme2 +asks for cpu +tsdb: not found\n`,
		`\n  acme2 +asks for memory +tsdb: not found\n`,
	} {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("the output has no line %q:\n%s", pattern, out)
		}
	}
}

// TestREADME: the program prints the lines of output in README.md, apart from numbers.
func TestREADME(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(page), "```text\nLatest: ")
	shown, _, ended := strings.Cut("Latest: "+shown, "```\n")
	if !found || !ended {
		t.Fatal("README.md has no fence with the output of the quickstart")
	}
	numbers := regexp.MustCompile(`\d[\d.:]*`)
	shape := func(line string) string {
		return strings.Join(strings.Fields(numbers.ReplaceAllString(line, "0")), " ")
	}
	printed := map[string]bool{"…": true}
	for line := range strings.Lines(runShort(t, t.TempDir())) {
		printed[shape(line)] = true
	}
	for line := range strings.Lines(shown) {
		if strings.Contains(line, "load") || strings.Contains(line, "disk") {
			continue // not every machine has them
		}
		if !printed[shape(line)] {
			t.Errorf("README.md shows a line that the program does not print: %s", line)
		}
	}
}

// watcher calls seen when text is first written to it.
type watcher struct {
	bytes.Buffer
	text string
	seen func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.seen()
	}
	return w.Buffer.Write(p)
}

func TestInterruptEndsSamplingOnly(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &watcher{text: ".", seen: func() {}}
	out.seen = func() {
		if strings.Contains(out.String(), "Sampling") {
			interrupt()
		}
	}
	if err := run(ctx, []string{"-dir", t.TempDir(), "-for", "1h"}, out); err != nil {
		t.Fatalf("an interrupt while sampling fails the run: %v, after\n%s", err, out.String())
	}
	checkReport(t, out.String())
}

func TestInterruptBeforeSampling(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, short(t.TempDir()), io.Discard); err == nil {
		t.Error("run after an interrupt succeeds; want an error, because nothing was sampled")
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), short(dir), io.Discard); !errors.Is(err, embedded.ErrLocked) {
		t.Errorf("run on a folder that is open: %v, want embedded.ErrLocked", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	checkReport(t, runShort(t, dir))
}

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args, want string
	}{
		{"extra", `unexpected argument "extra"`},
		{"-nope", "-nope"},
		{"-for soon", `"soon"`},
		{"-for 0s", "-for is 0s"},
		{"-for -1s", "-for is -1s"},
		{"-every 9ms", "-every is 9ms"},
		{"-dir=", "-dir is empty"},
		{"-cloud -dir x", "-cloud and -dir"},
	} {
		err := run(t.Context(), strings.Fields(test.args), io.Discard)
		if _, ok := errors.AsType[usageError](err); !ok || !strings.Contains(err.Error(), test.want) {
			t.Errorf("run %s: %v, want a usageError with %q", test.args, err, test.want)
		}
	}
	if err := run(t.Context(), []string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run -help: %v, want flag.ErrHelp", err)
	}
}

func TestDeviceThatCannotBeRead(t *testing.T) {
	store, err := embedded.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), readings); err != nil {
		t.Fatal(err)
	}
	customers := newCustomers(store, "host")
	customers[1].devices[1].read = func(context.Context) (Reading, error) { return Reading{}, errors.New("no such disk") }
	customers[1].devices[0].read = func(context.Context) (Reading, error) { return Reading{1, 2, "cores"}, nil }

	start := time.Now()
	var out bytes.Buffer
	if err := sample(t.Context(), &out, customers, options{length: 100 * time.Millisecond, every: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if err := printLatest(t.Context(), &out, customers, start); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "without the disk of acme2: no such disk\n"); got != 1 {
		t.Errorf("the unreadable disk is named %d times, want 1:\n%s", got, out.String())
	}
	if !regexp.MustCompile(`acme2 +load +\S+ +1.00 of +2.00 cores +50 %\n +acme2 +disk +nothing\n`).MatchString(out.String()) {
		t.Errorf("want load in spite of an unreadable disk:\n%s", out.String())
	}
}

func TestLeakIsAFailure(t *testing.T) {
	store, err := embedded.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), readings); err != nil {
		t.Fatal(err)
	}
	customers := newCustomers(store, "host")
	customers[1].repo = customers[0].repo // as if acme2 read acme's rows
	if err := customers[0].repo.Put(t.Context(), tsdb.NewEntity("host", "cpu"), time.Now(), Reading{}); err != nil {
		t.Fatal(err)
	}
	err = printWall(t.Context(), io.Discard, customers, time.Time{})
	if err == nil || !strings.Contains(err.Error(), "acme2 sees the cpu of acme") {
		t.Errorf("one tenant sees the other's device: %v, want an error that says so", err)
	}
}
