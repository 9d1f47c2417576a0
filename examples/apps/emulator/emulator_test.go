package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestMain(m *testing.M) {
	programtest.RunMain(main)
	os.Exit(m.Run())
}

// start runs the program on a folder. It returns the address that the program prints, and a function that stops it.
func start(t *testing.T, dir string) (addr string, stop func()) {
	t.Helper()
	cmd, stderr := programtest.New(t, "-dir", dir, "-addr", "127.0.0.1:0", "-project", "p", "-instance", "i", "-heatmap", dir+".heat")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if lines.Scan(); !strings.Contains(lines.Text(), "project p, instance i") {
		t.Errorf("the first line is %q, want it to say which names work", lines.Text())
	}
	for addr == "" && lines.Scan() {
		addr, _ = strings.CutPrefix(lines.Text(), "export BIGTABLE_EMULATOR_HOST=")
		if addr == lines.Text() {
			addr = ""
		}
	}
	if addr == "" {
		cmd.Wait()
		t.Fatalf("the program ended without an address: %s", stderr)
	}
	return addr, func() {
		t.Helper()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		last := ""
		for lines.Scan() {
			last = lines.Text()
		}
		if err := cmd.Wait(); err != nil || last != "stopped" || stderr.Len() > 0 {
			t.Errorf("after Ctrl-C: %v, last line %q, stderr %q", err, last, stderr)
		}
	}
}

// The official client, configured for the emulator in the usual way, writes. After a restart it reads, and so does a
// store of package embedded.
func TestOfficialClient(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for round := range 2 {
		addr, stop := start(t, dir)
		t.Setenv("BIGTABLE_EMULATOR_HOST", addr)
		if round == 0 {
			admin, err := bigtable.NewAdminClient(ctx, "p", "i")
			if err != nil {
				t.Fatal(err)
			}
			if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "t", ColumnFamilies: map[string]bigtable.Family{
				"f": {}, "sum": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}},
			}}); err != nil {
				t.Fatal(err)
			}
			admin.Close()
		}
		client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}})
		if err != nil {
			t.Fatal(err)
		}
		table := client.Open("t")
		m := bigtable.NewMutation()
		m.Set("f", fmt.Sprintf("round%d", round), 1000, []byte("here"))
		m.AddIntToCell("sum", "n", 0, 1)
		if err := table.Apply(ctx, "row", m); err != nil {
			t.Fatal(err)
		}
		row, err := table.ReadRow(ctx, "row")
		if err != nil || len(row["f"]) != round+1 || len(row["sum"]) != 1 || row["sum"][0].Value[7] != byte(round+1) {
			t.Errorf("round %d: read %v, %v", round, row, err)
		}
		client.Close()
		stop()
		recording, err := heatview.Load(dir + ".heat")
		if got, want := recording.Totals(), (heat.Totals{Reads: 1, Writes: 1}); err != nil || got.Reads != want.Reads || got.Writes != want.Writes {
			t.Errorf("round %d: the recording has %+v (%v), want a write and a read", round, got, err)
		}
	}
	store, err := embedded.Open(ctx, dir)
	if err != nil {
		t.Fatalf("opening the served folder as a store: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestExitCode(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	locked := t.TempDir()
	server, err := embedded.NewServer(embedded.Options{Dir: locked})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-help", 0, ""},
		{"extra", 2, "unexpected argument"},
		{"-nonsense", 2, "-nonsense"},
		{"-project a/b", 2, "-project"},
		{"-addr 8086", 2, "want host:port"},
		{"-addr :8086", 2, "-allow-remote"},
		{"-addr 0.0.0.0:8086", 2, "-allow-remote"},
		{"-addr 127.0.0.1:0 -dir " + locked, 1, "another process has"},
		{"-addr 127.0.0.1:0 -dir x -heatmap missing/x.heat", 1, "-heatmap"},
		{"-addr 127.0.0.1:0 -dir " + file, 1, "cannot open the folder"},
		{"-addr " + busy.Addr().String(), 1, "another program listens"},
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

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true,
		"::ffff:127.0.0.1": true, "": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "example.com": false,
	} {
		if got := edge.Loopback(host); got != want {
			t.Errorf("edge.Loopback(%q) = %v, want %v: other machines could read the data, or no client could", host, got, want)
		}
	}
}

// The program does what the SDK relies on in Bigtable.
func TestConforms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
	addr, stop := start(t, t.TempDir())
	defer stop()
	t.Setenv("BIGTABLE_EMULATOR_HOST", addr)
	r, err := conform.Run(t.Context(), conform.Options{Project: "p", Instance: "i", Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Unmet() {
		t.Errorf("%s: %s: %q, want %q", c.Name, c.Status, c.Seen, c.Expected)
	}
}
