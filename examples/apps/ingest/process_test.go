package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/bttest"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var trial = flag.String("trial", "", "a file of line protocol in gzip format, to be stored by -file and over HTTP")

func TestMain(m *testing.M) {
	programtest.RunMain(main)
	goleak.VerifyTestMain(m)
}

// sample is line protocol: two measurements of ten trucks, with lines that cannot be stored.
func sample(lines int) (text string, bad int) {
	var b strings.Builder
	for i := range lines {
		name := fmt.Sprintf(",name=truck_%d", i%10)
		if i%97 == 5 {
			name = ""
			bad++
		}
		fmt.Fprintf(&b, "%s%s,fleet=South v=%d.5,load=%di %d\n", []string{"readings", "diagnostics"}[i%2], name, i, i, start.UnixNano()+int64(i)*1e9)
	}
	return b.String(), bad
}

func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sample.lp")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

var trucks = []string{"-key", "readings=name", "-key", "diagnostics=name"}

// points counts the points of acme in a folder.
func points(t *testing.T, dir string) (n int) {
	t.Helper()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ds, err := inbound.NewDatasets(t.Context(), store, inbound.Keys{"readings": {"name"}, "diagnostics": {"name"}}, inbound.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"readings", "diagnostics"} {
		d, err := ds.Find(t.Context(), acme, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			for _, err := range d.Schema().For(store, acme).Range(t.Context(), tsdb.NewEntity(fmt.Sprintf("truck_%d", i)), tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
	}
	return n
}

// TestFile stores a file twice, and standard input. Every line is accounted for, and no point is stored twice.
func TestFile(t *testing.T) {
	all, some := 12_000/testkit.Stride(8), 1_000/testkit.Stride(8)
	long, badOfAll := sample(all)
	short, _ := sample(some) // the first lines of the long text: they add no points
	dir := t.TempDir()
	for _, tt := range []struct {
		file, stdin string
		lines       int
	}{{write(t, packed(long)), "", all}, {write(t, short), "", some}, {"-", short, some}} {
		cmd, stderr := programtest.New(t, append(trucks, "-dir", dir, "-tenant", "acme", "-file", tt.file)...)
		cmd.Stdin = strings.NewReader(tt.stdin)
		_, bad := sample(tt.lines)
		out, err := cmd.Output()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("exit code %d, want 1 because lines are missing; %s", code, stderr)
		}
		for _, pattern := range []string{
			fmt.Sprintf(` +%d lines, and 0 blank`, tt.lines), fmt.Sprintf(` +%d stored, as %d points`, tt.lines-bad, tt.lines-bad),
			fmt.Sprintf(` +%d refused\n +%d it lacks the key tag name\n`, bad, bad),
		} {
			if !regexp.MustCompile(pattern).Match(out) {
				t.Errorf("the output does not match %q:\n%s", pattern, out)
			}
		}
		if got := stderr.String(); !strings.Contains(got, `line 6: the tag "name" is missing`) || strings.Contains(got, "Reading") {
			t.Errorf("stderr is %q, want the first bad lines and, without a terminal, no progress bar", got)
		}
		if n := points(t, dir); n != all-badOfAll {
			t.Errorf("the folder holds %d points, want %d", n, all-badOfAll)
		}
	}
}

// served is a server in a separate process.
type served struct {
	url    string
	seen   string // the address of its metrics; empty without metrics
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr *bytes.Buffer
}

func serving(t *testing.T, args ...string) *served {
	t.Helper()
	cmd, stderr := programtest.New(t, append(args, "-token", "secret=acme", "-addr", "127.0.0.1:0")...)
	return begin(t, cmd, stderr)
}

// begin runs the program until it listens.
func begin(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) *served {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: cmd, lines: bufio.NewScanner(stdout), stderr: stderr}
	for s.url == "" && s.lines.Scan() {
		if url, ok := strings.CutPrefix(s.lines.Text(), "Listening on "); ok {
			s.url, _, _ = strings.Cut(url, ";")
		}
		if url, ok := strings.CutPrefix(s.lines.Text(), "Metrics "); ok {
			s.seen = strings.TrimSpace(url)
		}
	}
	if s.url == "" {
		_ = cmd.Wait()
		t.Fatalf("the program ended without an address: %s", stderr)
	}
	return s
}

