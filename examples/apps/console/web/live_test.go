package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// stream opens a live stream. next returns its next event other than comments; end closes it.
func (p *page) stream(address string) (next func() (name, data string), end func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+address, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("%s: %s", address, response.Status)
	}
	in := bufio.NewScanner(response.Body)
	next = func() (name, data string) {
		for in.Scan() {
			if text, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				name = text
			}
			if text, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				return name, text
			}
		}
		return "end", fmt.Sprint(in.Err())
	}
	return next, func() { cancel(); _ = response.Body.Close() }
}

// TestLive: a point that is stored comes through the stream of its fleet and of its entity, with the fields that were
// asked for.
func TestLive(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	p.put(acme, roof, time.Now().Add(-time.Hour), map[string]any{"n": 0})
	for _, address := range []string{address("live", "field", "n"), address("live", "field", "n", "entity", "berlin/roof-7")} {
		next, end := p.stream(address)
		if name, data := next(); name != "open" {
			t.Fatalf("first comes %s %s", name, data)
		}
		p.put(other, roof, time.Now(), map[string]any{"n": "of another tenant"})
		p.put(acme, roof, time.Now(), map[string]any{"n": 42, "m": 1})
		if name, data := next(); name != "points" || !strings.Contains(data, `"v":[42]`) || strings.Contains(data, "another") {
			t.Errorf("%s: then comes %s %s", address, name, data)
		}
		end()
	}
}

// TestStreamsEndWithTheSession: who logs out, or whose session is over, gets no more points; a stopping console says
// so.
func TestStreamsEndWithTheSession(t *testing.T) {
	p := newPage(t, nil)
	p.put(acme, roof, noon, map[string]any{"n": 0})
	p.login("secret-of-acme")
	next, end := p.stream(address("live"))
	next()
	response, err := p.client.Post(p.url+"/logout", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if name, data := next(); name != "problem" || !strings.Contains(data, "not logged in") {
		t.Errorf("after the log-out comes %s %s", name, data)
	}
	end()
	p.login("secret-of-acme")
	next, end = p.stream(address("live"))
	defer end()
	next()
	_ = p.console.Close()
	if name, data := next(); name != "problem" || !strings.Contains(data, "console stops") {
		t.Errorf("got %s %s, want a problem", name, data)
	}
	end()
	if got := p.log.String(); got != "" {
		t.Errorf("ends of streams that nothing is wrong with are logged: %s", got)
	}
}

// TestOneTenantLeavesRoom: a tenant that takes all requests, downloads and streams that it gets leaves some to others.
func TestOneTenantLeavesRoom(t *testing.T) {
	p := newPage(t, func(c *Config) { c.Requests, c.Streams = 16, 8 })
	p.put(acme, roof, noon, map[string]any{"n": 1})
	p.put(other, roof, noon, map[string]any{"n": 1})
	p.login("secret-of-acme")
	for range 7 {
		_, end := p.stream(address("live"))
		defer end()
	}
	if status, body := p.get(address("live")); status != http.StatusServiceUnavailable || !strings.Contains(body, "Too many") {
		t.Errorf("the eighth stream of a tenant: %d %s", status, body)
	}
	for p.console.slots.Take(acme, 1) {
		defer p.console.slots.Return(acme, 1)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/acme/datasets", http.NoBody)
	response, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "1" {
		t.Errorf("a tenant over its share: %s, Retry-After %q", response.Status, response.Header.Get("Retry-After"))
	}
	p.login("secret-of-other")
	if status, body := p.get("/api/other/datasets"); status != http.StatusOK {
		t.Errorf("another tenant: %d %s", status, body)
	}
	_, end := p.stream("/api/other/readings/live")
	end()
}

// TestSlowClients: points that wait for a slow client are bounded. Of a fleet only the newest of each entity waits; of
// an entity those that do not fit are counted.
func TestSlowClients(t *testing.T) {
	fleet := newWaiting(true)
	for i := range 3 * maxFleet {
		fleet.add(row{Entity: tsdb.NewEntity(fmt.Sprint(i % 10)), Time: float64(i)})
	}
	fleet.add(row{Entity: tsdb.NewEntity("3"), Time: 1}) // late
	rows, missed := fleet.take()
	if len(rows) != 10 || missed != 0 || rows[3].Time != 3*maxFleet-7 {
		t.Errorf("%d rows, %d missed, newest of one at %v; want the newest of ten entities", len(rows), missed, rows[3].Time)
	}
	if rows, _ := fleet.take(); rows != nil {
		t.Errorf("%d rows twice", len(rows))
	}
	for i := range maxFleet + 5 {
		fleet.add(row{Entity: tsdb.NewEntity(fmt.Sprint(i))})
	}
	if rows, missed := fleet.take(); len(rows) != maxFleet || missed != 5 {
		t.Errorf("%d rows, %d missed; want %d and 5", len(rows), missed, maxFleet)
	}
	single := newWaiting(false)
	for i := range maxWaiting + 7 {
		single.add(row{Entity: roof, Time: float64(i)})
	}
	if rows, missed := single.take(); len(rows) != maxWaiting || missed != 7 {
		t.Errorf("%d rows, %d missed; want %d and 7", len(rows), missed, maxWaiting)
	}
}
