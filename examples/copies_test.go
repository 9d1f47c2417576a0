package examples_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// copies are the examples that a reader copies: one file each, which imports only public packages.
var copies = []struct {
	name   string
	prints []string
	// Of a server: a request, and what the response has.
	method, path, body, want string
}{
	{name: "hourly", prints: []string{"03:00:00   60 points  mean 11.50  max 11.50", "03:00:00   61 points  mean 12.79  max 90.00"}},
	{name: "protobuf", prints: []string{"north/van-12  minute 4  52.504 13.400"}},
	{name: "tenantlife", prints: []string{"stopped at the limit", "exported all of them: true", "no row is left: true", "afterwards: tsdb: the tenant or entity is erased"}},
	{name: "ingesthttp", method: http.MethodPost, path: "/readings", body: `[{"device":"roof-7","time":"NOW","temp_c":21.5}]`, want: "204"},
	{name: "latesthttp", method: http.MethodGet, path: "/sites/berlin/latest", want: `"device":"roof-7"`},
}

// TestCopies copies each of these examples alone into an empty module, builds it there and runs it. A failure means that a reader who
// copies the file gets a program that does not work.
func TestCopies(t *testing.T) {
	for _, c := range copies {
		t.Run(c.name, func(t *testing.T) {
			binary := buildCopy(t, c.name)
			if c.method != "" {
				if got := request(t, binary, c.method, c.path, c.body); !strings.Contains(got, c.want) {
					t.Errorf("%s %s returns %q, want %q in it", c.method, c.path, got, c.want)
				}
				return
			}
			out, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range c.prints {
				if !strings.Contains(string(out), want) {
					t.Errorf("the program prints\n%swant %q in it", out, want)
				}
			}
		})
	}
}

// buildCopy returns the program of an example, built in a module of its own.
func buildCopy(t *testing.T, name string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, mod, sum := read(t, filepath.Join(name, "main.go")), read(t, "go.mod"), read(t, "go.sum")
	if n := strings.Count(file, "\n"); n > 150 || strings.Contains(file, "/internal/") {
		t.Errorf("%s has %d lines, want at most 150, and no import of an internal package", name, n)
	}
	_, mod, _ = strings.Cut(mod, "\n")
	mod = strings.Replace(mod, "tidemark => ../", "tidemark => "+root, 1)
	for path, text := range map[string]string{"main.go": file, "go.mod": "module example.com/" + name + "\n" + mod, "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", "program", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "program")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// request starts a server, sends it one request, stops it as Ctrl-C does, and returns the status and the body of the response.
func request(t *testing.T, binary, method, path, body string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, binary, "-addr", "127.0.0.1:0")
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(strings.Replace(body, "NOW", time.Now().UTC().Format(time.RFC3339), 1)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Tenant", "acme")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after Ctrl-C the server ends with %v", err)
	}
	return res.Status + " " + string(text)
}
