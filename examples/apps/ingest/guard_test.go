package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var acme2 = tenant.MustParse("acme2")

func asOther(r *http.Request) { r.Header.Set("Authorization", "Token other") }

func TestTokenInQuery(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host", "-token-in-query")
	none := func(req *http.Request) { req.Header.Del("Authorization") }
	want(t, "parameter", r.post(v1+"&u=me&p=secret", "cpu,host=a x=1 1767225600000000000", none), 204)
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
	want(t, "a parameter beside a wrong token", r.post(v1+"&p=secret", "cpu,host=a x=1", func(req *http.Request) {
		req.Header.Set("Authorization", "Token x")
	}), 401)
}

// TestSlowBodiesKeepNobodyOut: a tenant that slowly sends any number of bodies uses no slot of another tenant.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	const slow = 40
	done := make(chan *httptest.ResponseRecorder, slow)
	var sends []*io.PipeWriter
	for range slow {
		body, send := io.Pipe()
		sends = append(sends, send)
		go func() { done <- r.post(v2, "", func(req *http.Request) { req.Body = body }) }()
		_, _ = io.WriteString(send, "cpu,host=slow ") // returns when the request reads the body
	}
	want(t, "another tenant", r.post(v2, "cpu,host=a x=1 1767225600000000000", asOther), 204)
	r.stored(t, "cpu", acme2, start, "{x=1}", "a")
	for _, send := range sends {
		_ = send.CloseWithError(io.ErrUnexpectedEOF)
	}
	for range slow {
		want(t, "a body that was cut", <-done, 400, "unexpected EOF")
	}
	if n := r.memory; !n.Take(acme, 7*ample.Body) {
		t.Error("the memory of bodies that were cut off is not released")
	}
}

// TestMemoryOfBodies: the memory for bodies being read is bounded, and one tenant leaves space to others.
func TestMemoryOfBodies(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	if !r.memory.Take(acme, 7*ample.Body) {
		t.Fatal("less free memory than expected")
	}
	got := r.post(v2, "cpu,host=a x=1")
	want(t, "a tenant that holds its share", got, 503, "too many bytes")
	if got.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	want(t, "another tenant", r.post(v2, "cpu,host=a x=1", asOther), 204)
	r.memory.Return(acme, 7*ample.Body)
	want(t, "once it has less", r.post(v2, "cpu,host=a x=1"), 204)
}

// TestUselessLines: lines that store nothing are bounded, because no other limit counts their cost.
func TestUselessLines(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	const good = "cpu,host=a x=1 1767225600000000000\n"
	for name, useless := range map[string]string{"blank": "\n", "spaces": " \r\n", "comments": "# x\n", "refused": "x\n"} {
		got := r.post(v2, packed(good+strings.Repeat(useless, 2*maxUseless)), isGzip)
		want(t, name, got, 400, "too many lines without a point", "line 10003")
		r.stored(t, "cpu", acme, start, "{x=1}", "a")
	}
	want(t, "as many as are allowed", r.post(v2, strings.Repeat("\n", maxUseless)+good), 204)
}

// TestTheLimitOfTime also applies to lines that wait for nothing.
func TestTheLimitOfTime(t *testing.T) {
	l := ample
	l.Timeout = time.Nanosecond
	r := newRig(t, l, "-key", "cpu=host")
	want(t, "comments", r.post(v2, strings.Repeat("# x\n", maxUseless)), 503)
}

// TestLimitsOfATenant: 429 with the time to wait if the same request is accepted later, 413 if it never is.
func TestLimitsOfATenant(t *testing.T) {
	file := write(t, `{"overrides": {"acme": {"points_per_second": 1, "points_burst": 5, "entities": 3}}}`)
	r := newRig(t, ample, "-key", "cpu=host", "-limits", file)
	lines := func(host string, n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("cpu,host=%s x=1 %d\n", host, start.Add(time.Duration(i)).UnixNano())
		}
		return text
	}
	want(t, "as many as come at once", r.post(v2, lines("a", 5)), 204)
	got := r.post(v2, lines("a", 3))
	want(t, "too soon", got, 429, "points_per_second")
	if after := got.Header().Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q, want 1", after)
	}
	want(t, "more than ever come at once", r.post(v2, lines("a", 8)), 413, "burst of 5")
	want(t, "another tenant", r.post(v2, lines("a", 50), asOther), 204)
	r.stored(t, "cpu", acme2, start.Add(49), "{x=1}", "a")

	r = newRig(t, ample, "-key", "cpu=host", "-limits", write(t, `{"defaults": {"points_per_second": 1, "points_burst": 7}}`), "-profile-limits")
	if _, err := tenants.Onboard(t.Context(), r.in.sink.Store, acme, tenants.Profile{Limits: json.RawMessage(`{"points_per_second": 1, "points_burst": 2}`)}, tenants.OnboardOptions{}); err != nil {
		t.Fatal(err)
	}
	want(t, "a limit of the profile", r.post(v2, lines("a", 3)), 413, "burst of 2")
	want(t, "a tenant without a profile", r.post(v2, lines("a", 7), asOther), 204)

	file = write(t, `{"defaults": {"entities": 1}}`)
	r = newRig(t, ample, "-key", "cpu=host", "-limits", file)
	want(t, "an entity too many", r.post(v2, lines("a", 1)+lines("b", 1)), 400, "entities", "dropped=1")
}

