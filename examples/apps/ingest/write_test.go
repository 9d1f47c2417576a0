package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var (
	acme  = tenant.MustParse("acme")
	start = time.Unix(1767225600, 0).UTC()
)

// rig is a server on its own store.
type rig struct {
	*server
	conn    *tsdbtest.Conn
	handler http.Handler
}

func newRig(t testing.TB, l app.Bounds, args ...string) *rig {
	t.Helper()
	o, err := parse(append([]string{"-token", "secret=acme", "-token", "other=acme2"}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	table, err := edge.OpenLimits(o.Limits)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Second}, Limits: table.Limiter, ProfileLimits: o.Profiles}})
	schemas, err := o.routes.Schemas(tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := inbound.NewDatasets(t.Context(), store, o.keys, inbound.Options{Schemas: schemas, Mapping: o.mapping, Times: o.times, Noun: noun})
	if err != nil {
		t.Fatal(err)
	}
	o.Bounds = l
	w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: l.Timeout, Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	s := newServer(&ingester{datasets: ds, sink: inbound.Sink{Store: store, Writer: w}, limits: table.Limiter, journaled: o.journal != ""}, o, slog.New(slog.DiscardHandler))
	return &rig{s, conn, s.http().Handler}
}

var ample = app.Bounds{Body: 1 << 20, Requests: 4, Timeout: 30 * time.Second}

// post sends a request with acme's token, after the changes.
func (r *rig) post(path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Token secret")
	for _, f := range change {
		f(req)
	}
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, req)
	return rec
}

// want fails the test if a response has another status, or lacks a text.
func want(t *testing.T, what string, got *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if got.Code != status {
		t.Errorf("%s: status %d, want %d; %s", what, got.Code, status, got.Body)
	}
	if status == http.StatusNoContent && got.Body.Len() > 0 {
		t.Errorf("%s: status 204 with the body %s", what, got.Body)
	}
	if status >= 400 && !json.Valid(got.Body.Bytes()) {
		t.Errorf("%s: the response is not JSON: %s", what, got.Body)
	}
	for _, text := range texts {
		if !strings.Contains(got.Body.String(), text) {
			t.Errorf("%s: the response %s does not contain %q", what, got.Body, text)
		}
	}
}

// repository returns a tenant's points of a dataset.
func (r *rig) repository(t *testing.T, dataset string, id tenant.ID) *tsdb.Repository[codec.Record] {
	t.Helper()
	d, err := r.in.datasets.Find(t.Context(), id, dataset)
	if err != nil {
		t.Fatal(err)
	}
	return d.Schema().For(r.in.sink.Store, id)
}

// stored compares a point with the text of a record; "" means no point.
func (r *rig) stored(t *testing.T, dataset string, id tenant.ID, at time.Time, want string, key ...string) {
	t.Helper()
	got := ""
	for p, err := range r.repository(t, dataset, id).Range(t.Context(), tsdb.NewEntity(key...), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Time.Equal(at) {
			got = p.Value.String()
		}
	}
	if got != want {
		t.Errorf("%s of %v at %v is %q, want %q", dataset, key, at, got, want)
	}
}

const v1, v2 = "/write?db=d", "/api/v2/write?org=o&bucket=b"

func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func isGzip(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }

func TestTypesAndPrecisions(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	body := `cpu,host=a,zone=x f=1.5,i=-3i,u=4u,s="a \"b\"` + "\n" + `cpu,host=z x=1",yes=t,no=false ` // a quoted text with a newline
	for _, tt := range []struct{ query, time string }{
		{"", "1767225600000000000"},
		{"&precision=n", "1767225600000000000"},
		{"&precision=ns", "1767225600000000000"},
		{"&precision=u", "1767225600000000"},
		{"&precision=us", "1767225600000000"},
		{"&precision=ms", "1767225600000"},
		{"&precision=s", "1767225600"},
		{"&precision=m", "29453760"},
		{"&precision=h", "490896"},
	} {
		for _, path := range []string{v1, v2} {
			want(t, path+tt.query, r.post(path+tt.query, body+tt.time), 204)
			r.stored(t, "cpu", acme, start, `{f=1.5 i=-3i no=false s="a \"b\"\ncpu,host=z x=1" tag:zone="x" u=4u yes=true}`, "a")
			if err := r.repository(t, "cpu", acme).Delete(t.Context(), tsdb.NewEntity("a"), start); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.stored(t, "cpu", acme, start, "", "z") // a line within a text is not a point
	want(t, "precision=d", r.post(v1+"&precision=d", body), 400, "precision")
	want(t, "an empty body", r.post(v2, ""), 204)
	want(t, "comments", r.post(v2, "# nothing\n\n"), 204)

	before := time.Now().Truncate(time.Second)
	want(t, "no time", r.post(v2+"&precision=s", "cpu,host=now x=1\ncpu,host=now y=2"), 204)
	p, err := r.repository(t, "cpu", acme).Latest(t.Context(), tsdb.NewEntity("now"))
	if err != nil || p.Time.Before(before) || p.Time.After(time.Now()) || p.Value.Len() != 2 || p.Time.Nanosecond() != 0 {
		t.Errorf("lines without a time are stored as %v, %v; want one point at the server's time", p, err)
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	none := func(req *http.Request) { req.Header.Del("Authorization") }
	auth := func(text string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set("Authorization", text) }
	}
	for _, tt := range []struct {
		name, query string
		change      func(*http.Request)
		want        tenant.ID
	}{
		{"token", "", auth("Token other"), tenant.MustParse("acme2")},
		{"bearer", "", auth("Bearer secret"), acme},
		{"user and password as a token", "", auth("Token me:secret"), acme},
		{"basic", "", func(req *http.Request) { req.SetBasicAuth("me", "secret") }, acme},
		{"parameters", "&u=me&p=secret", none, tenant.ID{}},
		{"two headers", "", func(req *http.Request) { req.Header.Add("Authorization", "Token secret") }, tenant.ID{}},
		{"nothing", "", none, tenant.ID{}},
		{"wrong", "", auth("Token secrets"), tenant.ID{}},
		{"empty", "", auth("Token "), tenant.ID{}},
		{"basic, wrong", "", func(req *http.Request) { req.SetBasicAuth("secret", "") }, tenant.ID{}},
		{"wrong beside a parameter that is right", "&p=secret", auth("Token x"), tenant.ID{}},
		{"another scheme", "", auth("Digest secret"), tenant.ID{}},
	} {
		for _, path := range []string{v1, v2} {
			host := strings.ReplaceAll(tt.name, " ", "-")
			got := r.post(path+tt.query, "cpu,host="+strings.ReplaceAll(host, ",", "")+" x=1 1767225600000000000", tt.change)
			if tt.want.IsZero() {
				want(t, tt.name, got, 401, "token")
				continue
			}
			want(t, tt.name, got, 204)
			r.stored(t, "cpu", tt.want, start, "{x=1}", host)
		}
	}
	want(t, "query without a token", r.post("/query?q=CREATE+DATABASE+x", "", none), 401)
}

// TestPartialWrites: each bad line is reported with the reason, and the good ones are stored.
func TestPartialWrites(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-key", "disk=host,*")
	lines := []struct{ text, why string }{
		{`cpu,host=a x=1 1767225600000000000`, ""},
		{`cpu,zone=b x=1 1767225600000000000`, `the tag "host" is missing`},
		{`mem,host=a x=1 1767225600000000000`, `no -key names the measurement "mem"`},
		{`cpu,host=a`, "line 4"},
		{`nonsense`, "line 5"},
		{`cpu,host=a x=1 -1`, "1969"},
		{`cpu,host=a x=NaN`, "line 7"},
		{`cpu,host=a,host=b x=1`, `the tag "host" comes twice`},
		{`cpu,host=a,z=b,z=c x=1`, `the tag "z" comes twice`},
		{`disk,host=b,path=/,kind=a\=b used=1i 1767225600000000000`, ""},
	}
	var body []string
	bad := 0
	for _, l := range lines {
		body = append(body, l.text)
		if l.why != "" {
			bad++
		}
	}
	for path, shape := range map[string]string{v1: `{"error":"partial write: `, v2: `{"code":"invalid","line":2,"message":"partial write: `} {
		got := r.post(path, strings.Join(body, "\n"))
		want(t, path, got, 400, shape, "dropped=8")
		for _, l := range lines {
			want(t, path, got, 400, strings.ReplaceAll(l.why, `"`, `\"`))
		}
	}
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
	r.stored(t, "disk", acme, start, "{used=1i}", "b", `kind=a\=b,path=/`)
	for _, tt := range []struct{ text, why string }{
		{`cpu,host=a tag:x=1`, `starts with \"tag:\"`},
		{`cpu,host=a x=1 99999999999999999999`, "the time"},
		{`cpu,host=a x=18446744073709551616u`, "out of range"},
		{`cpu,host=a x="` + strings.Repeat("y", 9000) + `"`, "at most 8192 bytes"},
		{`cpu,host=a x="` + strings.Repeat("y", 70_000) + `"`, "longer than 64 KiB"},
		{`cpu,host=a x="open` + "\nmore", "lines 1 to 2: a quoted text does not end"},
	} {
		want(t, tt.text[:min(20, len(tt.text))], r.post(v2, tt.text), 400, tt.why, "dropped=1")
	}
	many := strings.Repeat("nonsense\n", 1000)
	got := r.post(v2, many)
	want(t, "1000 bad lines", got, 400, "and 990 more", "dropped=1000")
	if got.Body.Len() > 4096 {
		t.Errorf("the response to 1000 bad lines has %d bytes, want fewer", got.Body.Len())
	}
}

// TestLinesOfOneSeriesMerge: lines of one series merge, in one request and in two; the later value of a field stays.
func TestLinesOfOneSeriesMerge(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	want(t, "one request", r.post(v2, "cpu,host=a x=1,y=1 1767225600000000000\ncpu,host=a y=2,z=3i 1767225600000000000"), 204)
	r.stored(t, "cpu", acme, start, "{x=1 y=2 z=3i}", "a")
	want(t, "another request", r.post(v1, "cpu,host=a z=\"now text\",w=t 1767225600000000000"), 204)
	r.stored(t, "cpu", acme, start, `{w=true x=1 y=2 z="now text"}`, "a")
	if rep, _, _ := r.sum(); rep.lines != 3 || rep.stored != 3 || rep.points != 2 || rep.merged != 1 || rep.replaced != 1 {
		t.Errorf("the report is %+v", rep)
	}
}

// TestSeriesThatMeet: two series that differ only in a tag outside the key must not become one.
func TestSeriesThatMeet(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-key", "*=host,*")
	one, two := "cpu,host=a,cpu=0 x=1 1767225600000000000", "cpu,host=a,cpu=1 x=2 1767225600000000000"
	got := r.post(v2, one+"\n"+two)
	want(t, "in one request", got, 400, "line 2", `\"cpu\" is \"1\", and \"0\" on line 1`, "-key", "dropped=1")
	got = r.post(v2, two)
	want(t, "in two", got, 400, "line 1", "tag:cpu", "dropped=1")
	want(t, "the first again", r.post(v2, one), 204)
	r.stored(t, "cpu", acme, start, `{tag:cpu="0" x=1}`, "a")

	// With all other tags in the key they are two series, as in InfluxDB.
	both := strings.ReplaceAll(one+"\n"+two, "cpu,", "cpu2,")
	want(t, "with all tags in the key", r.post(v2, both+"\ncpu2,host=a x=3 1767225600000000000"), 204)
	r.stored(t, "cpu2", acme, start, "{x=1}", "a", "cpu=0")
	r.stored(t, "cpu2", acme, start, "{x=2}", "a", "cpu=1")
	r.stored(t, "cpu2", acme, start, "{x=3}", "a", "-")
	want(t, "a name that no dataset can have", r.post(v2, `a\ b,host=a x=1`), 400, "dataset")
}

func TestBodies(t *testing.T) {
	small := ample
	small.Body = 4096
	r := newRig(t, small, "-key", "cpu=host")
	good := "cpu,host=a x=1 1767225600000000000\n"
	want(t, "gzip", r.post(v2, packed(good), isGzip), 204)
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
	want(t, "too large", r.post(v2, strings.Repeat(good, 200)), 413, "bytes, which is the limit of -max-body")
	want(t, "too large when unpacked", r.post(v2, packed(strings.Repeat(good, 200)), isGzip), 413, "bytes once it is unpacked, which is the limit of -max-body")
	want(t, "no gzip", r.post(v2, good, isGzip), 400, "gzip")
	want(t, "cut gzip", r.post(v2, packed(strings.Repeat(good, 20))[:30], isGzip), 400, "unexpected EOF")
	want(t, "another encoding", r.post(v2, good, func(r *http.Request) { r.Header.Set("Content-Encoding", "br") }), 415)
}

// TestStoreThatIsDown: the agent is asked to retry, whatever else is wrong with its lines, and then all lines are
// stored.
func TestStoreThatIsDown(t *testing.T) {
	l := ample
	l.Timeout = 300 * time.Millisecond
	r := newRig(t, l, "-key", "cpu=host")
	const body = "cpu,host=a x=1 1767225600000000000\nnonsense"
	end := r.conn.Outage()
	for _, path := range []string{v1, v2} {
		got := r.post(path, body)
		want(t, "in an outage", got, 503)
		if got.Header().Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		// An agent of version 1 drops the points if it reads one of these texts.
		for _, text := range []string{"partial write", "unable to parse", "retention policy", "hinted handoff", "database not found"} {
			if strings.Contains(got.Body.String(), text) {
				t.Errorf("503 contains %q: %s", text, got.Body)
			}
		}
	}
	want(t, "health", r.get("/health"), 503, "fail")
	end()
	r.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Times(1))
	want(t, "refused by the service", r.post(v2, "cpu,host=b x=1"), 503)
	deadline := time.Now().Add(10 * time.Second)
	got := r.post(v2, body)
	for got.Code == 503 && time.Now().Before(deadline) {
		got = r.post(v2, body)
	}
	want(t, "after the outage", got, 400, "dropped=1")
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
}

// TestJournalInAnOutage accepts points while the store is down, and delivers them when it is back.
func TestJournalInAnOutage(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-journal", t.TempDir())
	end := r.conn.Outage()
	for range 2 {
		want(t, "in an outage", r.post(v2, "cpu,host=a x=1 1767225600000000000\ncpu,host=a y=2 1767225600000000000"), 204)
	}
	want(t, "in an outage", r.post(v1, "cpu,host=a z=3 1767225600000000000"), 204)
	end()
	if err := r.in.sink.Writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.stored(t, "cpu", acme, start, "{x=1 y=2 z=3}", "a")
}

func (r *rig) get(path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// TestTooManyRequests: a request that arrives while all slots are used is asked to retry.
func TestTooManyRequests(t *testing.T) {
	l := ample
	l.Requests = 1
	r := newRig(t, l, "-key", "cpu=host")
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	r.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		entered <- struct{}{}
		<-leave
		return 0
	}).On(tsdbtest.CheckAndMutateRow).Times(1))
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- r.post(v2, "cpu,host=slow x=1") }()
	<-entered
	got := r.post(v2, "cpu,host=a x=1")
	want(t, "the second", got, 503, "too many")
	if got.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	close(leave)
	want(t, "the first", <-done, 204)
	want(t, "the next", r.post(v2, "cpu,host=a x=1"), 204)
}

