package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// restarted is a console that can be stopped, started again at its address, and made to hang as a process does that got
// SIGSTOP.
type restarted struct {
	*pages
	sessions web.SessionFile
	server   *httptest.Server
	handler  struct {
		sync.RWMutex
		console *web.Console
	}
	hang sync.RWMutex // held for writing while the server hangs
}

func serveRestarted(t *testing.T, ctx context.Context) *restarted {
	t.Helper()
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(t.Context(), vans); err != nil {
		t.Fatal(err)
	}
	r := &restarted{pages: &pages{store: store, seen: &watch{}}, sessions: web.SessionFile{Name: filepath.Join(t.TempDir(), "sessions")}}
	r.restart(t)
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.hang.RLock()
		r.hang.RUnlock() //nolint:staticcheck // waits until the server goes on
		r.handler.RLock()
		console := r.handler.console
		r.handler.RUnlock()
		console.ServeHTTP(hanging{w, &r.hang}, q)
	}))
	r.url = r.server.URL
	t.Cleanup(func() {
		_ = r.handler.console.Close()
		r.server.CloseClientConnections()
		r.server.Close()
	})
	if err := chromedp.Run(ctx, watched(ctx, r.seen)); err != nil {
		t.Fatal(err)
	}
	return r
}

// restart replaces the console, as a new process does.
func (r *restarted) restart(t *testing.T) {
	t.Helper()
	console, err := web.New(web.Config{
		Store: r.store, Tenant: func(token string) (tenant.ID, bool) { return mine, token == "token-of-acme" }, Sessions: r.sessions,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.handler.Lock()
	before := r.handler.console
	r.handler.console = console
	r.handler.Unlock()
	if before != nil {
		_ = before.Close()
		r.server.CloseClientConnections()
	}
}

// hanging is a response whose writes wait while the server hangs.
type hanging struct {
	http.ResponseWriter
	hang *sync.RWMutex
}

func (h hanging) Write(b []byte) (int, error) {
	h.hang.RLock()
	defer h.hang.RUnlock()
	return h.ResponseWriter.Write(b)
}

func (h hanging) Unwrap() http.ResponseWriter { return h.ResponseWriter }

const (
	pillIs = `document.querySelector(".pill")?.className === "pill `
	logout = `fetch("/logout", { method: "POST" }).then(() => true)`
	login  = `fetch("/login", { method: "POST", body: new URLSearchParams({ token: "token-of-acme" }) }).then(() => true)`
	banner = `document.querySelector(".banner:not(:empty)") !== null`
)

// TestPillTellsTheTruth: the pill says Live only while the stream brings news: not after the session's end, also if the
// user then changes the time, and not while the server hangs. After a login in another tab, and when the server goes
// on, it says Live again.
func TestPillTellsTheTruth(t *testing.T) {
	ctx := another(t)
	c := serveRestarted(t, ctx)
	for i := range 30 {
		c.put(t, mine, "v", time.Now().Add(time.Duration(i-30)*time.Second), van{float64(i), "moving"})
	}
	step(t, ctx, "the chart", loginWith(c.url, "token-of-acme"), chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv"), until(pillIs+`live"`))
	step(t, ctx, "the end of the session", chromedp.Evaluate(logout, nil, awaited), until(pillIs+`over"`), until(banner))
	var text, pill string
	step(t, ctx, "another time", press("-"), until(`location.search.includes("range=6h")`), chromedp.Evaluate(drawn, nil, awaited), chromedp.Text(".banner", &text), chromedp.Text(".pill", &pill))
	if pill != "Not live" || !strings.Contains(text, "The session is over") {
		t.Errorf("without a session the page says %q and %q", pill, text)
	}
	var address string
	step(t, ctx, "the link", chromedp.Click(".banner a"), until(`location.pathname === "/login" && document.readyState === "complete"`),
		chromedp.Evaluate(`document.querySelector("#token").value = "token-of-acme"; document.querySelector("#token").form.requestSubmit()`, nil), until(pillIs+`live"`), chromedp.Location(&address))
	if !strings.Contains(address, "/entity?") || !strings.Contains(address, "range=6h") {
		t.Errorf("the login of the banner leads to %s, want back to the page", address)
	}
	step(t, ctx, "a login in another tab", chromedp.Evaluate(logout, nil, awaited), until(banner), chromedp.Evaluate(login, nil, awaited), until(pillIs+`live" && !`+banner))

	c.hang.Lock()
	began := time.Now()
	err := chromedp.Run(ctx, until(pillIs+`waiting"`))
	c.hang.Unlock()
	if took := time.Since(began); err != nil || took > 25*time.Second {
		t.Errorf("a server that hangs is live for %v: %v", took, err)
	}
	step(t, ctx, "the server goes on", until(pillIs+`live"`))
}

// TestRestart: a page that is open when the program restarts goes on, without a login. A session that the user ended
// stays over.
func TestRestart(t *testing.T) {
	ctx := browser(t)
	c := serveRestarted(t, ctx)
	c.put(t, mine, "v", time.Now(), van{1, "moving"})
	step(t, ctx, "the fleet", loginWith(c.url, "token-of-acme"), until(pillIs+`live"`))
	c.restart(t)
	step(t, ctx, "the restart", until(`document.querySelector(".pill.live") === null`), until(pillIs+`live"`))
	c.put(t, mine, "v", time.Now(), van{4711, "moving"})
	var login bool
	step(t, ctx, "a new point", until(`document.querySelector(".grid").textContent.includes("4711")`), chromedp.Evaluate(banner, &login))
	if login {
		t.Error("after a restart the page asks for a login")
	}
	var status int
	step(t, ctx, "the end of the session", chromedp.Evaluate(logout, nil, awaited))
	c.restart(t)
	step(t, ctx, "the session", chromedp.Evaluate(`fetch("/api/acme/datasets").then((r) => r.status)`, &status, awaited))
	if status != http.StatusUnauthorized {
		t.Errorf("after a restart, a session that was ended gets %d", status)
	}
}