// TestBurstOfBytes: what a request counts against bytes_burst is its payloads, which are smaller or larger than its
// text. 413 for one that would be accepted later loses it, and 429 for one that never is repeats it for ever.
func TestBurstOfBytes(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host,region", "-limits", write(t, `{"overrides": {"acme": {"bytes_per_second": 1, "bytes_burst": 100}}}`))
	lines := func(n int) (text string) { // of 71 bytes, and at most 12 of payload
		for i := range n {
			text += fmt.Sprintf("cpu,host=a,region=%s x=1 %d\n", strings.Repeat("r", 28), start.Add(time.Duration(i)).UnixNano())
		}
		return text
	}
	want(t, "as many as come at once", r.post(v2, lines(8)), 204)
	want(t, "too soon", r.post(v2, lines(8)), 429, "bytes_per_second")
	want(t, "more than ever come at once", r.post(v2, lines(16)), 413, "burst of 100")

	r = newOTLP(t, ample, "-limits", write(t, `{"overrides": {"acme": {"bytes_per_second": 1, "bytes_burst": 1000}}}`))
	m := request()
	m.ResourceMetrics[0].Resource.Attributes = append(m.ResourceMetrics[0].Resource.Attributes, attr("rack", strings.Repeat("r", 100))) // in each payload
	for i := range 12 {
		p := number(1)
		p.TimeUnixNano += uint64(i)
		m.ResourceMetrics[0].ScopeMetrics[0].Metrics = append(m.ResourceMetrics[0].ScopeMetrics[0].Metrics, gauge("m.g", p))
	}
	if got, _ := r.send(t, m); got.Code != 413 {
		t.Errorf("payloads larger than the burst in a smaller request: status %d, want 413", got.Code)
	}
}

func TestTextThatIsNotUTF8(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	for _, line := range []string{"cpu,host=\xff x=1", "cpu,host=a x=\"\xff\"", "cpu,host=a,b=\xc0\x80 x=1", "c\xffpu,host=a x=1"} {
		want(t, fmt.Sprintf("%q", line), r.post(v2, line), 400, "UTF-8", "dropped=1")
	}
}

// TestTheFuture: a device with a wrong clock must not have the latest point for years.
func TestTheFuture(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	for ahead, status := range map[time.Duration]int{time.Hour: 204, 25 * time.Hour: 400, 200 * 365 * 24 * time.Hour: 400} {
		want(t, ahead.String(), r.post(v2, fmt.Sprintf("cpu,host=a x=1 %d", time.Now().Add(ahead).UnixNano())), status)
	}
	r = newRig(t, ample, "-key", "cpu=host", "-max-future", "0")
	want(t, "without a bound", r.post(v2, fmt.Sprintf("cpu,host=a x=1 %d", time.Now().Add(200*365*24*time.Hour).UnixNano())), 204)
}

// TestAWrongUnit: the answer to lines and data points in another unit names the unit that fits, and -not-before lets
// older points in.
func TestAWrongUnit(t *testing.T) {
	const seconds, line = "/api/v2/write?bucket=b&precision=s", "cpu,host=a x=1 1767225600000"
	r := newRig(t, ample, "-key", "cpu=host")
	want(t, "milliseconds as seconds", r.post(seconds, line), 400, "read as s is after the year 9999", "-max-future", "as ms it is 2026-01-01T00:00:00Z")
	want(t, "seconds as nanoseconds", r.post(v2, "cpu,host=a x=1 1767225600"), 400, "before 2000-01-01T00:00:00Z", "-not-before", "as s it is 2026-01-01T00:00:00Z")
	want(t, "an old time", r.post(seconds, "cpu,host=a x=1 631152000"), 400, "is 1990-01-01T00:00:00Z, before 2000-01-01T00:00:00Z, which is -not-before dropped=1")
	r = newRig(t, ample, "-key", "cpu=host", "-not-before", "1990-01-01")
	want(t, "an old time that is accepted", r.post(seconds, "cpu,host=a x=1 631152000"), 204)
	want(t, "an older one", r.post(seconds, "cpu,host=a x=1 631151999"), 400, "before 1990-01-01T00:00:00Z")
}

