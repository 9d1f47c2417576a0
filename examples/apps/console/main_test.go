package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFlags: mistakes on the command line name the flag and what is allowed, before anything is opened.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "-demo"},
		{"-token secret", "token=tenant"},
		{"-token s=acme -addr 0.0.0.0:1", "-allow-remote"},
		{"-token s=acme -addr nowhere", "host:port"},
		{"-demo -addr 0.0.0.0:1 -allow-remote", "-demo"},
		{"-demo -cloud", "-demo"},
		{"-token s=acme -cloud -dir x", "exclude"},
		{"-token s=acme -tls-cert x", "-tls-key"},
		{"-token s=acme -tls-cert nofile -tls-key nofile", "-tls-cert and -tls-key: open nofile"},
		{"-token s=acme -max-requests 0", "1 to 10000"},
		{"-token s=acme -timeout 0s", "above 0"},
		{"-token s=acme more", "more"},
		{"-demo -token demo=acme", "already in use"},
		{"-operator-token=", "-operator-token: want a token"},
		{"-operator-token sha256:12", "64 hex digits"},
		{"-operator-token s -operator-token s", "already in use"},
		{"-operator-token s -token s=acme", "-operator-token: this token is also acme's"},
		{"-demo -operator-token sha256:" + digest("demo"), "-operator-token: this token is also demo's"},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

func digest(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

// TestEarlyEnd: Ctrl-C while the demo's data is stored ends the program without an error.
func TestEarlyEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := writer(func(p []byte) (int, error) {
		if strings.HasPrefix(string(p), "Store") {
			cancel()
		}
		return len(p), nil
	})
	if err := run(ctx, []string{"-demo", "-dir", t.TempDir(), "-addr", "127.0.0.1:0"}, out, io.Discard); err != nil {
		t.Errorf("the program ends with %v", err)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestFullDisk: when the folder takes no more writes, the demo says so once and ends. It would repeat the error each
// second.
func TestFullDisk(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true}}, demoSchema)
	conn.Inject(tsdbtest.Fail(codes.DataLoss).On(tsdbtest.MutateRows))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var log bytes.Buffer
	drive(ctx, store, slog.New(slog.NewTextHandler(&log, nil)))
	if text := log.String(); ctx.Err() != nil || strings.Count(text, "\n") != 1 || !strings.Contains(text, "start the program again") {
		t.Errorf("the demo ended with %v, after\n%s", ctx.Err(), text)
	}
}

// TestProgram: the program prints its address, serves the pages only under the name of this machine, and ends with its
// context.
func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{
			"-dir", t.TempDir(), "-addr", "127.0.0.1:0", "-token", "secret=acme", "-operator-token", "own", "-operator-token", "sha256:" + digest("second"),
		}, write, io.Discard)
		_ = write.Close()
		ended <- err
	}()
	in, at := bufio.NewScanner(read), ""
	for at == "" && in.Scan() {
		if _, rest, ok := strings.Cut(in.Text(), "http://"); ok {
			at, _, _ = strings.Cut("http://"+rest, ";")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for token, wantTable := range map[string]int{"secret": http.StatusForbidden, "own": http.StatusOK, "second": http.StatusOK} {
		response, err := client.PostForm(at+"/login", url.Values{"token": {token}})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusSeeOther || len(response.Cookies()) != 1 {
			t.Fatalf("the login: %s with %d cookies", response.Status, len(response.Cookies()))
		}
		for address, want := range map[string]int{"/api/table/health": wantTable, "/api/table/keys": wantTable, "/api/acme/health": http.StatusOK} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, at+address, http.NoBody)
			r.AddCookie(response.Cookies()[0])
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s with the token %s: %s, want %d", address, token, answer.Status, want)
			}
		}
	}
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/readyz", http.NoBody)
		r.Host = host
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %q: %s, want %d", host, response.Status, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the program ends with %v", err)
	}
}
