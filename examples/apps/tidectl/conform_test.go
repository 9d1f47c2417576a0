package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
)

// TestConform: the engine passes, the report says what was tested and what it cost, and mistakes on the command line
// are explained.
func TestConform(t *testing.T) {
	t.Setenv("TIDEMARK_PROJECT", "")
	t.Setenv("TIDEMARK_INSTANCE", "")
	out, _, err := tidectl(t, t.Context(), "", "conform", "--engine", "--quick")
	if err != nil || !strings.Contains(out, "0 differ, 0 failed") || !strings.Contains(out, "tokens/one row") {
		t.Errorf("on the engine: %v\n%s", err, out)
	}
	out, _, err = tidectl(t, t.Context(), "", "-o", "json", "conform", "--engine", "--quick")
	var r conform.Report
	if json.Unmarshal([]byte(out), &r) != nil || err != nil || len(r.Results) < 50 || r.Requests["MutateRow"] == 0 || r.Versions["cloud.google.com/go/bigtable"] == "" {
		t.Errorf("as JSON: %v\n%.300s", err, out)
	}
	for want, args := range map[string][]string{
		"needs --project and --instance": {"conform"},
		"takes no arguments":             {"conform", "--engine", "x"},
		"does not open a store":          {"--dir", "x", "conform"},
		"text or json":                   {"-o", "csv", "conform", "--engine"},
		"flag provided but not defined":  {"conform", "--fast"},
	} {
		_, _, err := tidectl(t, t.Context(), "", args...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: exit code %d, %v; want %d with %q", args, exitCode(err), err, exitUsage, want)
		}
	}
}

// TestConformLeavesTheStore: TIDEMARK_TABLE names a store's table. A run must not make and delete a table with this
// name.
func TestConformLeavesTheStore(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", hanging(t, nil))
	t.Setenv("TIDEMARK_TABLE", "iot")
	out, _, err := tidectl(t, t.Context(), "", "-o", "json", "--project", "p", "--instance", "i", "conform", "--quick")
	var r conform.Report
	if json.Unmarshal([]byte(out), &r) != nil || err != nil || !strings.HasPrefix(r.Table, "tidemark-conform-") {
		t.Errorf("the run used the table %q, %v; want one of its own", r.Table, err)
	}
}

// TestConformInterrupted: while the service hangs, the first Ctrl-C removes the table and prints what was seen, and the
// second one ends the program at once.
func TestConformInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
	for name, tt := range map[string]struct {
		hangs []string
		twice bool
	}{
		"once":  {[]string{"ReadRows"}, false},
		"twice": {[]string{"ReadRows", "DeleteTable"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan string, 100)
			addr := hanging(t, arrived, tt.hangs...)
			cmd, stderr := programtest.New(t, "--project", "p", "--instance", "i", "conform")
			cmd.Env = append(cmd.Env, "BIGTABLE_EMULATOR_HOST="+addr)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			printed := make(chan string, 1)
			go func() {
				var b strings.Builder
				buf := make([]byte, 4096)
				for {
					n, err := out.Read(buf)
					b.Write(buf[:n])
					if err != nil {
						printed <- b.String()
						return
					}
				}
			}()
			expect(t, arrived, "ReadRows")
			interrupted := time.Now()
			interrupt(t, cmd)
			expect(t, arrived, "DeleteTable")
			var text string
			for ended := false; !ended; {
				select {
				case text = <-printed:
					ended = true
				case <-time.After(300 * time.Millisecond):
					if tt.twice {
						interrupt(t, cmd)
					}
				}
			}
			err = cmd.Wait()
			took := time.Since(interrupted)
			switch {
			case tt.twice:
				if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGINT || took > 10*time.Second {
					t.Errorf("after the second Ctrl-C: %v after %v, want SIGINT at once", err, took)
				}
			case cmd.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(text, "not run: ") || !strings.Contains(stderr.String(), "cases were not run"):
				t.Errorf("after Ctrl-C: %v, stdout %.300q, stderr %.300q; want exit code %d and what was not run", err, text, stderr, exitInterrupted)
			}
			if !strings.Contains(stderr.String(), "Ctrl-C again ends it at once") {
				t.Errorf("stderr is %q, want what another Ctrl-C does", stderr)
			}
		})
	}
}

// hanging serves an engine on which some methods hang. It reports their calls, and those of DeleteTable.
func hanging(t *testing.T, arrived chan<- string, methods ...string) (addr string) {
	t.Helper()
	s, err := local.Open(engine.Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	hang := func(ctx context.Context, method string) error {
		name := path.Base(method)
		hangs := false
		for _, m := range methods {
			hangs = hangs || m == name
		}
		if hangs || name == "DeleteTable" {
			select {
			case arrived <- name:
			default:
			}
		}
		if hangs {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	srv := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := hang(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := hang(ss.Context(), info.FullMethod); err != nil {
				return err
			}
			return handler(srv, ss)
		}))
	s.Register(srv)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-served
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

func expect(t *testing.T, arrived <-chan string, method string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case m := <-arrived:
			if m == method {
				return
			}
		case <-timeout:
			t.Fatalf("no call of %s within a minute", method)
		}
	}
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}
