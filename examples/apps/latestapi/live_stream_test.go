package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// streamOf opens a stream of acme without a network, with a simulated clock, and returns what was sent when it ends.
// After a second, during is called.
func streamOf(t *testing.T, query string, w http.ResponseWriter, during func(store *tsdb.Store, conn *tsdbtest.Conn)) (log string) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock; it runs in process")
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: time.Second}}}, schemas...)
	ts, logged := &bearer{new(edge.Tokens)}, &syncBuffer{}
	if err := ts.Add("secret=acme"); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(store, ts, app.Bounds{Body: 64 << 10, Requests: 16, Timeout: 5 * time.Second}, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(time.Second)
		during(store, conn)
	}()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/weather/live?"+query, nil)
	r.Header.Set("Authorization", "Bearer secret")
	s.handler().ServeHTTP(w, r)
	return logged.String()
}

// TestLiveHeartbeat: a stream without points sends a comment every 15 seconds, so that proxies keep it open, whether
// points come or not.
func TestLiveHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		log := streamOf(t, "timeout=50s", w, func(store *tsdb.Store, _ *tsdbtest.Conn) {
			time.Sleep(13 * time.Second)
			_ = weather.For(store, acme).Put(t.Context(), roof, time.Now(), Reading{TempC: num(7)})
		})
		text := w.Body.String()
		if n := strings.Count(text, ": still here\n\n"); n != 3 || strings.Contains(text, "problem") || log != "" {
			t.Errorf("%d comments in 50 s with a point after 14 s, want 3: %s\n%s", n, text, log)
		}
		if point, comment := strings.Index(text, "data: "), strings.Index(text, ": still"); point < 0 || point > comment {
			t.Errorf("the point does not come first: %s", text)
		}
		if w.Header().Get("X-Accel-Buffering") != "no" {
			t.Error("a proxy may hold events back")
		}
	})
}

// TestLiveProblem: a stream that cannot go on says why in its last event, and the log has the error.
func TestLiveProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		log := streamOf(t, "timeout=1h", w, func(_ *tsdb.Store, conn *tsdbtest.Conn) {
			conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows))
		})
		text := strings.TrimSpace(w.Body.String())
		last := text[strings.LastIndex(text, "\n\n")+2:]
		if !strings.HasPrefix(last, "event: problem\ndata: {") || !strings.Contains(last, timedOut.name) || strings.Contains(last, "rpc") || !strings.Contains(log, "request failed") {
			t.Errorf("the last event is %s\nlog: %s", last, log)
		}
	})
}

// gone is a client that has left after some events.
type gone struct {
	*httptest.ResponseRecorder
	left int
}

func (g *gone) Write(b []byte) (int, error) {
	if g.left--; g.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return g.ResponseRecorder.Write(b)
}

// TestLiveClientLeaves: the stream of a client that has left ends at the next event, and is no error of the server.
func TestLiveClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &gone{httptest.NewRecorder(), 1}
		log := streamOf(t, "", w, func(store *tsdb.Store, _ *tsdbtest.Conn) {
			_ = weather.For(store, acme).Put(t.Context(), roof, time.Now(), Reading{TempC: num(7)})
		})
		if took := time.Since(began); took > 10*time.Second || log != "" || strings.Contains(w.Body.String(), "data") {
			t.Errorf("the stream ended after %v, log %q, sent %s", took, log, w.Body)
		}
	})
}

// TestLiveEvents: what stands in place of a point.
func TestLiveEvents(t *testing.T) {
	a := newAPI(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/weather/live", nil)
	w := httptest.NewRecorder()
	out := events{w: w, control: http.NewResponseController(w)}
	if err := a.server.event(&out, r, point{}, "here", &tsdb.MissedError{Points: 3, Oldest: noon.Add(-time.Hour), Newest: noon}); err != nil {
		t.Fatal(err)
	}
	if got := w.Body.String(); got != "event: missed\nid: here\ndata: {\"points\":3,\"oldest\":\"2026-06-01T11:00:00Z\",\"newest\":\"2026-06-01T12:00:00Z\"}\n\n" {
		t.Errorf("missed points are %q", got)
	}
	if err := a.server.event(&out, r, point{}, "here", tsdb.ErrErased); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("an error that ends the stream is %v", err)
	}
	a.put(roof, 1, 2)
	a.spoil("acme#weather#berlin#roof-7#", noon.Add(-time.Minute))
	stream := a.live("?site=berlin&device=roof-7&since=2026-06-01T11:00:00Z")
	data, _ := stream.event()
	if got := decode[shownPoint](t, data); got.Problem.Type != problemTypes+unreadablePoint.name || got.Value != nil || !got.Time.Equal(noon.Add(-time.Minute)) {
		t.Errorf("an unreadable point is %s", data)
	}
	stream.want("roof-7", 2)
}

// shownPoint is a point with a problem, as a client reads it.
type shownPoint struct {
	Time    time.Time
	Value   *Reading
	Problem problem
}
