package main

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestTwoAuthorizations: a request with two headers is refused, whichever is valid.
func TestTwoAuthorizations(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/v1/weather/latest?"+at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Authorization"] = []string{"Bearer secret", "Bearer secret"}
	got, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != 401 {
		t.Errorf("two Authorization headers: %d, want 401", got.StatusCode)
	}
}

// TestSlowBodiesKeepNobodyOut: slots are for reads; a body that arrives slowly uses none.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	a := newLimited(t, app.Bounds{Body: 1000, Requests: 1, Timeout: 5 * time.Second})
	a.put(roof, 20)
	body, send := io.Pipe()
	done := make(chan error)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/v1/weather/latest", body)
		if err == nil {
			r.Header.Set("Authorization", "Bearer secret")
			r.Header.Set("Content-Type", asJSON)
			var got *http.Response
			if got, err = a.client.Do(r); err == nil {
				err = got.Body.Close()
			}
		}
		done <- err
	}()
	_, _ = io.WriteString(send, `{"keys":[`)
	if got := a.get("/v1/weather/latest?" + at); got.StatusCode != 200 {
		t.Errorf("while a body arrives slowly: %d %s", got.StatusCode, got.body)
	}
	_, _ = io.WriteString(send, `{"site":"berlin","device":"roof-7"}]}`)
	_ = send.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLimitsOfATenant: 429 has a Retry-After. An interval that is never allowed is a mistake of the client.
func TestLimitsOfATenant(t *testing.T) {
	a := newWith(t, app.Bounds{Body: 1000, Requests: 16, Timeout: 5 * time.Second}, limit.Table{
		Defaults: limit.Limits{ConcurrentReads: 1, RangeLength: time.Hour},
	})
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
	if p := got.wantProblem(t, overLimit); p.Field != "concurrent_reads" || got.Header.Get("Retry-After") != "1" {
		t.Errorf("problem %+v, Retry-After %q", p, got.Header.Get("Retry-After"))
	}
	close(leave)
	if first := <-done; first.StatusCode != 200 {
		t.Errorf("the running read: %d %s", first.StatusCode, first.body)
	}
	if p := a.get("/v1/weather/history?"+at).wantProblem(t, invalidInput); p.Field != "range_length" {
		t.Errorf("too long a range: %+v", p)
	}
}

// TestATimeoutOfTheClientsOwn: a timeout that the client asked for is not logged, and cannot be so short that every
// read fails.
func TestATimeoutOfTheClientsOwn(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	for _, text := range []string{"1ns", "9ms", "0s", "-1s", "1h"} {
		a.get("/v1/weather/latest?timeout="+text+"&"+at).wantProblem(t, invalidInput)
	}
	a.conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
	a.get("/v1/weather/latest?timeout=10ms&"+at).wantProblem(t, timedOut)
	if got := a.do(http.MethodPost, "/v1/weather/latest?timeout=10ms", `{"keys":[{"site":"berlin","device":"roof-7"}]}`); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if a.log.String() != "" {
		t.Errorf("the log: %s", a.log)
	}
}

func TestKeysThatAreNotUTF8(t *testing.T) {
	a := newAPI(t)
	a.put(roof, 20)
	got := a.do(http.MethodPost, "/v1/weather/latest", `{"keys":[{"site":"berlin","device":"`+"\xff"+`"}]}`)
	if p := got.wantProblem(t, invalidInput); !strings.Contains(p.Detail, "UTF-8") {
		t.Errorf("problem %+v", p)
	}
}

// TestReadinessIsCheap: however many requests there are, the table is read at most once a second.
func TestReadinessIsCheap(t *testing.T) {
	a := newAPI(t)
	a.conn.Reset()
	begin := time.Now()
	for range 300 {
		if got := a.get("/readyz", "Authorization:"); got.StatusCode != 200 {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
	}
	if n, most := a.conn.Counts().Calls[tsdbtest.ReadRows], 1+int(time.Since(begin)/time.Second); n > most {
		t.Errorf("%d reads of the table, want at most %d", n, most)
	}
}

// TestProfileLimits opens the store as the program does, with and without the flag.
func TestProfileLimits(t *testing.T) {
	programtest.CheckProfileLimits(t, func(flags ...string) (*tsdb.Store, error) {
		o, err := parse(append(flags, "-dir", t.TempDir(), "-token", "secret=acme"), io.Discard)
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
