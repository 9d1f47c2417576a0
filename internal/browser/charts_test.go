package browser

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// serveEmpty returns a console of a store without points. The answer to the next line is held back while held says so.
func serveEmpty(t *testing.T, ctx context.Context, held *atomic.Bool, read, release chan struct{}) *pages {
	t.Helper()
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(t.Context(), vans); err != nil {
		t.Fatal(err)
	}
	page, err := web.New(web.Config{
		Store: store, Tenant: func(token string) (tenant.ID, bool) { return mine, token == "token-of-acme" },
		Operator: func(token string) bool { return token == "operator" },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/lines") || !held.CompareAndSwap(true, false) {
			page.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, r)
		close(read)
		<-release
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(func() {
		_ = page.Close()
		server.CloseClientConnections()
		server.Close()
	})
	c := &pages{url: server.URL, store: store, seen: &watch{}}
	if err := chromedp.Run(ctx, watched(ctx, c.seen)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestChartsKeepNewerPoints: a point that comes by the stream while an older line is on its way stays in the chart. A
// chart of a fixed time does not ask for all points since then.
func TestChartsKeepNewerPoints(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	read, release := make(chan struct{}), make(chan struct{})
	c := serveEmpty(t, ctx, &held, read, release)
	for i := range 20 {
		c.put(t, mine, "v", time.Now().Add(time.Duration(i-20)*time.Second), van{float64(i), "moving"})
	}
	step(t, ctx, "the chart", loginWith(c.url, "token-of-acme"), chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv"),
		until(`document.querySelector(".pill.live") !== null && document.querySelector(".source").textContent.startsWith("Read from")`))
	held.Store(true)
	step(t, ctx, "a new reading", press("-"))
	<-read
	c.put(t, mine, "v", time.Now(), van{4321, "moving"})
	const newest = `document.querySelector('.panel [role="img"]').ariaLabel.includes("newest speed: 4321")`
	step(t, ctx, "the point of the stream", until(newest))
	close(release)
	var kept bool
	step(t, ctx, "the end of the reading", until(`!document.querySelector("main").classList.contains("busy")`), chromedp.Evaluate(newest, &kept))
	if !kept {
		t.Error("the point that came while the line was read is gone")
	}
	c.quiet(t)

	step(t, ctx, "a fixed time", chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv&from=2025-01-01T00:00:00Z&to=2025-01-02T00:00:00Z"),
		until(`document.querySelector(".pill.fixed") !== null`))
	requests, _ := c.seen.take()
	for _, r := range requests {
		u, err := url.Parse(r)
		if err != nil || !strings.HasSuffix(u.Path, "/live") {
			continue
		}
		if since, err := time.Parse(time.RFC3339Nano, u.Query().Get("since")); err != nil || time.Since(since) > time.Hour {
			t.Errorf("the stream of a fixed time asks for all points since %v: %v", since, err)
		}
	}
}

// TestLargeNumbersAreLive: whole numbers that JavaScript cannot hold exactly are drawn when they arrive, and not only
// when they are read.
func TestLargeNumbersAreLive(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	counters := tsdb.MustDefine("counters", tsdb.Key("meter"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	if err := c.store.Ensure(t.Context(), counters); err != nil {
		t.Fatal(err)
	}
	repo, meter := counters.For(c.store, mine), tsdb.NewEntity("m")
	put := func(at time.Time, n int64) {
		if err := repo.Put(t.Context(), meter, at, map[string]any{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		put(time.Now().Add(time.Duration(i-20)*time.Second), 1<<53+int64(i)+1)
	}
	const newest = `document.querySelector('.panel [role="img"]').ariaLabel.includes("newest n: %s")`
	step(t, ctx, "the chart", loginWith(c.url, "token-of-acme"), chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=counters&entity=m"),
		until(`document.querySelector(".pill.live") !== null`), until(fmt.Sprintf(newest, "9.007e+15")))
	put(time.Now(), 1<<60)
	step(t, ctx, "the new number", until(fmt.Sprintf(newest, "1.153e+18")))
	c.quiet(t)
}

// TestOperatorOfAnEmptyTable: an operator comes before the first tenant, and is not sent to the login again.
func TestOperatorOfAnEmptyTable(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	var text string
	step(t, ctx, "the fleet", chromedp.Navigate(c.url+"/login"), chromedp.SendKeys("#token", "operator\r"),
		until(`location.pathname === "/fleet" && document.querySelector("main .state h2") !== null && document.querySelector("main .state.loading") === null`), chromedp.Text("main", &text))
	if !strings.Contains(text, "No tenant yet") {
		t.Errorf("the page shows %q", text)
	}
	c.quiet(t)
}
