package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// TestCookie: no script can read the cookie, no other site can send it, and by HTTPS no plain request carries it.
func TestCookie(t *testing.T) {
	p := newPage(t, nil)
	for name, change := range map[string]func(*http.Request){
		"tidemark":        func(*http.Request) {},
		"tidemark-8091":   func(r *http.Request) { r.Host = "localhost:8091" },
		"tidemark-8092":   func(r *http.Request) { r.Host = "[::1]:8092" },
		"__Host-tidemark": func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(url.Values{"token": {"secret-of-acme"}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		p.console.ServeHTTP(w, r)
		cookies := w.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%s: %d cookies, status %d", name, len(cookies), w.Code)
		}
		c := cookies[0]
		if c.Name != name || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != strings.HasPrefix(name, "__Host") || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %s; want %s, HttpOnly and SameSite=Strict", c, name)
		}
		if strings.Contains(c.Value, "secret") {
			t.Errorf("the cookie has the token: %s", c.Value)
		}
	}
}

// TestLoginAndOut: a token opens the pages, log-out ends the session for everybody who has the cookie.
func TestLoginAndOut(t *testing.T) {
	p := newPage(t, nil)
	if status, _ := p.get("/fleet?tenant=acme"); status != http.StatusFound {
		t.Errorf("without a session the page answers %d, want a redirect to the login", status)
	}
	if got := p.login("wrong"); got != "/login?why=token" {
		t.Errorf("a wrong token leads to %s", got)
	}
	if got := p.login("secret-of-acme"); got != "/fleet?tenant=acme" {
		t.Errorf("a token leads to %s", got)
	}
	before := p.client.Jar
	if status, _ := p.get("/api/acme/datasets"); status != http.StatusOK {
		t.Errorf("logged in: %d", status)
	}
	stolen := p.browser()
	at, _ := url.Parse(p.url)
	stolen.Jar.SetCookies(at, before.Cookies(at))
	response, err := p.client.Post(p.url+"/logout", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	p.client = stolen
	if status, body := p.get("/api/acme/datasets"); status != http.StatusUnauthorized || !strings.Contains(body, "not logged in") {
		t.Errorf("after the log-out: %d %s", status, body)
	}
}

// TestLoginLeadsToPagesOnly: a link to the login cannot send a user to another site.
func TestLoginLeadsToPagesOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"/fleet": true, "/entity?tenant=acme&entity=a%2Fb": true,
		"": false, "/": false, "//evil.example/fleet": false, "https://evil.example/fleet": false, "/\\evil.example": false, "/fleet/../login": false,
		"\t//evil.example": false, "/logout": false, "javascript:alert(1)": false, "/assets/x": false, "/%66leet": false,
	} {
		if got := local(address); got != want {
			t.Errorf("%q: %t, want %t", address, got, want)
		}
	}
}

// TestOtherSitesCannotPost: a form on another site neither logs a user in nor out.
func TestOtherSitesCannotPost(t *testing.T) {
	p := newPage(t, nil)
	for _, path := range []string{"/login", "/logout"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, strings.NewReader("token=secret-of-acme"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		response, err := p.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden || len(response.Cookies()) > 0 {
			t.Errorf("%s: %s with %d cookies, want 403", path, response.Status, len(response.Cookies()))
		}
	}
}

// TestAttemptsAreBounded: after ten wrong tokens an address waits for the rest of the minute, also with a right one.
// Others do not.
func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts()
		for range attemptsPerMinute {
			if wait := a.may("192.0.2.1:1000", time.Now()); wait != 0 {
				t.Fatalf("waits %v too early", wait)
			}
			a.wrong("192.0.2.1:1001")
		}
		if wait := a.may("192.0.2.1:1002", time.Now()); wait != time.Minute {
			t.Errorf("waits %v, want a minute", wait)
		}
		if wait := a.may("192.0.2.2:1", time.Now()); wait != 0 {
			t.Errorf("another address waits %v", wait)
		}
		time.Sleep(time.Minute)
		if wait := a.may("192.0.2.1:1003", time.Now()); wait != 0 {
			t.Errorf("a minute later it waits %v", wait)
		}
		for i := range allAttempts {
			a.wrong(fmt.Sprintf("[2001:db8:0:%x::1]:1", i))
		}
		if a.may("198.51.100.7:1", time.Now()) == 0 || len(a.by) > allAttempts {
			t.Errorf("%d wrong tokens of all addresses are not bounded", allAttempts)
		}
		if network("[2001:db8::1]:1") != network("[2001:db8::2]:1") {
			t.Error("each address of one network of IPv6 may try as often as the network")
		}
	})
	p := newPage(t, nil)
	for range attemptsPerMinute {
		p.login("wrong")
	}
	if got := p.login("secret-of-acme"); got != "/login?why=often" {
		t.Errorf("the login leads to %s, want to the reason", got)
	}
}

// TestSessionsAreBounded: sessions end after their time, a tenant's oldest one goes when it has too many, and no other
// tenant's does.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSessions(t.Context(), SessionFile{}, time.Now())
		begin := func(id tenant.ID) string {
			text, err := s.begin("", id, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		others := begin(other)
		first := begin(acme)
		ended := s.find(first, time.Now()).ctx
		for range maxOfTenant {
			time.Sleep(time.Millisecond)
			begin(acme)
		}
		if s.find(first, time.Now()) != nil || ended.Err() == nil {
			t.Error("the oldest session of a tenant is still there, or its streams are")
		}
		if s.find(others, time.Now()) == nil {
			t.Error("one tenant's sessions have ended another's")
		}
		if n := len(s.byID); n != maxOfTenant+1 {
			t.Errorf("%d sessions, want %d", n, maxOfTenant+1)
		}
		streams := s.find(others, time.Now()).ctx
		time.Sleep(sessionTime)
		synctest.Wait()
		if s.find(others, time.Now()) != nil || streams.Err() == nil {
			t.Errorf("a session is still there after %v", sessionTime)
		}
		begin(acme)
		if n := len(s.byID); n != 1 {
			t.Errorf("%d sessions in memory, want those that are over to be gone", n)
		}
		for key := range s.byID {
			s.drop(key)
		}
	})
}

// TestSecondToken: a user with two tokens sees both tenants in one session, with a new cookie.
func TestSecondToken(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	at, _ := url.Parse(p.url)
	first := p.client.Jar.Cookies(at)[0].Value
	p.login("secret-of-other")
	var session struct{ Tenants []string }
	p.read("/api/session", &session)
	if fmt.Sprint(session.Tenants) != "[other acme]" || p.client.Jar.Cookies(at)[0].Value == first {
		t.Errorf("tenants %v, want both, in a new session", session.Tenants)
	}
	if p.console.sessions.find(first, time.Now()) != nil {
		t.Error("the session before it still works")
	}
}
