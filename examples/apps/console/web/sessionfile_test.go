package web

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSessionsSurviveARestart: users stay logged in when the program starts again with the same tokens. Those who
// logged out do not, nobody does when a token was withdrawn, and a damaged file costs only the sessions.
func TestSessionsSurviveARestart(t *testing.T) {
	file := SessionFile{Name: filepath.Join(t.TempDir(), "sessions"), Tokens: "one"}
	p := newPage(t, func(c *Config) { c.Sessions = file })
	at, _ := url.Parse(p.url)
	carry := func(cookies []*http.Cookie) { // to the program that is running, which has another port and so another name for them
		for _, c := range cookies {
			c.Name = "tidemark-" + at.Port()
		}
		p.client.Jar.SetCookies(at, cookies)
	}
	restart := func(tokens string) {
		t.Helper()
		kept := p.client.Jar.Cookies(at)
		q := newPage(t, func(c *Config) { c.Sessions = SessionFile{file.Name, tokens} })
		next, _ := url.Parse(q.url)
		p, at = q, next
		carry(kept)
	}
	status := func() int {
		t.Helper()
		status, _ := p.get("/api/acme/datasets")
		return status
	}
	p.login("secret-of-acme")
	cookie := p.client.Jar.Cookies(at)
	if restart("one"); status() != http.StatusOK {
		t.Errorf("after a restart the session gets %d", status())
	}
	text, err := os.ReadFile(file.Name)
	if err != nil || strings.Contains(string(text), cookie[0].Value) || strings.Contains(string(text), "secret") {
		t.Errorf("the file has the session's ID or the token: %s %v", text, err)
	}
	if restart("two"); status() != http.StatusUnauthorized {
		t.Errorf("after a token was withdrawn, the session gets %d", status())
	}
	p.login("secret-of-acme")
	cookie = p.client.Jar.Cookies(at)
	response, err := p.client.Post(p.url+"/logout", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	restart("two")
	if carry(cookie); status() != http.StatusUnauthorized {
		t.Errorf("after a log-out and a restart, the session gets %d", status())
	}
	if err := os.WriteFile(file.Name, []byte(`{"sessions": [{"digest": "12"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	restart("")
	if p.login("secret-of-acme"); status() != http.StatusOK || !strings.Contains(p.log.String(), "damaged") {
		t.Errorf("with a damaged file a new session gets %d; the log has %s", status(), p.log)
	}
	if info, err := os.Stat(file.Name); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the file: %v, %v", info.Mode(), err)
	}
}

// TestKeptSessionsEnd: a restart does not lengthen a session, and streams of a session that was kept end with it.
func TestKeptSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := SessionFile{Name: filepath.Join(t.TempDir(), "sessions")}
		before, _ := newSessions(t.Context(), file, time.Now())
		id, err := before.begin("", acme, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(sessionTime - time.Minute)
		s, err := newSessions(t.Context(), file, time.Now())
		one := s.find(id, time.Now())
		if err != nil || one == nil || !one.may(acme) || one.may(other) {
			t.Fatalf("after a restart the session is %+v, %v", one, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.find(id, time.Now()) != nil || one.ctx.Err() == nil {
			t.Errorf("the session is there after %v", sessionTime)
		}
		if s, _ := newSessions(t.Context(), file, time.Now()); len(s.byID) != 0 {
			t.Errorf("%d sessions that are over are kept", len(s.byID))
		}
	})
}
