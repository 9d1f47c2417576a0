package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

const roofNow = `"key":{"site":"berlin","device":"roof-7"},"time":"2026-06-01T12:00:00Z","value":{"temp_c":22}`

func TestLatest(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20, 21, 22)
	a.get("/v1/weather/latest?site=berlin&device=roof-7").want(t, 200, "{"+roofNow+"}")
	a.get("/v1/weather/latest?device=roof-7&site=berlin&timeout=2s").want(t, 200, "{"+roofNow+"}")
	a.get("/v1/weather/latest?site=berlin&device=roof-8").wantProblem(t, noPoint)
	a.get("/v1/weather/latest?site=berlin&device=roof-7", "Authorization: Bearer secret=2").wantProblem(t, noPoint)
}

// TestAnyKey requests entities whose names do not fit into the path of a URL.
func TestAnyKey(t *testing.T) {
	a := newAPI(t)
	for i, part := range []string{"..", "a/b", "a b", "50%", "x#y&z=1+1", "München", `"`, "\n"} {
		e := tsdb.NewEntity("berlin", part)
		a.put(e, float64(i))
		got := decode[struct {
			Key   map[string]string
			Value Reading
		}](t, a.get("/v1/weather/latest?"+url.Values{"site": {"berlin"}, "device": {part}}.Encode()).body)
		if got.Key["device"] != part || float(got.Value.TempC) != float64(i) {
			t.Errorf("the latest of %q is %v", part, got)
		}
	}
}

func TestLatestMany(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20, 21, 22)
	a.put(tsdb.NewEntity("berlin", "cellar-1"), 12)
	body := `{"keys":[{"site":"berlin","device":"roof-9"},{"site":"berlin","device":"roof-7"},{"site":"berlin"},` +
		`{"site":"berlin","device":"cellar-1"},{"site":"berlin","device":"roof-7"},{"site":"berlin","device":"roof-7","floor":"9"},{"site":"","device":"x"}]}`
	got := a.do(http.MethodPost, "/v1/weather/latest", body)
	answers := decode[struct {
		Answers  []json.RawMessage
		Complete bool
	}](t, got.body)
	want := []string{
		`{"status":"missing","key":{"site":"berlin","device":"roof-9"}}`,
		`{"status":"found",` + roofNow + `}`,
		`{"status":"failed","key":{"site":"berlin"},"problem":{"type":"` + problemTypes + `invalid-input","title":"A parameter or a part of the body was refused",` +
			`"status":400,"detail":"device is missing; want a value: a key has site, device","field":"device","value":"missing","limit":"a value: a key has site, device"}}`,
		`{"status":"found","key":{"site":"berlin","device":"cellar-1"},"time":"2026-06-01T12:00:00Z","value":{"temp_c":12}}`,
		`{"status":"found",` + roofNow + `}`,
	}
	if got.StatusCode != 200 || len(answers.Answers) != 7 || answers.Complete {
		t.Fatalf("%d %s, want 7 results and complete false", got.StatusCode, got.body)
	}
	for i, w := range want {
		if string(answers.Answers[i]) != w {
			t.Errorf("result %d is %s, want %s", i, answers.Answers[i], w)
		}
	}
	for i := 5; i < 7; i++ {
		if !strings.Contains(string(answers.Answers[i]), `"failed"`) {
			t.Errorf("result %d is %s, want a failure", i, answers.Answers[i])
		}
	}
	if n := a.conn.Counts().Calls[tsdbtest.ReadRows]; n != 3 {
		t.Errorf("%d reads, want 3: one for each entity, even if it is requested twice", n)
	}

	a.do(http.MethodPost, "/v1/weather/latest", `{"keys":[{"site":"berlin","device":"roof-7"},{"site":"berlin","device":"roof-9"}]}`).
		want(t, 200, `{"answers":[{"status":"found",`+roofNow+`},{"status":"missing","key":{"site":"berlin","device":"roof-9"}}],"complete":true}`)
	a.do(http.MethodPost, "/v1/weather/latest", `{"keys":[{"site":"berlin","device":"roof-7"}]}`, "Authorization: Bearer secret=2").
		want(t, 200, `{"answers":[{"status":"missing","key":{"site":"berlin","device":"roof-7"}}],"complete":true}`)
}

// TestMaxStale changes a point outside the store: only a request that allows an old answer gets one.
func TestMaxStale(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 22)
	const path = "/v1/weather/latest?site=berlin&device=roof-7"
	many := func(query string) string {
		return a.do(http.MethodPost, "/v1/weather/latest"+query, `{"keys":[{"site":"berlin","device":"roof-7"}]}`).body
	}
	a.get(path+"&max_stale=1m").want(t, 200, "{"+roofNow+"}")
	a.spoil("acme#weather#berlin#roof-7#", noon)
	a.conn.Reset()
	a.get(path+"&max_stale=1m").want(t, 200, "{"+roofNow+"}")
	if got := many("?max_stale=1m"); !strings.Contains(got, roofNow) {
		t.Errorf("latest of many: %s", got)
	}
	if n := a.conn.Counts().Calls[tsdbtest.ReadRows]; n != 0 {
		t.Errorf("%d reads for cached points, want 0", n)
	}
	for _, query := range []string{"", "&max_stale=0s"} {
		a.get(path+query).wantProblem(t, unreadablePoint)
	}
	if got := many(""); !strings.Contains(got, unreadablePoint.name) {
		t.Errorf("latest of many, without max_stale: %s", got)
	}
	a.get(path+"&max_stale=1m", "Authorization: Bearer secret=2").wantProblem(t, noPoint)
}

