package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable/bttest"

	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// process is a server in a separate process.
type process struct {
	t      *testing.T
	url    string
	seen   string // the address of its metrics; empty without metrics
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	out    strings.Builder
	stderr *bytes.Buffer
	client *http.Client
}

// start runs the program until it listens.
func start(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) *process {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &process{t: t, cmd: cmd, lines: bufio.NewScanner(stdout), stderr: stderr, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	for s.lines.Scan() {
		s.out.WriteString(s.lines.Text() + "\n")
		if url, ok := strings.CutPrefix(s.lines.Text(), "Metrics "); ok {
			s.seen = strings.TrimSpace(url)
		}
		if rest, ok := strings.CutPrefix(s.lines.Text(), "Listening on "); ok {
			s.url, _, _ = strings.Cut(rest, ";")
			return s
		}
	}
	err = cmd.Wait()
	t.Fatalf("the program did not listen: %v, %s", err, stderr)
	return nil
}

func serving(t *testing.T, args ...string) *process {
	t.Helper()
	cmd, stderr := programtest.New(t, append(args, "-addr", "127.0.0.1:0")...)
	return start(t, cmd, stderr)
}

func (s *process) get(path string) (int, string, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+demoToken)
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// want sends a request, and checks the status and that the response contains a text.
func (s *process) want(path string, status int, text string) string {
	s.t.Helper()
	got, body, err := s.get(path)
	if err != nil || got != status || !strings.Contains(body, text) {
		s.t.Errorf("%s: %d %s (%v), want %d and %s", path, got, body, err, status, text)
	}
	return body
}

// stop ends the process as Ctrl-C does, and checks that it succeeds.
func (s *process) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	for s.lines.Scan() {
		s.out.WriteString(s.lines.Text() + "\n")
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("Ctrl-C: %v, want exit code 0; %s", err, s.stderr)
	}
}

func skipWhereNoInterrupt(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
}

func TestExitCode(t *testing.T) {
	testkit.Plain(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-help", 0, ""},
		{"extra", 2, "unexpected argument"},
		{"-nope", 2, "-nope"},
		{"", 2, "no -token"},
		{"-token secret", 2, "token=tenant"},
		{"-token secret=a/b", 2, "tenant"},
		{"-token s=acme -token s=acme2", 2, "already"},
		{"-demo -token demo=acme", 2, "already"},
		{"-tokens missing", 2, "missing"},
		{"-limits missing -demo -addr 127.0.0.1:0", 1, "-limits"},
		{"-demo -allow-remote -addr :0", 2, "-demo"},
		{"-tokens " + file("tokens", "# ours\n\ntopsecret:acme\n"), 2, "line 3: want sha256:"},
		{"-demo -cursor-keys " + file("keys", "dG9wc2VjcmV0\n"), 2, "line 1: want a key of 32 bytes"},
		{"-demo -cursor-keys " + file("empty", "\n"), 2, "has no key"},
		{"-demo -addr 0.0.0.0:0", 2, "-allow-remote"},
		{"-demo -addr nowhere", 2, "host:port"},
		{"-demo -max-body 0", 2, "-max-body"},
		{"-demo -max-requests 0", 2, "-max-requests"},
		{"-demo -timeout 0s", 2, "-timeout"},
		{"-demo -drain 0s", 2, "-drain"},
		{"-demo -cache -1", 2, "-cache"},
		{"-demo -dir=", 2, "-dir is empty"},
		{"-demo -cloud -dir x", 2, "-cloud and -dir"},
		{"-demo -ensure", 2, "-ensure is for -cloud"},
		{"-demo -cloud -addr 127.0.0.1:0", 1, "TIDEMARK_PROJECT"},
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
			got := stderr.String()
			if !strings.Contains(got, test.stderr) || (test.stderr == "") != (got == "") {
				t.Errorf("stderr is %q, want %q in it", got, test.stderr)
			}
			if strings.Contains(got, "topsecret") || strings.Contains(got, "dG9wc2VjcmV0") {
				t.Errorf("stderr shows a secret: %s", got)
			}
		})
	}
}

