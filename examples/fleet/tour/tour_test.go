package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a tour in this process.
type running struct {
	t     *testing.T
	links map[string]string // by who logs in
	out   *lines
	stop  func() error
}

// lines collects what the tour prints, and tells when it has invited the user.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	invited chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := strings.Contains(l.text.String(), "Ctrl-C stops")
	l.text.Write(p)
	if !before && strings.Contains(l.text.String(), "Ctrl-C stops") {
		close(l.invited)
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// longest is how long a test waits for the tour. It takes a second on an idle machine.
const longest = 2 * time.Minute

// within returns the next value of a channel.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(longest):
		t.Fatalf("nothing came within %v", longest)
		panic("unreachable")
	}
}

// eventually waits until a condition is met.
func (r *running) eventually(what string, met func() bool) {
	r.t.Helper()
	for until := time.Now().Add(longest); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			r.t.Fatalf("not within %v: %s; the tour printed\n%s", longest, what, r.out)
		}
	}
}

var invitation = regexp.MustCompile(`(?m)^  (\w+) +(http://\S+)$`)

func start(t *testing.T, broker string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{invited: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, append([]string{"-addr", "127.0.0.1:0", "-broker", broker}, args...), Streams{Out: out, Err: out, Release: func() {}})
	}()
	r := &running{t: t, links: map[string]string{}, out: out, stop: sync.OnceValue(func() error { cancel(); return within(t, ended) })}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-out.invited:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the tour ended: %v\n%s", err, out)
	case <-time.After(longest):
		t.Fatalf("after %v, the tour has not invited the user:\n%s", longest, out)
	}
	for _, m := range invitation.FindAllStringSubmatch(out.String(), -1) {
		r.links[m[1]] = m[2]
	}
	return r
}

// login returns a client with the session of a link, as the page makes it.
func (r *running) login(who string) (*http.Client, string) {
	r.t.Helper()
	u, err := url.Parse(r.links[who])
	if err != nil {
		r.t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: &http.Transport{}, Timeout: longest}
	r.t.Cleanup(client.CloseIdleConnections)
	base := u.Scheme + "://" + u.Host
	response, err := client.PostForm(base+"/login", url.Values{"token": {strings.TrimPrefix(u.Fragment, "token=")}})
	if err != nil {
		r.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		r.t.Fatalf("the link of %s: %s", who, response.Status)
	}
	return client, base
}

func read(t *testing.T, client *http.Client, address string, into any) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", address, response.Status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}

// newest reads the time of the newest point of acme's vehicles, and how many vehicles there are.
func newest(t *testing.T, client *http.Client, base string) (at time.Time, vehicles int) {
	t.Helper()
	var latest struct{ Rows []struct{ T float64 } }
	read(t, client, base+"/api/acme/telemetry/latest", &latest)
	for _, row := range latest.Rows {
		if now := time.UnixMilli(int64(row.T)); now.After(at) {
			at = now
		}
	}
	return at, len(latest.Rows)
}

// TestTour: the first start fills the past, the vehicles' messages arrive, the console shows them to their owner,
// Ctrl-C stops everything, and the second start continues with what is there. Its links are those of the first, and
// sessions continue.
func TestTour(t *testing.T) {
	for _, broker := range []string{brokerNone, brokerMosquitto} {
		t.Run(broker, func(t *testing.T) {
			if broker == brokerMosquitto && findMosquitto() == "" {
				t.Skip("mosquitto is not installed")
			}
			tourWith(t, broker)
		})
	}
}

