package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFlags: mistakes on the command line name the flag and what is allowed, before anything is opened.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "-token"},
		{"-token secret", "token=tenant"},
		{"-token s=acme -addr 0.0.0.0:1", "-allow-remote"},
		{"-token s=acme -addr nowhere", "host:port"},
		{"-demo -addr 0.0.0.0:1 -allow-remote", "-demo"},
		{"-demo -cloud", "-demo"},
		{"-token s=acme -cloud -dir x", "exclude"},
		{"-token s=acme -tls-cert x", "-tls-key"},
		{"-token s=acme -max-requests 0", "1 to 10000"},
		{"-token s=acme -timeout 0s", "above 0"},
		{"-token s=acme more", "more"},
		{"-demo -token demo=acme", "already in use"},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

// TestProgram: the program prints its address, serves the pages only under the name of this machine, and ends with its context.
func TestProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-dir", t.TempDir(), "-addr", "127.0.0.1:0", "-token", "secret=acme"}, write, io.Discard)
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
	response, err := client.PostForm(at+"/login", url.Values{"token": {"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusSeeOther || len(response.Cookies()) != 1 {
		t.Errorf("the login: %s with %d cookies", response.Status, len(response.Cookies()))
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
