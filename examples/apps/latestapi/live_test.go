package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// reader is a client's stream of events.
type reader struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
	id   string
}

// live opens a stream of acme, and reads its first event, which has no data.
func (a *api) live(query string, headers ...string) *reader {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.url+"/v1/weather/live"+query, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != asEvents {
		a.t.Fatalf("%s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	r := &reader{t: a.t, resp: resp, in: bufio.NewScanner(resp.Body)}
	if data, _ := r.event(); data != "" || r.id == "" {
		a.t.Fatalf("the first event has the data %q and the ID %q", data, r.id)
	}
	return r
}

// event reads the next event. It returns false at the end of the stream.
func (r *reader) event() (data string, more bool) {
	for r.in.Scan() {
		name, value, _ := strings.Cut(r.in.Text(), ": ")
		switch name {
		case "data":
			data = value
		case "id":
			r.id = value
		case "":
			return data, true
		}
	}
	return data, false
}

// want reads an event with the temperature of a device.
func (r *reader) want(device string, temp float64) {
	r.t.Helper()
	data, _ := r.event()
	var p struct {
		Key   struct{ Device string }
		Value Reading
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil || p.Key.Device != device || float(p.Value.TempC) != temp {
		r.t.Fatalf("%s, %v; want %v of %s", data, err, temp, device)
	}
}

// TestLive: a client gets each new point of its group, and continues where it was after it was disconnected.
func TestLive(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 1, 2, 3)
	all := a.live("?site=berlin")
	one := a.live("?site=berlin&device=roof-7")
	a.put(roof, 4)
	all.want("roof-7", 4)
	one.want("roof-7", 4)
	a.put(tsdb.NewEntity("hamburg", "x"), 5)
	a.put(tsdb.NewEntity("berlin", "y"), 6)
	all.want("y", 6)
	_ = all.resp.Body.Close()
	a.put(roof, 7)
	one.want("roof-7", 7)
	again := a.live("?site=berlin&since=2026-06-01T00:00:00Z", "Last-Event-ID: "+all.id)
	again.want("roof-7", 7)
	since := a.live("?site=berlin&device=roof-7&timeout=1s&since=2026-06-01T11:59:00Z")
	since.want("roof-7", 2)
	since.want("roof-7", 7)
	if data, more := since.event(); more {
		t.Errorf("%s after the timeout", data)
	}
	a.live("?device=roof-7&site=berlin&since=0001-01-01T00:00:00Z").want("roof-7", 1)
}

// TestLiveEnds with the server, which then accepts no new stream.
func TestLiveEnds(t *testing.T) {
	a := newAPI(t)
	r := a.live("")
	a.server.stopping.Store(true)
	a.server.stop(errStopping)
	if data, more := r.event(); more {
		t.Errorf("%s after the end", data)
	}
	a.get("/v1/weather/live").wantProblem(t, unavailable)
}

// TestLiveRefuses what is not allowed before the stream begins.
func TestLiveRefuses(t *testing.T) {
	a := newAPI(t)
	r := a.live("?site=berlin")
	id := "Last-Event-ID: " + r.id
	a.get("/v1/weather/live?site=berlin", id, "Authorization: Bearer secret=2").wantProblem(t, badCursor)
	a.get("/v1/weather/live?site=hamburg", id).wantProblem(t, badCursor)
	a.get("/v1/positions/live", id).wantProblem(t, badCursor)
	a.get("/v1/weather/live", "Accept: application/json").wantProblem(t, notAcceptable)
	a.get("/v1/weather/live", "Authorization:").wantProblem(t, unauthorized)
	a.get("/v1/nothing/live").wantProblem(t, noDataset)
	if h := a.do(http.MethodHead, "/v1/weather/live", ""); h.StatusCode != 200 || h.body != "" {
		t.Errorf("HEAD: %d %s", h.StatusCode, h.body)
	}
	for range 99 {
		a.live("")
	}
	over := a.get("/v1/weather/live")
	if p := over.wantProblem(t, overLimit); p.Field != "followers" || over.Header.Get("Retry-After") != "1" {
		t.Errorf("the 101st stream gets %+v, Retry-After %s", p, over.Header.Get("Retry-After"))
	}
	other := a.do(http.MethodGet, "/v1/weather/live?timeout=10ms", "", "Authorization: Bearer secret=2")
	if other.StatusCode != 200 {
		t.Errorf("another tenant gets %d", other.StatusCode)
	}
}

// deadlines records the deadlines that a handler sets for its connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestLiveOutlivesTimeouts: the server's timeouts for other requests do not end a stream, and a client that does not
// read does.
func TestLiveOutlivesTimeouts(t *testing.T) {
	a := newAPI(t)
	began := time.Now()
	w := &deadlines{httptest.NewRecorder(), began, time.Time{}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/weather/live?timeout=10ms", nil)
	r.Header.Set("Authorization", "Bearer secret")
	a.server.handler().ServeHTTP(w, r)
	if !w.read.IsZero() || w.write.Before(began.Add(sendTime)) || w.Code != 200 || !w.Flushed {
		t.Errorf("%d, deadlines %v and %v", w.Code, w.read, w.write)
	}
}

// ending is a codec that ends something when it decodes a payload, which it refuses.
type ending struct{ end func() }

func (ending) Tag() string                                 { return "ending" }
func (ending) Append(dst []byte, _ string) ([]byte, error) { return append(dst, 'x'), nil }
func (e ending) Decode([]byte) (string, error) {
	e.end()
	return "", errors.New("refused")
}

// TestLiveAtHeartbeat: what a follower has delivered is sent, also if the wait for it ends at that moment.
func TestLiveAtHeartbeat(t *testing.T) {
	a := newAPI(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	words := tsdb.MustDefine("words", tsdb.Key("user"), codec.Codec[string](ending{func() { cancel(errHeartbeat) }}), tsdb.SchemaOptions{})
	if err := a.store.Ensure(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	from, err := show(a.store, words, nil).follow(t.Context(), acme, []string{"ada"}, tsdb.FollowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	if err := words.For(a.store, acme).Put(t.Context(), tsdb.NewEntity("ada"), noon, ""); err != nil {
		t.Fatal(err)
	}
	sent := 0
	err = from.next(ctx, func(_ point, _ string, err error) error {
		if _, unreadable := errors.AsType[*tsdb.PointError](err); unreadable {
			sent++
		}
		return nil
	})
	if sent != 1 || !errors.Is(err, errHeartbeat) {
		t.Errorf("%d points were sent, %v; want the one that cannot be read", sent, err)
	}
}
