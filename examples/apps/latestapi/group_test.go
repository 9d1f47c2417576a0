package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func line(site, device string, temp int) string {
	return fmt.Sprintf(`{"key":{"site":%q,"device":%q},"time":"2026-06-01T12:00:00Z","value":{"temp_c":%d}}`, site, device, temp)
}

func TestGroup(t *testing.T) {
	a := newAPI(t)
	a.put(tsdb.NewEntity("berlin", "a"), 1, 2)
	a.put(tsdb.NewEntity("berlin", "b"), 3)
	a.put(tsdb.NewEntity("berlin2", "c"), 4)
	all := []string{line("berlin", "a", 2), line("berlin", "b", 3), line("berlin2", "c", 4)}

	a.get("/v1/weather/group?site=berlin").want(t, 200, `{"points":[`+strings.Join(all[:2], ",")+`],"more":false}`)
	a.get("/v1/weather/group").want(t, 200, `{"points":[`+strings.Join(all, ",")+`],"more":false}`)
	first := decode[struct {
		More bool
		Next string
	}](t, a.get("/v1/weather/group?limit=2").body)
	if !first.More || !strings.HasPrefix(first.Next, "/v1/weather/group?cursor=") {
		t.Errorf("the first page is %+v, want the address of the next one", first)
	}
	a.get(first.Next).want(t, 200, `{"points":[`+all[2]+`],"more":false}`)
	a.get(first.Next, "Authorization: Bearer secret=2").wantProblem(t, badCursor)
	a.get(strings.Replace(first.Next, "/group", "/keys", 1)).wantProblem(t, invalidInput) // which has no limit
	a.get("/v1/weather/group?limit=3").want(t, 200, `{"points":[`+strings.Join(all, ",")+`],"more":false}`)
	a.get("/v1/weather/group?site=nowhere").want(t, 200, `{"points":[],"more":false}`)
	a.get("/v1/weather/group", "Authorization: Bearer secret=2").want(t, 200, `{"points":[],"more":false}`)

	got := a.get("/v1/weather/group?site=berlin", "Accept: application/x-ndjson")
	got.want(t, 200, strings.Join(all[:2], "\n")+"\n"+`{"end":true}`)
	if kind := got.Header.Get("Content-Type"); kind != asLines {
		t.Errorf("the media type of the lines is %s", kind)
	}
	a.get("/v1/weather/group?limit=1", "Accept: application/x-ndjson").want(t, 200, all[0]+"\n"+`{"end":true,"more":true}`)
	a.get("/v1/weather/group?site=nowhere", "Accept: application/x-ndjson").want(t, 200, `{"end":true}`)
}

// TestGroupBreaksOff: if the store fails after the first points, the client can tell that the response is incomplete.
func TestGroupBreaksOff(t *testing.T) {
	a := newAPI(t)
	for i := range 400 {
		a.put(tsdb.NewEntity("berlin", fmt.Sprintf("d%03d", i)), 1)
	}
	a.conn.Inject(tsdbtest.Fail(codes.ResourceExhausted).On(tsdbtest.ReadRows).Skip(1))
	a.get("/v1/weather/group?site=berlin").wantProblem(t, unavailable)
	a.conn.Clear()

	a.conn.Inject(tsdbtest.Fail(codes.ResourceExhausted).On(tsdbtest.ReadRows).Skip(1))
	got := a.get("/v1/weather/group?site=berlin", "Accept: application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	if last := lines[len(lines)-1]; got.StatusCode != 200 || len(lines) < 2 || !strings.HasPrefix(last, `{"problem":`) || strings.Contains(last, "fault") {
		t.Errorf("status %d, %d lines, the last one %s; want points and then the problem", got.StatusCode, len(lines), last)
	}
	if strings.Contains(got.body, `"end"`) {
		t.Error("an incomplete response claims to be complete")
	}
}