// TestTwice runs the demo twice in one folder, with cursors that outlive the first process.
func TestTwice(t *testing.T) {
	skipWhereNoInterrupt(t)
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte("# the one in use\n"+base64.StdEncoding.EncodeToString([]byte("another key of 32 bytes, for this")[:32])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-demo", "-dir", filepath.Join(dir, "made", "here"), "-cursor-keys", keys}
	const latest, history = "/v1/weather/latest?site=berlin&device=roof-7", "/v1/weather/history?site=berlin&device=roof-7&size=2&from=2020-01-01T00:00:00Z"

	s := serving(t, args...)
	s.want("/readyz", 200, "ready")
	s.want(latest, 200, `"device":"roof-7"`)
	s.want("/v1/positions/group?company=stc&route=22", 200, `"bus":"175"`)
	next := decode[historyPage](t, s.want(history, 200, `"next"`)).Next

	// The folder is in use: a second process reads it through the first. The port is in use, too.
	second := serving(t, args...)
	second.want(latest, 200, `"device":"roof-7"`)
	second.want(next, 200, `"points"`)
	second.stop()
	third, stderr := programtest.New(t, "-demo", "-addr", strings.TrimPrefix(s.url, "http://"))
	if err := third.Run(); err == nil || !strings.Contains(stderr.String(), "-addr") {
		t.Errorf("a second process on the port: %v, %s", err, stderr)
	}
	s.stop()
	if !strings.Contains(s.out.String(), "Stopping") {
		t.Errorf("the output does not say that the program stops:\n%s", &s.out)
	}

	s = serving(t, args...)
	s.want(latest, 200, `"device":"roof-7"`)
	if page := decode[historyPage](t, s.want(next, 200, `"points"`)); len(page.Points) != 2 {
		t.Errorf("the page of a cursor of the first run has %d points, want 2", len(page.Points))
	}
	s.stop()

	// Without a file of keys each process has its own.
	s = serving(t, args[:3]...)
	s.want(next, 400, badCursor.name)
	s.stop()
	if s.stderr.Len() > 0 {
		t.Errorf("stderr: %s", s.stderr)
	}
}

// TestShutdownUnderLoad interrupts the server while eight clients send requests without a pause. Each response that
// begins is complete and correct. Afterwards connections are refused, and the process succeeds.
func TestShutdownUnderLoad(t *testing.T) {
	skipWhereNoInterrupt(t)
	s := serving(t, "-demo", "-dir", t.TempDir())
	paths := []string{
		"/v1/weather/latest?site=berlin&device=roof-7", "/v1/weather/group", "/v1/weather/history?site=berlin&device=roof-7&size=400",
		"/v1/weather/windows?site=berlin&device=roof-7&every=1h&from=2026-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
	}
	var clients sync.WaitGroup
	var warm sync.WaitGroup
	for i := range 8 {
		warm.Add(1)
		clients.Go(func() {
			for n := 0; ; n++ {
				if n == 20 {
					warm.Done()
				}
				status, body, err := s.get(paths[(n+i)%len(paths)])
				if err != nil {
					if status != 0 {
						t.Errorf("a response was cut off: %d %s, %v", status, body, err)
					}
					if n < 20 {
						warm.Done()
						t.Errorf("before the end: %v", err)
					}
					return
				}
				if status != 200 || !strings.HasSuffix(body, "}\n") {
					t.Errorf("a response during the shutdown: %d %s", status, body)
				}
			}
		})
	}
	warm.Wait()
	s.stop()
	clients.Wait()
	if s.stderr.Len() > 0 {
		t.Errorf("stderr: %s", s.stderr)
	}
}

// TestDrainEnds sends half a request: the process waits for it as long as -drain says, and then reports that it did not
// end.
func TestDrainEnds(t *testing.T) {
	skipWhereNoInterrupt(t)
	s := serving(t, "-demo", "-dir", t.TempDir(), "-drain", "200ms")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "POST /v1/weather/latest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo\r\nContent-Type: application/json\r\n" +
		"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	// The server asks for the body when a handler reads it, so the request is running then.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for s.lines.Scan() {
	}
	if err := s.cmd.Wait(); err == nil || !strings.Contains(s.stderr.String(), "longer than 200ms after Ctrl-C") {
		t.Errorf("%v, %s; want exit code 1 and why", err, s.stderr)
	}
}

// The program runs against a server with Bigtable's protocol, through the official client.
func TestCloud(t *testing.T) {
	skipWhereNoInterrupt(t)
	server, err := bttest.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	env := []string{"BIGTABLE_EMULATOR_HOST=" + server.Addr, "TIDEMARK_PROJECT=p", "TIDEMARK_INSTANCE=i", "TIDEMARK_TABLE=t"}

	cmd, stderr := programtest.New(t, "-cloud", "-token", "demo=acme", "-addr", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "-ensure") {
		t.Errorf("a missing table: %v, %s; want an error that names -ensure", err, stderr)
	}
	for _, args := range [][]string{{"-cloud", "-demo", "-ensure"}, {"-cloud", "-token", "demo=demo"}} {
		cmd, stderr := programtest.New(t, append(args, "-addr", "127.0.0.1:0")...)
		cmd.Env = append(cmd.Env, env...)
		s := start(t, cmd, stderr)
		s.want("/readyz", 200, "ready")
		s.want("/v1/weather/latest?site=berlin&device=roof-7", 200, `"device":"roof-7"`)
		s.stop()
		if entries, err := os.ReadDir(cmd.Dir); err != nil || len(entries) > 0 {
			t.Errorf("-cloud left %v (%v) in the current folder, want nothing", entries, err)
		}
	}
}