func tourWith(t *testing.T, broker string) {
	dir := t.TempDir()
	args := []string{"-dir", dir, "-vehicles", "42", "-history", "2m", "-every", "500ms"}
	r := start(t, broker, args...)
	began := time.Now()
	client, base := r.login("acme")
	if line := "\nVehicles  42, each sends every 500ms\n"; !strings.Contains(r.out.String(), line) {
		t.Errorf("the tour prints %s, want %q", r.out.String(), line)
	}
	r.eventually("21 vehicles of acme, live and not only in the history", func() bool {
		at, n := newest(t, client, base)
		return at.After(began) && n == 21
	})
	response, err := client.Get(base + "/api/globex/telemetry/latest")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	folder := regexp.MustCompile(`Store +the folder (.+), embedded`).FindStringSubmatch(r.out.String())
	if folder == nil {
		t.Errorf("the tour prints no folder: %s", r.out.String())
	} else if _, err := os.Stat(filepath.Join(folder[1], "TIDEMARK")); err != nil {
		t.Errorf("the folder that the tour prints holds no store for tidectl --dir: %v", err)
	}
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("acme asks for globex's vehicles: %s, want 403", response.Status)
	}
	all, _ := r.login("operator")
	var health struct {
		Figures struct {
			Writer, Journal *struct{}
			Rollups         []struct{}
		}
	}
	r.eventually("the first pass of the rollups' worker", func() bool {
		read(t, all, base+"/api/table/health", &health)
		return health.Figures.Rollups != nil
	})
	if health.Figures.Writer == nil || health.Figures.Journal == nil {
		t.Errorf("the health is %+v, want that of a writer with a journal", health)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	stored := regexp.MustCompile(`Stored +(\d+) messages of the vehicles, (\d+) `).FindStringSubmatch(r.out.String())
	if stored == nil || stored[1] != stored[2] || stored[1] == "0" {
		t.Errorf("stopped with %q, want that all messages are stored", stored)
	}
	ended, links, open := time.Now(), r.links, client

	// At the same address, because a browser keeps the cookies of two ports apart by their names.
	r = start(t, broker, append(args, "-addr", strings.TrimPrefix(base, "http://"))...)
	for who, link := range r.links {
		if _, want, _ := strings.Cut(links[who], "#"); !strings.HasSuffix(link, "#"+want) {
			t.Errorf("the second start has the link %s for %s, want the token of %s", link, who, links[who])
		}
	}
	history := regexp.MustCompile(`History +(\d+) points since (.+), stored in`).FindStringSubmatch(r.out.String())
	since, err := time.ParseInLocation(time.DateTime, history[2], time.Local)
	if err != nil || since.Before(began.Add(-time.Second).Truncate(time.Second)) || since.After(ended) {
		t.Errorf("the second start fills the time since %v, %v; want since the end of the first, between %v and %v", since, err, began, ended)
	}
	_, base = r.login("acme")
	r.eventually("21 live vehicles of acme after the second start, for a browser that was logged in", func() bool {
		at, n := newest(t, open, base)
		return at.After(ended) && n == 21
	})
}

// TestMistakes: each mistake of the user ends the tour at once with what to do.
func TestMistakes(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	used := t.TempDir()
	store, err := embedded.Open(t.Context(), used+"/store")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, test := range []struct {
		args  string
		usage bool
		want  string
	}{
		{"extra", true, `unexpected argument "extra"`},
		{"-nope", true, "-nope"},
		{"-dir=", true, "-dir is empty"},
		{"-vehicles 0", true, "-vehicles is 0; want 1 to 100000"},
		{"-every 1ms", true, "-every is 1ms; want 100ms to 1h, or 0"},
		{"-history 999h", true, "-history is 999h"},
		{"-broker best", true, `-broker is "best"`},
		{"-addr nowhere", true, `-addr is "nowhere"`},
		{"-addr 0.0.0.0:0", true, "this machine only"},
		{"-addr " + lis.Addr().String() + " -dir " + t.TempDir(), false, "choose another address with -addr"},
		{"-addr 127.0.0.1:0 -dir " + used, false, "choose another folder with -dir"},
	} {
		err := Run(t.Context(), strings.Fields(test.args), Streams{Out: io.Discard, Err: io.Discard, Release: func() {}})
		if _, usage := errors.AsType[*UsageError](err); err == nil || usage != test.usage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.args, err, test.want)
		}
	}
	var help bytes.Buffer
	if err := Run(t.Context(), []string{"-help"}, Streams{Out: &help}); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-vehicles") {
		t.Errorf("-help: %v, %s", err, help.String())
	}
}

// TestEarlyEnd: while the history is stored, the tour says so, and Ctrl-C ends it without an error.
func TestEarlyEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	text := ""
	out := writer(func(p []byte) (int, error) {
		if text += string(p); strings.Contains(text, "History") {
			cancel()
		}
		return len(p), nil
	})
	args := []string{"-dir", t.TempDir(), "-addr", "127.0.0.1:0", "-broker", brokerNone, "-vehicles", "2000"}
	if err := Run(ctx, args, Streams{Out: out, Err: io.Discard, Release: func() {}}); err != nil || !strings.Contains(text, "Store ") || !strings.Contains(text, "Stopping") || strings.Contains(text, "Broker") {
		t.Errorf("the tour ends with %v, after\n%s", err, text)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestManyVehicles: ten thousand vehicles send no more messages in a second than the tour can store.
func TestManyVehicles(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 2 * time.Second, 200: 2 * time.Second, 1000: 2 * time.Second, 10_000: 10 * time.Second, maxVehicles: 100 * time.Second} {
		o, err := parse([]string{"-vehicles", fmt.Sprint(n)}, io.Discard)
		if err != nil || o.every != want {
			t.Errorf("%d vehicles send every %v, %v; want %v", n, o.every, err, want)
		}
	}
}
