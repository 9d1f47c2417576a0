package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

const at = "site=berlin&device=roof-7"

// TestRefused sends invalid requests. Each error names the field and the limit, and nothing reaches the store.
func TestRefused(t *testing.T) {
	a := newAPI(t)
	a.conn.Reset()
	for _, test := range []struct{ path, field string }{
		{"latest?site=berlin", "device"},
		{"latest?device=roof-7", "site"},
		{"latest", "site"},
		{"latest?site=&device=roof-7", "site"},
		{"latest?" + at + "&device=roof-8", "device"},
		{"latest?" + at + "&floor=9", `parameter "floor"`},
		{"latest?" + at + "&x=%zz", "query"},
		{"latest?" + at + "&timeout=1h", "timeout"},
		{"latest?" + at + "&timeout=soon", "timeout"},
		{"latest?" + at + "&max_stale=-1s", "max_stale"},
		{"latest?" + at + "&max_stale=61s", "max_stale"},
		{"history?" + at + "&max_stale=1s", `parameter "max_stale"`},
		{"latest?site=berlin&device=%ff", "device"},
		{"latest?site=berlin&device=" + strings.Repeat("x", 5000), "row key"},
		{"group?" + at, "device"},
		{"group?device=roof-7", "site"},
		{"group?limit=0", "limit"},
		{"group?limit=1001", "limit"},
		{"group?limit=many", "limit"},
		{"group?stie=berlin", `parameter "stie"`},
		{"history?" + at + "&size=1001", "size"},
		{"history?" + at + "&order=up", "order"},
		{"history?" + at + "&from=yesterday", "from"},
		{"history?" + at + "&from=2026-06-01T00:00:00Z&to=2026-06-01T00:00:00Z", "to"},
		{"history?" + at + "&cursor=", "cursor"},
		{"chart?" + at, "from"},
		{"chart?" + at + "&from=2026-06-01T00:00:00Z", "to"},
		{"chart?" + at + day + "&columns=10001", "columns"},
		{"chart?" + at + day + "&columns=0", "columns"},
		{"chart?" + at + day + "&measure=fuel", "measure"},
		{"chart?" + at + day + "&measure=", "measure"},
		{"chart?" + at + day + "&measure=temp_c,humidity", "measure"},
		{"chart?" + at + day + "&method=mean", "method"},
		{"chart?" + at + day + "&max_gap=-1s", "max_gap"},
		{"chart?" + at + day + "&max_gap=long", "max_gap"},
		{"windows?" + at + "&every=1h", "from"},
		{"windows?" + at + "&every=1h&from=2026-06-01T00:00:00Z", "to"},
		{"windows?" + at + day + "&every=never", "every"},
		{"windows?" + at + day, "every"},
		{"windows?" + at + day + "&every=-1h", "every"},
		{"windows?" + at + day + "&every=7h&zone=Europe/Berlin", "every"},
		{"windows?" + at + day + "&every=1h&zone=Nowhere", "zone"},
		{"windows?" + at + day + "&every=1h&zone=../../etc/passwd", "zone"},
		{"windows?" + at + day + "&every=1h&zone=Local", "zone"},
		{"windows?" + at + day + "&every=1h&gaps=wide", "gaps"},
		{"windows?" + at + day + "&every=1h&measures=fuel", "measures"},
		{"windows?" + at + day + "&every=1h&aggregates=mean,mean", "aggregates"},
		{"windows?" + at + day + "&every=1h&aggregates=", "aggregates"},
		{"windows?" + at + day + "&every=1h&aggregates=increase", "aggregates"}, // of a gauge
		{"windows?" + at + day + "&every=1h&aggregates=p42", "aggregates"},
		{"windows?" + at + day + "&every=1h&aggregates=count,sum,mean,min,max,first,last,stddev,delta,increase,rate,resets,integral,time_mean,p50,p90,p95,p99", "aggregates"},
		{"windows?" + at + day + "&every=1h&gaps=previous&max_gap=-1s", "max_gap"},
	} {
		got := a.get("/v1/weather/" + test.path)
		p := got.wantProblem(t, invalidInput)
		if p.Field != test.field || p.Value == "" || p.Limit == "" {
			t.Errorf("%.100s: field %q, value %q, limit %q; want the field %q", test.path, p.Field, p.Value, p.Limit, test.field)
		}
		if len(got.body) > 1000 {
			t.Errorf("%.100s: the response has %d bytes", test.path, len(got.body))
		}
	}
	for _, body := range []string{
		"{", "[]", "{}", `{"keys":[]}`, `{"keys":[{"site":1}]}`, `{"keys":[{"site":"a","device":"b"}]} {}`, `{"keys":[{"site":"a","device":"b"}],"n":1}`,
		`{"keys":[` + strings.Repeat(`{"site":"a","device":"b"},`, maxKeys) + `{"site":"a","device":"b"}]}`, "null",
	} {
		a.do(http.MethodPost, "/v1/weather/latest", body).wantProblem(t, invalidInput)
	}
	large := a.do(http.MethodPost, "/v1/weather/latest", `{"keys":[`+strings.Repeat(" ", 64<<10)).wantProblem(t, bodyTooLarge)
	if large.Field != "body" || !strings.Contains(large.Limit, " bytes") || !strings.Contains(large.Detail, "-max-body") {
		t.Errorf("too large a body: problem %+v, want the limit and its flag", large)
	}
	a.do(http.MethodPost, "/v1/weather/latest", `{"keys":[{"site":"a","device":"b"}]}`+strings.Repeat(" ", 64<<10)).wantProblem(t, bodyTooLarge)
	a.do(http.MethodPost, "/v1/weather/latest", `{}`, "Content-Type: text/plain").wantProblem(t, bodyType)
	a.do(http.MethodPost, "/v1/weather/latest", "", "Content-Type:").wantProblem(t, bodyType)
	a.get("/v1/wether/latest?"+at).wantProblem(t, noDataset)
	a.get("/v1/weather/newest").wantProblem(t, noResource)
	a.get("/v2").wantProblem(t, noResource)
	if n := a.conn.Counts().Calls[tsdbtest.ReadRows]; n != 0 {
		t.Errorf("%d reads for refused requests, want 0", n)
	}
}