// TestDeadlineKeepsWhatIsRead completes two of five reads, and delays the others beyond the deadline.
func TestDeadlineKeepsWhatIsRead(t *testing.T) {
	a := newAPI(t)
	var keys []string
	for _, device := range []string{"a", "b", "c", "d", "e"} {
		a.put(tsdb.NewEntity("berlin", device), 1)
		keys = append(keys, `{"site":"berlin","device":"`+device+`"}`)
	}
	a.conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows).Skip(2))
	got := a.do(http.MethodPost, "/v1/weather/latest?timeout=300ms", `{"keys":[`+strings.Join(keys, ",")+`]}`)
	answers := decode[struct {
		Answers []struct {
			Status  string
			Problem problem
		}
		Complete bool
	}](t, got.body)
	if got.StatusCode != 200 || answers.Complete || len(answers.Answers) != 5 {
		t.Fatalf("%d %s, want the results that were read", got.StatusCode, got.body)
	}
	count := map[string]int{}
	for _, one := range answers.Answers {
		count[one.Status]++
		if one.Status == "failed" && one.Problem.Type != problemTypes+timedOut.name {
			t.Errorf("a late result has the problem %v", one.Problem)
		}
	}
	if count["found"] != 2 || count["failed"] != 3 {
		t.Errorf("results %v, want 2 found and 3 failed: %s", count, got.body)
	}
}

// TestStoreFails checks what responses say about failures, and what they do not.
func TestStoreFails(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	paths := []string{
		"/v1/weather/latest?site=berlin&device=roof-7", "/v1/weather/group?site=berlin", "/v1/weather/history?site=berlin&device=roof-7",
		"/v1/weather/windows?site=berlin&device=roof-7&every=1h&from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z",
		"/v1/weather/silent?since=2026-06-01T00:00:00Z",
		"/v1/weather/chart?site=berlin&device=roof-7&from=2026-06-01T00:00:00Z&to=2026-06-02T00:00:00Z",
	}
	a.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
	a.get(paths[0]).wantProblem(t, internal)
	a.conn.Clear()
	a.conn.Inject(tsdbtest.Fail(codes.ResourceExhausted).On(tsdbtest.ReadRows))
	for _, path := range paths {
		got := a.get(path)
		p := got.wantProblem(t, unavailable)
		if got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
		if p.Instance == "" || !strings.Contains(a.log.String(), p.Instance) {
			t.Errorf("%s has the instance %q, which is not in the log:\n%s", path, p.Instance, a.log)
		}
	}
	a.get("/v1/weather/group", "Accept: application/x-ndjson").wantProblem(t, unavailable)
	if got := a.get("/readyz", "Authorization:"); got.StatusCode != 503 || strings.Contains(got.body, "fault") {
		t.Errorf("/readyz without a store: %d %s", got.StatusCode, got.body)
	}
	a.get("/healthz", "Authorization:").want(t, 200, "ok")

	a.conn.Clear()
	a.conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
	for _, path := range paths {
		a.get(path+"&timeout=50ms").wantProblem(t, timedOut)
	}
	a.conn.Clear()
	a.server.ready = edge.NewReady(a.store.Ping) // the other one repeats its response for a second
	a.get("/readyz", "Authorization:").want(t, 200, "ready")
	a.server.stopping.Store(true)
	a.get("/readyz", "Authorization:").want(t, 503, "stopping")
}

// TestUnreadable stores invalid JSON payloads before and after a good one.
func TestUnreadable(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20, 21, 22)
	a.spoil("acme#weather#berlin#roof-7#", noon)
	a.spoil("acme#weather#berlin#roof-7#", noon.Add(-2*time.Minute))
	if p := a.get("/v1/weather/latest?site=berlin&device=roof-7").wantProblem(t, unreadablePoint); p.Time.IsZero() || !p.Time.Equal(noon) {
		t.Errorf("the time of the unreadable point is %v", p.Time)
	}
	got := a.get("/v1/weather/history?site=berlin&device=roof-7")
	page := decode[struct{ Points []map[string]any }](t, got.body)
	for i, p := range page.Points {
		if bad := i != 1; (p["problem"] != nil) != bad || (p["value"] == nil) != bad {
			t.Errorf("point %d is %v, want a problem or a value: %v, %v", i, p, bad, !bad)
		}
	}
	if got.StatusCode != 200 || len(page.Points) != 3 {
		t.Errorf("%d %s, want 3 points", got.StatusCode, got.body)
	}
	for _, accept := range []string{asJSON, asLines} {
		if got := a.get("/v1/weather/group", "Accept: "+accept); got.StatusCode != 200 || strings.Count(got.body, unreadablePoint.name) != 1 {
			t.Errorf("%d %s, want the problem in the point's place", got.StatusCode, got.body)
		}
	}
	windows := a.get("/v1/weather/windows?site=berlin&device=roof-7&every=1h&from=2026-06-01T11:00:00Z&to=2026-06-01T13:00:00Z&aggregates=count&measures=temp_c")
	windows.want(t, 200, `{"buckets":[`+
		`{"start":"2026-06-01T11:00:00Z","end":"2026-06-01T12:00:00Z","points":1,"bad":1,"values":{"temp_c":{"count":1}}},`+
		`{"start":"2026-06-01T12:00:00Z","end":"2026-06-01T13:00:00Z","points":0,"bad":1,"values":{"temp_c":{"count":0}}}]}`)
}
