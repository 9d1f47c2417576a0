package soak

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
)

// serveEngine is the environment variable of the process that serves an engine.
const serveEngine = "TIDEMARK_SOAK_SERVES"

// serve serves an engine in memory on the loopback interface, prints its address, and returns when the input ends.
func serve() int {
	s, err := local.Open(engine.Options{GCInterval: time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv := grpc.NewServer()
	s.Register(srv)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test's process closes it, also when it is killed
		srv.Stop()
	}()
	fmt.Println("serves", lis.Addr())
	_ = srv.Serve(lis)
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// served starts another process that serves an engine, so that the memory of the test's process is that of clients
// alone. It returns the address.
func served(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEngine+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the engine's process: %v", err)
		}
	})
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "serves ")
	if !ok {
		t.Fatalf("the engine's process prints %q: %v", line, err)
	}
	return addr
}
