package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	fence   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	listens = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)
)

// TestReadme starts the program as the README does, and runs the commands that come after it. No answer may be an
// error.
func TestReadme(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands need %s: %v", program, err)
		}
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const start = "GOWORK=off go -C examples/apps/promapi run . "
	script, command := "", ""
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(m[1]) {
			if flags, ok := strings.CutPrefix(line, start); ok {
				command, _, _ = strings.Cut(flags, " #")
			} else {
				script += line
			}
		}
	}
	if command == "" || !strings.Contains(script, "curl") {
		t.Fatal("the README has no commands")
	}
	args := strings.Fields(strings.Replace(command, "../../../tidemark-data", filepath.Join(t.TempDir(), "data"), 1))
	addr, stop := startProgram(t, append(args, "-addr", "127.0.0.1:0")...)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(script, "127.0.0.1:9099", addr))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), `"status":"error"`) || !strings.Contains(string(out), `"result":[4,"2"]`) || !strings.Contains(string(out), `{"fleet":"West"}`) {
		t.Errorf("the commands of the README: %v\n%s", err, out)
	}
	stop()
}

// startProgram runs the program until stop, and returns its address.
func startProgram(t *testing.T, args ...string) (addr string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, in, io.Discard)
		in.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewScanner(out)
	for addr == "" && lines.Scan() {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if addr == "" {
		cancel()
		t.Fatalf("the program ends before it listens: %v", <-ended)
	}
	return addr, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the program fails after Ctrl-C: %v", err)
		}
	}
}

// TestMetricsOfTheProgram: -metrics-addr serves what the program does on the store.
func TestMetricsOfTheProgram(t *testing.T) {
	addr, stop := startProgram(t, "-dir", filepath.Join(t.TempDir(), "data"), "-token", "secret=acme", "-addr", "127.0.0.1:0", "-metrics-addr", "127.0.0.1:0")
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.Tick(10 * time.Millisecond); ; { // the program reads its catalogue in the background
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil) // the address that is printed first
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v: %.500s", res.Status, err, text)
		}
		if strings.Contains(string(text), `db_operation_name="Datasets"`) {
			return
		}
		select {
		case <-tick:
		case <-ctx.Done():
			t.Fatalf("the operations on the store are never shown: %.500s", text)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "-token"},
		{"-token x", "token=tenant"},
		{"-token s=acme -addr 0.0.0.0:9099", "-allow-remote"},
		{"-token s=acme -addr nowhere", "host:port"},
		{"-token s=acme -keep 1500ms", "whole seconds"},
		{"-token s=acme -max-samples 0", "-max-samples"},
		{"-token s=acme -timeout 0", "-timeout"},
		{"-token s=acme -slow -1s", "-slow"},
		{"-token s=acme -cloud -dir x", "exclude"},
		{"-token s=acme -ensure", "-cloud"},
		{"-token s=acme more", "more"},
		{"-tokens nowhere", "-tokens"},
		{"-nothing", "-nothing"},
	} {
		if _, err := parse(strings.Fields(tt.args), io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error about %s", tt.args, err, tt.want)
		}
	}
	if _, err := parse([]string{"-behind-proxy", "-journal", "x"}, io.Discard); err != nil {
		t.Error(err)
	}
}