// patient is a client that sends a body when the server begins to read it, so that a test knows that time.
var patient = &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}

// post sends a body and returns the status.
func (s *served) post(t *testing.T, body io.Reader, gzip bool) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+v2, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Token secret")
	req.Header.Set("Expect", "100-continue")
	if gzip {
		isGzip(req)
	}
	res, err := patient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}

func (s *served) interrupt(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// rest returns the remaining output of the program until it ends.
func (s *served) rest() (out string, err error) {
	for s.lines.Scan() {
		out += s.lines.Text() + "\n"
	}
	return out, s.cmd.Wait()
}

func notOnWindows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted alone")
	}
}

// TestServe stores over HTTP, in two runs on one folder. Ctrl-C lets a running request finish.
func TestServe(t *testing.T) {
	notOnWindows(t)
	dir := t.TempDir()
	lines := 6000 / testkit.Stride(8)
	text, bad := sample(lines)
	for range 2 {
		s := serving(t, append(trucks, "-dir", dir)...)
		if status, body := s.post(t, strings.NewReader(packed(text)), true); status != 400 || !strings.Contains(body, fmt.Sprintf("dropped=%d", bad)) {
			t.Errorf("status %d, %s", status, body)
		}
		body, send := io.Pipe()
		slow := make(chan int)
		go func() {
			status, _ := s.post(t, body, false)
			slow <- status
		}()
		_, _ = io.WriteString(send, "readings,name=truck_1 late=1 ")
		s.interrupt(t)
		for s.lines.Scan() && !strings.HasPrefix(s.lines.Text(), "Stopping") {
		}
		_, _ = io.WriteString(send, fmt.Sprint(start.UnixNano()-1))
		_ = send.Close()
		if status := <-slow; status != 204 {
			t.Errorf("the request running at Ctrl-C got status %d; %s", status, s.stderr)
		}
		out, err := s.rest()
		if err != nil || !strings.Contains(out, fmt.Sprintf(" %d lines", lines+1)) || !strings.Contains(out, fmt.Sprintf(" %d refused", bad)) {
			t.Errorf("after Ctrl-C: %v, %s; %s", err, out, s.stderr)
		}
		if n := points(t, dir); n != lines+1-bad {
			t.Errorf("the folder holds %d points, want %d", n, lines+1-bad)
		}
	}
}

// TestJournal acknowledges points that are on disk, and reports points that the store refuses later.
func TestJournal(t *testing.T) {
	notOnWindows(t)
	dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	lines := 3000 / testkit.Stride(8)
	text, bad := sample(lines)
	for run := range 2 {
		s := serving(t, append(trucks, "-dir", dir, "-journal", journal)...)
		if status, body := s.post(t, strings.NewReader(text), false); status != 400 || !strings.Contains(body, fmt.Sprintf("dropped=%d", bad)) {
			t.Errorf("status %d, %s", status, body)
		}
		if status, body := s.post(t, strings.NewReader(fmt.Sprintf("readings,name=truck_0,fleet=North v=1 %d", start.UnixNano())), false); status != 204 {
			t.Errorf("status %d, %s", status, body)
		}
		s.interrupt(t)
		out, err := s.rest()
		for _, want := range []string{
			fmt.Sprintf(" %d stored", lines+1-bad), fmt.Sprintf(" %d through the journal", lines+1-bad),
			fmt.Sprintf(" %d dead letters", run+1), "tag:fleet",
		} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v, %s; want %q; %s", err, out, want, s.stderr)
			}
		}
		if n := points(t, dir); n != lines-bad {
			t.Errorf("the folder holds %d points, want %d", n, lines-bad)
		}
	}
}