// TestMeasurementsOfATenant: a tenant that creates as many datasets as it may does not prevent others from creating
// theirs.
func TestMeasurementsOfATenant(t *testing.T) {
	r := newRig(t, ample, "-key", "*=host", "-key", "cpu=host")
	var text strings.Builder
	for i := range inbound.TenantDatasets {
		fmt.Fprintf(&text, "m%d,host=a x=1\n", i)
	}
	want(t, "as many as it may", r.post(v2, text.String()), 204)
	want(t, "one more", r.post(v2, "more,host=a x=1"), 400, "this tenant", "100 is the most")
	want(t, "one that it has, and one with a -key", r.post(v2, "m7,host=a x=2\ncpu,host=a x=1"), 204)
	want(t, "a new one of another tenant", r.post(v2, "more,host=a x=1", asOther), 204)
	want(t, "which the first may not use either", r.post(v2, "more,host=a x=1"), 400, "100 is the most")
}

// TestConflictShowsNothing: only the operator learns that a measurement is stored with another shape.
func TestConflictShowsNothing(t *testing.T) {
	r := newRig(t, ample, "-key", "*=host")
	want(t, "the first", r.post(v2, "cpu,host=a x=1"), 204)
	other, err := inbound.NewDatasets(t.Context(), r.in.sink.Store, inbound.Keys{inbound.AnyDataset: {"zone"}}, inbound.Options{Noun: noun})
	if err != nil {
		t.Fatal(err)
	}
	r.in.datasets = other
	got := r.post(v2, "cpu,zone=a x=1", asOther)
	want(t, "another shape", got, 400, "give it another name")
	if strings.Contains(got.Body.String(), "host") {
		t.Errorf("the response shows how the dataset is stored: %s", got.Body)
	}
}

// TestTenantsDefineApart: while the creation of one tenant's measurement hangs, another tenant's is stored, and the
// first tenant's next one waits no longer than its request may take.
func TestTenantsDefineApart(t *testing.T) {
	r := newRig(t, ample, "-key", "*=host")
	want(t, "the first", r.post(v2, "cpu,host=a x=1"), 204)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		close(entered)
		<-leave
		return 0
	}).On(tsdbtest.ReadRows).Times(1))
	slow := make(chan *httptest.ResponseRecorder)
	go func() { slow <- r.post(v2, "slow,host=a x=1") }()
	<-entered
	within := func(d time.Duration) func(*http.Request) {
		return func(req *http.Request) {
			ctx, cancel := context.WithTimeout(req.Context(), d)
			t.Cleanup(cancel)
			*req = *req.WithContext(ctx)
		}
	}
	want(t, "another tenant", r.post(v2, "quick,host=a x=1", asOther, within(20*time.Second)), 204)
	want(t, "the same tenant", r.post(v2, "waits,host=a x=1", within(time.Millisecond)), 503)
	close(leave)
	want(t, "the one that hung", <-slow, 204)
	want(t, "the one that waited", r.post(v2, "waits,host=a x=1"), 204)
}

// TestHealthIsCheap: however many requests there are, the table is read at most once a second.
func TestHealthIsCheap(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	r.conn.Reset()
	begin := time.Now()
	for range 1000 {
		want(t, "health", r.get("/health"), 200)
	}
	if n, most := r.conn.Counts().Calls[tsdbtest.ReadRows], 1+int(time.Since(begin)/time.Second); n > most {
		t.Errorf("%d reads of the table, want at most %d", n, most)
	}
}

// TestProfileLimits opens the store as the program does, with and without the flag.
func TestProfileLimits(t *testing.T) {
	programtest.CheckProfileLimits(t, func(flags ...string) (*tsdb.Store, error) {
		o, err := parse(append(flags, "-dir", t.TempDir(), "-token", "secret=acme", "-key", "cpu=host"), io.Discard)
		if err != nil {
			return nil, err
		}
		store, err := o.Open(t.Context(), "test", slog.New(slog.DiscardHandler), tsdb.StoreOptions{})
		if err != nil {
			return nil, err
		}
		return store.Store, nil
	})
}
