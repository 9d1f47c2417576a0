package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme, other = tenant.MustParse("acme"), tenant.MustParse("other")
	schema      = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
)

// page is a browser on a console of a store.
type page struct {
	t       *testing.T
	console *Console
	store   *tsdb.Store
	conn    *tsdbtest.Conn
	table   *bigtable.Table
	url     string
	client  *http.Client
	log     *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tokens are the tenants of "secret-of-" and their name.
func tokens(token string) (tenant.ID, bool) {
	name, ok := strings.CutPrefix(token, "secret-of-")
	id, err := tenant.Parse(name)
	return id, ok && err == nil
}

func newPage(t *testing.T, change func(*Config)) *page {
	t.Helper()
	return newPageOn(t, schema, change)
}

// newPageOn returns a page on another dataset.
func newPageOn(t *testing.T, of tsdb.Dataset, change func(*Config)) *page {
	t.Helper()
	key := []byte("a key of 32 bytes for the cursor")
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true, CursorKeys: [][]byte{key}}}, of)
	p := &page{t: t, store: store, conn: conn, table: table, log: &syncBuffer{}}
	c := Config{Store: store, Tenant: tokens, Log: slog.New(slog.NewTextHandler(p.log, nil))}
	if change != nil {
		change(&c)
	}
	var err error
	if p.console, err = New(c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.console)
	p.url = server.URL
	p.client = p.browser()
	t.Cleanup(func() {
		_ = p.console.Close()
		p.client.CloseIdleConnections()
		server.Close()
	})
	return p
}

// browser returns a client with cookies of its own that follows no redirect.
func (p *page) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// login logs the client in and returns the address that it is sent to.
func (p *page) login(token string) string {
	p.t.Helper()
	response, err := p.client.PostForm(p.url+"/login", url.Values{"token": {token}})
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		p.t.Fatalf("the login answered %s", response.Status)
	}
	return response.Header.Get("Location")
}

// get returns the status and the body of an address.
func (p *page) get(address string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+address, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// read reads the JSON of an address into a value.
func (p *page) read(address string, into any) {
	p.t.Helper()
	status, body := p.get(address)
	if status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", address, status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		p.t.Fatalf("%s: %v in %s", address, err, body)
	}
}

// TestConfigIsChecked: a console without a store or tokens would fail at its first request.
func TestConfigIsChecked(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	for _, c := range []Config{{Tenant: tokens}, {Store: store}, {Store: store, Tenant: tokens, Streams: -1}} {
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "web: Config.") {
			t.Errorf("%+v: %v, want an error that names the field", c, err)
		}
	}
}

// TestPagesLoadNothingElse: the policy forbids inline scripts and other hosts, and no asset needs them.
func TestPagesLoadNothingElse(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	for _, address := range []string{"/fleet", "/login", "/assets/console.js", "/assets/nothing", "/api/session"} {
		response, err := p.client.Get(p.url + address)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		h := response.Header
		if got := h.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self';") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: policy %q", address, got)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may guess its type", address)
		}
	}
	for name, f := range files {
		text := string(f.body)
		if strings.HasSuffix(name, ".html") && (strings.Contains(text, "style=") || strings.Contains(text, "<style") || strings.Count(text, "<script") != strings.Count(text, "<script type=\"module\" src=\"/assets/")) {
			t.Errorf("%s has an inline script or style, which the policy forbids", name)
		}
		if lines := strings.Count(text, "\n"); lines > 500 && !strings.HasPrefix(name, "vendor/") {
			t.Errorf("%s has %d lines; a file holds one idea", name, lines)
		}
		if strings.HasSuffix(name, ".js") && !strings.HasPrefix(name, "vendor/") && (strings.Contains(text, "innerHTML") || strings.Contains(text, "http://") || strings.Contains(text, "https://")) {
			t.Errorf("%s sets HTML, or names another host", name)
		}
	}
}

// TestAssetsAreCached: a browser that has an asset gets 304 until it changes.
func TestAssetsAreCached(t *testing.T) {
	p := newPage(t, nil)
	r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, p.url+"/assets/console.js", http.NoBody)
	r.Header.Set("If-None-Match", files["console.js"].etag)
	response, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotModified {
		t.Errorf("got %s, want 304", response.Status)
	}
}

// TestWrongAddresses: a browser gets a page that leads back, and a program a problem. Browsers find an icon where they
// look for one.
func TestWrongAddresses(t *testing.T) {
	p := newPage(t, nil)
	for _, at := range []struct {
		path, accept, kind string
		status             int
	}{
		{"/nope", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8", http.StatusNotFound},
		{"/nope", "application/json", "application/problem+json", http.StatusNotFound},
		{"/favicon.ico", "image/*", "image/svg+xml", http.StatusOK},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at.path, http.NoBody)
		r.Header.Set("Accept", at.accept)
		p.console.ServeHTTP(w, r)
		if w.Code != at.status || w.Header().Get("Content-Type") != at.kind || at.kind == "text/html; charset=utf-8" && !strings.Contains(w.Body.String(), `href="/fleet"`) {
			t.Errorf("%s for %s: %d, %s, %.100s; want %d, %s", at.path, at.accept, w.Code, w.Header().Get("Content-Type"), w.Body, at.status, at.kind)
		}
	}
}