// TestCtrlCTwice: a second Ctrl-C ends a program whose requests do not end.
func TestCtrlCTwice(t *testing.T) {
	notOnWindows(t)
	s := serving(t, trucks...)
	body, send := io.Pipe()
	defer send.Close()
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+v2, body)
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Token secret")
		req.Header.Set("Expect", "100-continue")
		if res, err := patient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	_, _ = io.WriteString(send, "readings,name=truck_1 late=1 ")
	begin := time.Now()
	s.interrupt(t)
	for s.lines.Scan() && !strings.HasPrefix(s.lines.Text(), "Stopping") {
	}
	s.interrupt(t)
	if _, err := s.rest(); err == nil || s.cmd.ProcessState.ExitCode() == 0 || time.Since(begin) > 20*time.Second {
		t.Errorf("after Ctrl-C twice: %v after %v", err, time.Since(begin))
	}
}

func TestExitCode(t *testing.T) {
	testkit.Plain(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	locked := t.TempDir()
	store, err := embedded.Open(t.Context(), locked)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	good := write(t, "cpu,host=a x=1 1767225600000000000\n")
	cut := write(t, packed(strings.Repeat("cpu,host=a x=1 1767225600000000000\n", 100))[:40])
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-help", 0, ""},
		{"-key cpu=host -tenant acme -file " + good, 0, ""},
		{"-key *=* -tenant acme -file " + good, 0, ""},
		{"-key cpu=host -tenant acme -keep maxage=100000d -file " + good, 0, ""},
		{"-key cpu=host -tenant acme -keep maxage=1d -file " + good, 1, "past its retention"},
		{"-key cpu=host -tenant acme -file nowhere.lp", 1, "nowhere.lp"},
		{"-key cpu=host -tenant acme -file .", 1, "folder"},
		{"-key cpu=host -tenant acme -file " + cut, 1, "unexpected EOF"},
		{"-key cpu=host -tenant acme -dir " + locked + " -file " + good, 1, "-dir"},
		{"-key cpu=host -tenant acme -cloud -file " + good, 1, "TIDEMARK_PROJECT"},
		{"-key cpu=host -token s=acme -addr " + busy.Addr().String(), 1, "-addr"},
		{"-key cpu=host -tenant acme -metrics-addr " + busy.Addr().String() + " -file " + good, 1, "-metrics-addr"},
		{"-key cpu=host -tenant acme -otlp-endpoint http://127.0.0.1:1 -file " + good, 0, "telemetry is not delivered"},
		{"extra", 2, "unexpected argument"},
		{"", 2, "no -token"},
		{"-key cpu=host", 2, "no -token"},
		{"-key cpu", 2, "measurement=tag"},
		{"-key cpu= -token s=acme", 2, "measurement=tag"},
		{"-key cpu=a,,b", 2, "empty"},
		{"-key cpu=a,a", 2, "twice"},
		{"-key cpu=*,a", 2, "last"},
		{"-key cpu=a -key cpu=b", 2, "already"},
		{"-key c/u=a", 2, "c/u"},
		{"-key cpu=host -token s", 2, "token=tenant"},
		{"-key cpu=host -token s=a/b", 2, "tenant"},
		{"-key cpu=host -token s=a -token s=b", 2, "already"},
		{"-key cpu=host -tokens nowhere", 2, "nowhere"},
		{"-key cpu=host -token s=acme -addr 8086", 2, "host:port"},
		{"-key cpu=host -token s=acme -addr :8086", 2, "-allow-remote"},
		{"-key cpu=host -token s=acme -max-body 0", 2, "-max-body"},
		{"-key cpu=host -token s=acme -max-requests 0", 2, "-max-requests"},
		{"-key cpu=host -token s=acme -timeout 0s", 2, "-timeout"},
		{"-key cpu=host -token s=acme -drain -1s", 2, "-drain"},
		{"-key cpu=host -token s=acme -tenant acme", 2, "-tenant"},
		{"-key cpu=host -token s=acme -max-future -1s", 2, "-max-future"},
		{"-key cpu=host -token s=acme -limits nowhere", 1, "-limits"},
		{"-key cpu=host -tenant acme -file x -token-in-query", 2, "exclude"},
		{"-key cpu=host -token s=acme -cloud -dir x", 2, "-cloud and -dir"},
		{"-key cpu=host -token s=acme -dir=", 2, "-dir is empty"},
		{"-key cpu=host -token s=acme -journal=", 2, "-journal"},
		{"-key cpu=host -token s=acme -keep soon", 2, "-keep"},
		{"-key cpu=host -token s=acme -keep maxversions=1", 2, "-keep"},
		{"-key cpu=host -file x", 2, "-tenant"},
		{"-key cpu=host -tenant a/b -file x", 2, "-tenant"},
		{"-key cpu=host -tenant acme -file x -precision d", 2, "-precision"},
		{"-key cpu=host -tenant acme -file x -token s=acme", 2, "exclude"},
		{"-key cpu=host -file= -tenant acme", 2, "-file"},
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
			if _, err := os.Stat(filepath.Join(cmd.Dir, "tidemark-data")); err == nil && slices.Contains([]string{"nowhere.lp", "folder"}, test.stderr) {
				t.Error("there is a store, with a dataset whose key has to stay")
			}
		})
	}
}