const day = "&from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z"

func TestAuthorization(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	for header, challenge := range map[string]string{
		"Authorization:":                     `Bearer realm="tidemark"`,
		"Authorization: Basic c2VjcmV0Og==":  `Bearer realm="tidemark"`,
		"Authorization: secret":              `Bearer realm="tidemark"`,
		"Authorization: Bearer":              `Bearer realm="tidemark", error="invalid_token"`,
		"Authorization: Bearer secret=":      `Bearer realm="tidemark", error="invalid_token"`,
		"Authorization: Bearer secre":        `Bearer realm="tidemark", error="invalid_token"`,
		"Authorization: Bearer Secret":       `Bearer realm="tidemark", error="invalid_token"`,
		"Authorization: Bearer secret,admin": `Bearer realm="tidemark", error="invalid_token"`,
	} {
		for _, path := range []string{"/v1/weather/latest?" + at, "/v1/nothing/group"} {
			got := a.get(path, header)
			got.wantProblem(t, unauthorized)
			if h := got.Header.Get("WWW-Authenticate"); h != challenge {
				t.Errorf("%s: WWW-Authenticate is %q, want %q", header, h, challenge)
			}
		}
	}
	if got := a.get("/v1/weather/latest?"+at, "Authorization: bearer secret"); got.StatusCode != 200 {
		t.Errorf("the scheme in lower case: %d %s", got.StatusCode, got.body)
	}
}

