package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestMain runs the program itself if a test started this binary as a child process.
func TestMain(m *testing.M) {
	programtest.RunMain(main)
	goleak.VerifyTestMain(m)
}

var (
	noon        = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	acme, acme2 = tenant.MustParse("acme"), tenant.MustParse("acme2")
	roof        = tsdb.NewEntity("berlin", "roof-7")
)

// api is the server under test, with a store whose connection can fail.
type api struct {
	t      *testing.T
	url    string
	server *server
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	table  *bigtable.Table
	client *http.Client
	log    *syncBuffer
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

func newAPI(t *testing.T) *api {
	return newLimited(t, app.Bounds{Body: 64 << 10, Requests: 16, Timeout: 5 * time.Second})
}

func newLimited(t *testing.T, l app.Bounds) *api { return newWith(t, l, limit.Table{}) }

// newWith returns a server with the tenant limits of a table.
func newWith(t *testing.T, l app.Bounds, of limit.Table) *api {
	t.Helper()
	limiter, err := limit.New(of, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("a key of 32 bytes, for tests only")[:cursorKeySize]
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return noon }, CursorKeys: [][]byte{key}, Cache: tsdb.CacheOptions{Entries: 1000}, Limits: limiter}}, schemas...)
	ts := &bearer{new(edge.Tokens)}
	for _, text := range []string{"secret=acme", "secret=2=acme2"} {
		if err := ts.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	a := &api{t: t, store: store, conn: conn, table: table, log: &syncBuffer{}}
	if a.server, err = newServer(store, ts, l, slog.New(slog.NewTextHandler(a.log, nil))); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.server.handler())
	t.Cleanup(srv.Close)
	a.url, a.client = srv.URL, srv.Client()
	return a
}

// put stores readings of one device of acme, one a minute up to noon, oldest first.
func (a *api) put(e tsdb.Entity, temps ...float64) {
	a.t.Helper()
	var points []tsdb.Point[Reading]
	for i, temp := range temps {
		points = append(points, tsdb.Point[Reading]{Entity: e, Time: noon.Add(time.Duration(i-len(temps)+1) * time.Minute), Value: Reading{TempC: num(temp)}})
	}
	if err := put(a.t.Context(), weather.For(a.store, acme), points); err != nil {
		a.t.Fatal(err)
	}
}

// num is a number as most devices write it: without a point if it is whole.
func num(x float64) codec.Value {
	if i, whole := codec.Float(x).Int(); whole {
		return codec.Int(i)
	}
	return codec.Float(x)
}

func float(v codec.Value) float64 {
	x, _ := v.Number()
	return x
}

// response is a response with its whole body.
type response struct {
	*http.Response
	body string
}

// do sends a request of acme. Headers are "Name: value"; "Name:" removes one.
func (a *api) do(method, path, body string, headers ...string) response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Del(name)
		if value = strings.TrimSpace(value); value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := a.client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response{resp, string(text)}
}

func (a *api) get(path string, headers ...string) response {
	a.t.Helper()
	return a.do(http.MethodGet, path, "", headers...)
}

// want checks a whole response.
func (r response) want(t *testing.T, status int, body string) {
	t.Helper()
	if r.StatusCode != status || strings.TrimSpace(r.body) != body {
		t.Errorf("%s %s: %d %s, want %d %s", r.Request.Method, r.Request.URL, r.StatusCode, r.body, status, body)
	}
}

// wantProblem checks that a response is this problem, and returns it.
func (r response) wantProblem(t *testing.T, k kind) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Errorf("%s %s: %d %s, want the problem %s", r.Request.Method, r.Request.URL, r.StatusCode, r.body, k.name)
		return p
	}
	if r.StatusCode != k.status || p.Status != k.status || p.Type != problemTypes+k.name || p.Title == "" || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %s: %d %s %s, want %d and the problem %s", r.Request.Method, r.Request.URL, r.StatusCode, r.Header.Get("Content-Type"), r.body, k.status, k.name)
	}
	for _, secret := range []string{"rpc", "table tidemark", "tsdb", "acme", "#weather", "projects/", "fault"} {
		if strings.Contains(strings.ReplaceAll(r.body, problemTypes, ""), secret) {
			t.Errorf("%s %s: the response contains the internal text %q: %s", r.Request.Method, r.Request.URL, secret, r.body)
		}
	}
	return p
}

// decode decodes a JSON response.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// spoil replaces the payload of a point with invalid JSON.
func (a *api) spoil(prefix string, at time.Time) {
	a.t.Helper()
	a.setPayload(prefix, at, "{")
}

// payload stores a payload of acme's weather as another program may have written it.
func (a *api) payload(e tsdb.Entity, at time.Time, text string) {
	a.t.Helper()
	a.setPayload("acme#weather#"+strings.Join(e.Parts(), "#")+"#", at, text)
}

func (a *api) setPayload(prefix string, at time.Time, text string) {
	a.t.Helper()
	mut := bigtable.NewMutation()
	mut.Set("d90", "p:json", bigtable.Time(at), []byte(text))
	if err := a.table.Apply(a.t.Context(), fmt.Sprintf("%s%019d", prefix, math.MaxInt64-at.UnixNano()), mut); err != nil {
		a.t.Fatal(err)
	}
}