// TestTokenFile reads tokens that neither the list of processes nor the file shows.
func TestTokenFile(t *testing.T) {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("se=cret")))
	o, err := parse([]string{"-key", "cpu=host", "-tokens", write(t, "# who may write\n\n"+digest+"=acme\n")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := o.Tokens.Tenant("se=cret"); !ok || id != acme {
		t.Errorf("the token in the file belongs to %v, %v", id, ok)
	}
	for _, bad := range []string{digest, "secret", "secret=acme"} {
		_, err = parse([]string{"-key", "cpu=host", "-tokens", write(t, digest+"=acme\n"+bad+"\n")}, io.Discard)
		if _, ok := errors.AsType[app.UsageError](err); !ok || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("the line %q: %v, want a UsageError that names the line and not the token", bad, err)
		}
	}
}

// TestCloud runs the program against a server with Bigtable's protocol, through the official client.
func TestCloud(t *testing.T) {
	server, err := bttest.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	text, bad := sample(200)
	for range 2 {
		cmd, stderr := programtest.New(t, append(trucks, "-cloud", "-tenant", "acme", "-file", write(t, text))...)
		cmd.Env = append(cmd.Env, "BIGTABLE_EMULATOR_HOST="+server.Addr,
			"TIDEMARK_PROJECT=p", "TIDEMARK_INSTANCE=i", "TIDEMARK_TABLE=t")
		out, _ := cmd.Output()
		if !strings.Contains(string(out), fmt.Sprintf(" %d stored", 200-bad)) {
			t.Errorf("%s; %s", out, stderr)
		}
	}
}

// TestTrial stores a large file with -file and over HTTP, and compares the results. It runs with -trial.
func TestTrial(t *testing.T) {
	if *trial == "" {
		t.Skip("runs with -trial FILE")
	}
	packed, err := os.ReadFile(*trial)
	if err != nil {
		t.Fatal(err)
	}
	byFile, overHTTP := t.TempDir(), t.TempDir()
	cmd, stderr := programtest.New(t, append(trucks, "-dir", byFile, "-tenant", "acme", "-file", *trial)...)
	out, _ := cmd.Output()
	t.Logf("by file: %s%.200s", out, stderr)
	s := serving(t, append(trucks, "-dir", overHTTP)...)
	begin := time.Now()
	status, body := s.post(t, bytes.NewReader(packed), true)
	t.Logf("over HTTP in %v: %d %.200s", time.Since(begin), status, body)
	s.interrupt(t)
	rest, err := s.rest()
	t.Logf("%v\n%s", err, rest)
	if a, b := sums(string(out)), sums(rest); a != b || a == "" {
		t.Errorf("by file:\n%s\nover HTTP:\n%s", a, b)
	}
}

// sums returns the part of the output with the counts of lines.
func sums(out string) string {
	return strings.Join(regexp.MustCompile(`(?m)^ +\d+ .*$`).FindAllString(out, -1), "\n")
}