func TestMethodsAndMediaTypes(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	for path, allowed := range map[string][]string{
		"/v1/weather/latest?" + at: {"GET", "HEAD", "OPTIONS", "POST"},
		"/v1/weather/group":        {"GET", "HEAD", "OPTIONS"},
		"/v1/weather/silent":       {"GET", "HEAD", "OPTIONS"},
		"/v1/weather/history":      {"GET", "HEAD", "OPTIONS"},
		"/v1/weather/windows":      {"GET", "HEAD", "OPTIONS"},
		"/v1/weather/chart":        {"GET", "HEAD", "OPTIONS"},
		"/healthz":                 {"GET", "HEAD", "OPTIONS"},
		"/readyz":                  {"GET", "HEAD", "OPTIONS"},
	} {
		got := a.do(http.MethodDelete, path, "")
		got.wantProblem(t, methodNotAllowed)
		list := strings.Split(got.Header.Get("Allow"), ", ")
		if slices.Sort(list); !slices.Equal(list, allowed) {
			t.Errorf("%s allows %v, want %v", path, list, allowed)
		}
		if got := a.do(http.MethodOptions, path, ""); got.StatusCode != 204 || got.Header.Get("Allow") == "" {
			t.Errorf("OPTIONS %s: %d", path, got.StatusCode)
		}
	}
	full := a.get("/v1/weather/latest?" + at)
	if head := a.do(http.MethodHead, "/v1/weather/latest?"+at, ""); head.StatusCode != 200 || head.body != "" || head.ContentLength != int64(len(full.body)) {
		t.Errorf("HEAD: %d, %d bytes, want 200 and %d", head.StatusCode, head.ContentLength, len(full.body))
	}
	if head := a.do(http.MethodHead, "/v1/weather/latest?site=berlin&device=none", ""); head.StatusCode != 404 {
		t.Errorf("HEAD of a missing point: %d", head.StatusCode)
	}
	a.conn.Reset()
	if head := a.do(http.MethodHead, "/v1/weather/group", "", "Accept: application/x-ndjson"); head.StatusCode != 200 || a.conn.Counts().Calls[tsdbtest.ReadRows] != 0 {
		t.Errorf("HEAD of lines: %d, and %v calls", head.StatusCode, a.conn.Counts().Calls)
	}

	for accept, want := range map[string]int{
		"": 200, "*/*": 200, "application/json": 200, "application/*;q=0.1": 200, "text/html, application/json;q=0.9": 200, "Application/JSON; charset=utf-8": 200,
		"text/html": 406, "application/json;q=0": 406, "*/*, application/json;q=0": 406, "application/x-ndjson": 406, "nonsense/": 406,
	} {
		if got := a.get("/v1/weather/latest?"+at, "Accept: "+accept); got.StatusCode != want {
			t.Errorf("Accept %q: %d, want %d", accept, got.StatusCode, want)
		} else if want == 406 {
			got.wantProblem(t, notAcceptable)
		}
	}
	for accept, want := range map[string]string{
		"*/*": asJSON, "application/x-ndjson, application/json;q=0.5": asLines, "application/json, application/x-ndjson": asJSON,
		"application/json;q=0, */*": asLines,
	} {
		if got := a.get("/v1/weather/group", "Accept: "+accept); got.Header.Get("Content-Type") != want {
			t.Errorf("Accept %q: %s, want %s", accept, got.Header.Get("Content-Type"), want)
		}
	}
	for _, path := range []string{"group", "history?" + at, "windows?every=1h&" + at + day, "chart?" + at + day} {
		a.get("/v1/weather/"+path, "Accept: image/png").wantProblem(t, notAcceptable)
	}
}