func TestWhatAgentsAskFirst(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	want(t, "ping", r.get("/ping"), 204)
	want(t, "health", r.get("/health"), 200, `"status":"pass"`)
	form := func(req *http.Request) { req.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	want(t, "create", r.post("/query", "q=CREATE+DATABASE+%22telegraf%22", form), 200, `{"results":[{"statement_id":0}]}`)
	want(t, "another query", r.post("/query", "q=DROP+DATABASE+x", form), 400, "CREATE DATABASE")
	if got := r.get("/api/v2/write"); got.Code != 405 {
		t.Errorf("GET on a write endpoint: %d", got.Code)
	}
	if got := r.get("/nowhere"); got.Code != 404 {
		t.Errorf("another path: %d", got.Code)
	}
}

// TestConsistent: with a journal, a request with consistent=1 is answered once its points can be read. If its time ends
// first, the response says that the journal has them, and they can be read later.
func TestConsistent(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-journal", t.TempDir())
	const line = "cpu,host=%s x=1 1767225600000000000"
	read := func(host string) error {
		_, err := r.repository(t, "cpu", acme).Latest(t.Context(), tsdb.NewEntity(host))
		return err
	}
	for i := range 20 {
		host := fmt.Sprint("a", i)
		want(t, "a request that waits", r.post(v2+"&consistent=1", fmt.Sprintf(line, host)), 204)
		if err := read(host); err != nil {
			t.Errorf("a read after request %d: %v", i, err)
		}
	}
	journaled := func() int {
		rep, _, _ := r.sum()
		return rep.journaled
	}
	end := r.conn.Outage()
	ctx, cancel := context.WithCancel(t.Context())
	var clock sync.WaitGroup
	defer cancel()
	before := journaled()
	clock.Go(func() { // the timeout passes once the journal has the point
		for journaled() == before && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	})
	got := r.post(v2+"&consistent=1", fmt.Sprintf(line, "b"), func(req *http.Request) { *req = *req.WithContext(ctx) })
	clock.Wait()
	want(t, "while the store is down", got, 202, "in the journal and will be delivered")
	want(t, "a request that does not wait", r.post(v2+"&consistent=0", fmt.Sprintf(line, "b")), 204)
	end()
	want(t, "once the store is back", r.post(v2+"&consistent=true", fmt.Sprintf(line, "c")), 204)
	for _, host := range []string{"b", "c"} {
		if err := read(host); err != nil {
			t.Errorf("the point of %s after the outage: %v", host, err)
		}
	}
	want(t, "another value", r.post(v2+"&consistent=please", fmt.Sprintf(line, "a")), 400, "consistent", "1 or 0")
}
