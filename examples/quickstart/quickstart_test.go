package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// open opens the store of a folder.
func open(t *testing.T, dir string) *tsdb.Store {
	t.Helper()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// runShort runs the program in a folder and returns its output.
func runShort(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	store := open(t, dir)
	if err := errors.Join(run(t.Context(), &out, store, time.Nanosecond, measure), store.Close()); err != nil {
		t.Fatalf("run: %v, after\n%s", err, out.String())
	}
	return out.String()
}

// pointsOf returns how many points of acme's memory a run has read.
func pointsOf(t *testing.T, out string) int {
	t.Helper()
	match := regexp.MustCompile(`\n  acme +memory +(\d+) points `).FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("the output has no points of acme's memory:\n%s", out)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSecondRunFindsTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by the program")
	for n := 1; n <= 2; n++ {
		out := runShort(t, dir)
		checkReport(t, out)
		if got := pointsOf(t, out); got != n {
			t.Errorf("run %d reads %d points, want one of each run", n, got)
		}
	}
}

// checkReport checks the lines that show the features of the store. Which devices can be read depends on the machine,
// so it requires only acme's cpu and memory.
func checkReport(t *testing.T, out string) {
	t.Helper()
	for _, pattern := range []string{
		`\n  acme +cpu +\d\d:\d\d:\d\d\.\d{3} +[\d.]+ of +[\d.]+ cores +\d+ %\n`,
		`\n  acme +memory +\d\d:\d\d:\d\d\.\d{3} +[\d.]+ of +[\d.]+ GiB +\d+ %\n`,
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

func TestInterruptEndsSamplingOnly(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	store := open(t, t.TempDir())
	defer store.Close()
	var out bytes.Buffer
	if err := run(ctx, &out, store, time.Hour, func() map[string]Reading { interrupt(); return measure() }); err != nil {
		t.Fatalf("an interrupt while sampling fails the run: %v, after\n%s", err, out.String())
	}
	checkReport(t, out.String())
}

func TestInterruptBeforeSampling(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	store := open(t, t.TempDir())
	defer store.Close()
	if err := run(ctx, io.Discard, store, time.Hour, measure); err == nil {
		t.Error("run after an interrupt succeeds; want an error, because nothing was sampled")
	}
}

func TestDeviceThatCannotBeRead(t *testing.T) {
	store := open(t, t.TempDir())
	defer store.Close()
	var out bytes.Buffer
	if err := run(t.Context(), &out, store, time.Nanosecond, func() map[string]Reading { return map[string]Reading{"load": {1, 2, "cores"}} }); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`acme2 +load +\S+ +1.00 of +2.00 cores +50 %\n +acme2 +disk +tsdb: not found\n`).MatchString(out.String()) {
		t.Errorf("want load in spite of an unreadable disk:\n%s", out.String())
	}
}

func TestLeakIsAFailure(t *testing.T) {
	store := open(t, t.TempDir())
	defer store.Close()
	kept := slices.Clone(devices)
	defer func() { devices = kept }()
	devices[2].tenant = "acme" // as if acme2 read acme's rows
	err := run(t.Context(), io.Discard, store, time.Nanosecond, measure)
	if err == nil || !strings.Contains(err.Error(), "acme sees the load of acme") {
		t.Errorf("one tenant sees the other's device: %v, want an error that says so", err)
	}
}
