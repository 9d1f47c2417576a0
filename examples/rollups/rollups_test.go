package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/examples/internal/dashtest"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestMain runs the program itself if a test started this binary as a child process to be killed.
func TestMain(m *testing.M) {
	programtest.RunMain(main)
	goleak.VerifyTestMain(m)
}

// TestTwice: a second run in the folder finds the views of both runs, and of the process that was killed in between.
func TestTwice(t *testing.T) {
	t.Setenv(programtest.Variable, "1") // also for the process that the program starts
	dir := filepath.Join(t.TempDir(), "made", "by the program")
	for i := range 2 {
		if i > 0 {
			if cmd, _ := programtest.New(t, "-doomed", "-dir", dir); cmd.Run() == nil {
				t.Fatal("the child process was not killed")
			}
		}
		out := watched{ctx: t.Context(), seen: dashtest.New("rollups")}
		if err := run(t.Context(), []string{"-dir", dir, "-metrics-addr", "127.0.0.1:0"}, &out); err != nil {
			t.Fatalf("run %d: %v, after\n%s", i+1, err, &out)
		}
		if n := dashtest.Answered(t, out.seen); n < 2 {
			t.Errorf("run %d: rollups has data for %d queries of the dashboard, want those of rollups", i+1, n)
		}
		dashtest.Listed(t, out.seen)
		if lag := out.seen.Value(t, `max(tidemark_rollup_lag_seconds)`); lag < 0 || lag > 600 {
			t.Errorf("run %d: the rollups are %v seconds behind right after the worker's pass", i+1, lag)
		}
		const plain, late = "  2026-03-30 00:00  1440 points   min   4.82   mean   9.89   max  14.93\n", "  2026-03-30 00:00  1441 points   min   4.82   mean   9.92   max  45.00\n"
		if got := strings.Count(out.String(), late); got != 2 {
			t.Errorf("run %d: the late point is in %d tables, want both:\n%s", i+1, got, &out)
		}
		if got := strings.Count(out.String(), plain); got != 3 {
			t.Errorf("run %d: the day without it is in %d tables, want 3:\n%s", i+1, got, &out)
		}
		for _, want := range []string{
			"Readings  133740 of 3", "2026-03-29 00:00  1380 points", " passes, 2322 buckets", "marks in 2 passes, 2 buckets",
			fmt.Sprintf("Views     %d before", i*2400), fmt.Sprintf("; %d count, each once\n", i*2400+1400),
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("run %d: the output lacks %q:\n%s", i+1, want, &out)
			}
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"-wrong"}, {"extra"}, {"-dir", ""}} {
		if _, ok := errors.AsType[usageError](run(t.Context(), args, io.Discard)); !ok {
			t.Errorf("run %q returns no usage error", args)
		}
	}
	if err := run(t.Context(), []string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run -help: %v", err)
	}
}

func TestEndsEarly(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-dir", dir}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run returns %v", err)
	}
	held, err := embedded.Open(t.Context(), filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := run(t.Context(), []string{"-dir", dir}, io.Discard); !errors.Is(err, embedded.ErrLocked) || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("a second program in the folder returns %v, want ErrLocked and -dir", err)
	}
}
