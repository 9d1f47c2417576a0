package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
)

// installed returns the path of a program, or skips the test.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: %s is not installed (on Debian and Ubuntu: apt-get install prometheus)", program)
	}
	return path
}

// TestPromtool asks with the command line tool of Prometheus.
func TestPromtool(t *testing.T) {
	promtool := installed(t, "promtool")
	addr, stop := startProgram(t, "-dir", filepath.Join(t.TempDir(), "data"), "-token", "secret=acme", "-keep", "0", "-addr", "127.0.0.1:0")
	defer stop()
	url := "http://acme:secret@" + addr
	storeOverHTTP(t, url)
	for _, tt := range []struct{ args, want string }{
		{"query instant " + url + " temp --time=1767225600", `temp{site="a"} => 21.5 @[1767225600]`},
		{"query range --start=1767225600 --end=1767225630 --step=15s " + url + " temp", "22.5 @[1767225630]"},
		{"query series --match=temp " + url, `{__name__="temp", site="a"}`},
		{"query labels " + url + " site", "a"},
	} {
		out, err := exec.CommandContext(t.Context(), promtool, strings.Fields(tt.args)...).CombinedOutput()
		if err != nil || !strings.Contains(strings.ToLower(string(out)), strings.ToLower(tt.want)) {
			t.Errorf("promtool %s: %v\n%s\nwant %s", tt.args, err, out, tt.want)
		}
	}
}

func storeOverHTTP(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, one(line("temp", []string{"site", "a"}, 21.5, 22, 22.5)))))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Fatal(res.Status)
	}
}

// TestPrometheus lets a Prometheus scrape itself and send all that it has scraped. What it answers from its own
// storage, and what it reads back from here, has to be the same.
func TestPrometheus(t *testing.T) {
	prometheus, promtool := installed(t, "prometheus"), installed(t, "promtool")
	addr, stop := startProgram(t, "-dir", filepath.Join(t.TempDir(), "data"), "-token", "secret=acme", "-addr", "127.0.0.1:0")
	defer stop()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := free.Addr().String()
	_ = free.Close()
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, external_labels: {from: test}}
scrape_configs:
  - job_name: self
    static_configs: [{targets: ["%s"]}]
remote_write:
  - url: http://%s/api/v1/write
    basic_auth: {username: acme, password: secret}
    queue_config: {batch_send_deadline: 200ms}
remote_read:
  - url: http://%s/api/v1/read
    basic_auth: {username: acme, password: secret}
    read_recent: true
`, own, addr, addr)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+own)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var logged log
	cmd.Stdout, cmd.Stderr = &logged, &logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	ask := func(url, query string) string {
		out, _ := exec.CommandContext(t.Context(), promtool, "query", "instant", url, query).CombinedOutput()
		return string(out)
	}
	here := "http://acme:secret@" + addr
	for deadline := time.Now().Add(time.Minute); ; { // the last of three scrapes has arrived
		if got := ask(here, `count_over_time(up{job="self"}[1m]) >= 3`); strings.Contains(got, `from="test"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing has arrived within a minute: %s", logged.String())
		}
	}
	// Both know the same of this instant, as soon as all before it has been sent.
	at := fmt.Sprint(float64(time.Now().UnixMilli()) / 1000)
	value := func(s string) string { before, _, _ := strings.Cut(s, " @"); return before }
	for _, query := range []string{"count(last_over_time({job='self'}[1m] @ " + at + "))", "sum(last_over_time(prometheus_tsdb_head_samples_appended_total[1m] @ " + at + "))"} {
		for deadline := time.Now().Add(time.Minute); ; {
			theirs, ours := ask("http://"+own, query), ask(here, query)
			if strings.HasPrefix(ours, "{} =>") && value(theirs) == value(ours) {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: after a minute Prometheus answers %s and this program %s", query, theirs, ours)
				break
			}
		}
	}
	series := ask(here, `count({__name__=~".+"})`)
	t.Logf("Prometheus has sent %s", series)
	if strings.Contains(logged.String(), "level=error") {
		t.Errorf("Prometheus logs %s", logged.String())
	}
}