// TestBusy holds the only slot: the next request is asked to retry, and succeeds once the slot is free.
func TestBusy(t *testing.T) {
	a := newLimited(t, app.Bounds{Body: 1000, Requests: 1, Timeout: 5 * time.Second})
	a.put(roof, 20)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	a.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		entered <- struct{}{}
		<-leave
		return 0
	}).On(tsdbtest.ReadRows).Times(1))
	done := make(chan response)
	go func() { done <- a.get("/v1/weather/latest?" + at) }()
	<-entered
	got := a.get("/v1/weather/latest?" + at)
	got.wantProblem(t, busy)
	if got.Header.Get("Retry-After") == "" {
		t.Error("a busy server sends no Retry-After")
	}
	close(leave)
	if first := <-done; first.StatusCode != 200 {
		t.Errorf("the request that had the slot: %d %s", first.StatusCode, first.body)
	}
	if again := a.get("/v1/weather/latest?" + at); again.StatusCode != 200 {
		t.Errorf("the slot is not free again: %d %s", again.StatusCode, again.body)
	}
}

// TestClientLeaves: a client leaves while the store is slow. Its slot is free again, and the log has no errors.
func TestClientLeaves(t *testing.T) {
	a := newLimited(t, app.Bounds{Body: 1000, Requests: 1, Timeout: time.Hour})
	entered := make(chan struct{}, 1)
	a.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		entered <- struct{}{}
		return time.Hour
	}).On(tsdbtest.ReadRows))
	for _, accept := range []string{asJSON, asLines} {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v1/weather/group", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Accept", accept)
		done := make(chan error)
		go func() {
			resp, err := a.client.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			done <- err
		}()
		<-entered
		leave()
		if err := <-done; err == nil {
			t.Error("the request of a client that left got a response")
		}
		for !a.server.slots.Take(acme, 1) { // until the handler has ended
			runtime.Gosched()
		}
		a.server.slots.Return(acme, 1)
	}
	if a.log.String() != "" {
		t.Errorf("the log: %s", a.log)
	}
}

// TestProblemsOfErrors: an error that is not this server's fault gets no 500.
func TestProblemsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want kind
	}{
		{tsdb.ErrErased, deleted},
		{tenancy.ErrDatasetDeleted, deleted},
		{tsdb.ErrTenantMismatch, forbidden},
		{tenant.ErrForbidden, forbidden},
		{points.ErrNoMerge, conflict},
		{tsdb.ErrRemoving, unavailable},
		{tsdb.ErrClosed, unavailable},
		{context.Canceled, unavailable},
		{tsdb.ErrNoTable, internal},
	} {
		p := problemOf(fmt.Errorf("latest: %w", c.err))
		if p.Type != problemTypes+c.want.name || p.Status != c.want.status {
			t.Errorf("%v becomes %s with status %d, want %s", c.err, p.Type, p.Status, c.want.name)
		}
	}
}

// TestErasedTenant: a request for an erased tenant gets the problem deleted, and the log has no error.
func TestErasedTenant(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	if _, err := tenants.Erase(t.Context(), a.store, acme, tenants.EraseOptions{Settle: 1}); err != nil {
		t.Fatal(err)
	}
	a.get("/v1/weather/latest?"+at).wantProblem(t, deleted)
	if a.log.String() != "" {
		t.Errorf("the log: %s", a.log)
	}
}

// TestNames checks that the README explains each problem under its URI, and that no key field has the name of a
// parameter.
func TestNames(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []kind{
		invalidInput, badCursor, tooManyBuckets, unauthorized, forbidden, noPoint, noDataset, noResource, methodNotAllowed, notAcceptable,
		conflict, deleted, bodyTooLarge, bodyType, internal, unreadablePoint, busy, overLimit, unavailable, timedOut,
	} {
		if !strings.Contains(string(readme), "\n### "+k.name+"\n") {
			t.Errorf("README.md has no heading %s", k.name)
		}
	}
	for _, fields := range [][]string{weather.KeyFields(), positions.KeyFields()} {
		for _, name := range fields {
			if slices.Contains([]string{"timeout", "limit", "from", "to", "order", "size", "cursor", "every", "zone", "gaps", "measures", "aggregates", "max_gap", "max_stale"}, name) {
				t.Errorf("the key field %s has the name of a parameter", name)
			}
		}
	}
}
