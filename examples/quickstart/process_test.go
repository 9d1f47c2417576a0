package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable/bttest"

	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tsdb"
)

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-for 1ns", 0, ""},
		{"-help", 0, "how long to sample"},
		{"-nope", 2, "-nope"},
		{"extra", 1, "want no arguments"},
		{"-for 0s", 1, "-for above 0"},
		{"-for -1s", 1, "-for above 0"},
		{"-for soon", 2, "soon"},
		{"-dir=", 1, "a folder in -dir"},
		{"-cloud -dir x", 1, "unless -cloud is given"},
		{"-for", 2, "-for"},
		{"-cloud", 1, "TIDEMARK_PROJECT"},
	} {
		t.Run(test.args, func(t *testing.T) {
			cmd, stderr := programtest.New(t, strings.Fields(test.args)...)
			err := cmd.Run()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d; %s", got, test.code, stderr)
			}
			if got := stderr.String(); !strings.Contains(got, test.stderr) || (test.stderr == "") != (got == "") {
				t.Errorf("stderr is %q, want %q in it", got, test.stderr)
			}
		})
	}
}

// A folder that another program has open is refused, and left as it is.
func TestFolderInUse(t *testing.T) {
	cmd, stderr := programtest.New(t, "-for", "1ns")
	store := open(t, filepath.Join(cmd.Dir, "tidemark-data"))
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), tsdb.ErrLocked.Error()) {
		t.Errorf("on a folder that is open: %v, %s; want exit code 1 and %q", err, stderr, tsdb.ErrLocked)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestCtrlC(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
	cmd, stderr := programtest.New(t, "-for", "1h")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Sampling") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C while sampling: %v, want exit code 0; %s", err, stderr)
	}
	checkReport(t, out.String())
}

// The program runs against a server with Bigtable's protocol, through the official client.
func TestCloud(t *testing.T) {
	server, err := bttest.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	cmd, stderr := programtest.New(t, "-cloud", "-for", "1ns")
	cmd.Env = append(cmd.Env, "BIGTABLE_EMULATOR_HOST="+server.Addr,
		"TIDEMARK_PROJECT=p", "TIDEMARK_INSTANCE=i", "TIDEMARK_TABLE=t")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	checkReport(t, string(out))
	if entries, err := os.ReadDir(cmd.Dir); err != nil || len(entries) > 0 {
		t.Errorf("-cloud left %v (%v) in the current folder, want nothing", entries, err)
	}
}
