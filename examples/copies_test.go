package examples_test

import (
	"bufio"
	"context"
	"io"
	"net"
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
	asked  []exchange // of a server
}{
	{name: "quickstart", prints: []string{"Latest: the newest point", "acme2  asks for memory  tsdb: not found"}},
	{name: "hourly", prints: []string{"03:00:00   60 points  mean 11.50  max 11.50", "03:00:00   61 points  mean 12.79  max 90.00"}},
	{name: "protobuf", prints: []string{"north/van-12  minute 4  52.504 13.400"}},
	{name: "tenantlife", prints: []string{"stopped at the limit", "exported all of them: true", "no row is left: true", "afterwards: tsdb: the tenant or entity is erased"}},
	{name: "ingesthttp", asked: []exchange{
		{http.MethodPost, "/readings", "acme", `[{"device":"roof-7","time":"NOW","temp_c":21.5}]`, "204"},
		{http.MethodPost, "/readings", "", `[]`, "401"},
		{http.MethodPost, "/readings", "acme", ``, "400"},
		{http.MethodPost, "/readings", "acme", `{"device":"roof-7"}`, "400"},
		{http.MethodPost, "/readings", "acme", `[{"device":"roof-7","temp_c":21.5}]`, "400"},
		{http.MethodPost, "/readings", "acme", `[{"device":"roof-7","time":"NOW","temp":21.5}]`, "400"},
		{http.MethodPost, "/readings", "acme", `[{"device":"roof-7","time":"2200-01-01T00:00:00Z","temp_c":21.5}]`, "400"},
		{http.MethodPost, "/readings", "acme", `[] [{"device":"roof-8","time":"NOW","temp_c":21.5}]`, "400"},
		{http.MethodPost, "/readings", "acme", strings.Repeat(" ", 1<<20+1), "413"},
	}},
	{name: "latesthttp", asked: []exchange{
		{http.MethodGet, "/sites/berlin/latest", "acme", "", `"device":"roof-7"`},
		{http.MethodGet, "/sites/paris/latest", "acme", "", "[]"},
		{http.MethodGet, "/sites/berlin/latest", "globex", "", "[]"},
		{http.MethodGet, "/sites/berlin/latest", "", "", "401"},
	}},
}

// exchange is a request of a tenant, and what the response has.
type exchange struct{ method, path, tenant, body, want string }

// TestCopies copies each of these examples alone into an empty module, builds it there and runs it. A failure means
// that a reader who copies the file gets a program that does not work.
func TestCopies(t *testing.T) {
	for _, c := range copies {
		t.Run(c.name, func(t *testing.T) {
			binary := buildCopy(t, c.name)
			if c.asked != nil {
				serve(t, binary, c.asked)
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
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
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

// serve starts a server, sends it requests, and stops it as Ctrl-C does while it reads the body of another request, if
// it reads one. Where it has a folder, a second start there has to fail.
func serve(t *testing.T, binary string, asked []exchange) {
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
	for _, e := range asked {
		if got := e.send(t, url, strings.NewReader(e.now())); !strings.Contains(got, e.want) {
			t.Errorf("%s %s of tenant %q with %.80q returns %q, want %q in it", e.method, e.path, e.tenant, e.body, got, e.want)
		}
	}
	if e := asked[0]; e.body != "" {
		second := exec.CommandContext(t.Context(), binary, "-addr", "127.0.0.1:0")
		second.Dir = cmd.Dir
		if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
			t.Errorf("a second start in the same folder ends with %v:\n%s", err, out)
		}
		body := &lateBody{rest: strings.NewReader(e.now()), before: func() {
			stop()
			for { // until it accepts no more
				c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}}
		if got := e.send(t, url, body); !strings.Contains(got, e.want) {
			t.Errorf("%s %s that is under way at Ctrl-C returns %q, want %q in it", e.method, e.path, got, e.want)
		}
	}
	stop()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after Ctrl-C the server ends with %v", err)
	}
}

// now returns the body with the time.
func (e exchange) now() string {
	return strings.Replace(e.body, "NOW", time.Now().UTC().Format(time.RFC3339), 1)
}

// lateBody is a body that something precedes. It is read when the server has begun to read it.
type lateBody struct {
	before func()
	rest   io.Reader
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.before != nil {
		b.before()
		b.before = nil
	}
	return b.rest.Read(p)
}

// send returns the status and the body of the response, or the error.
func (e exchange) send(t *testing.T, url string, body io.Reader) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), e.method, url+e.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if e.tenant != "" {
		req.Header.Set("X-Tenant", e.tenant)
	}
	if _, ok := body.(*lateBody); ok {
		req.Header.Set("Expect", "100-continue")
	}
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status + " " + string(text)
}
