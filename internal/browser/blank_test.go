package browser

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestSlowLine: on a line of 50 kB a second with 400 ms to each answer, the frame of a page and grey bars in place of
// its data are there within two seconds, also if nothing is in the browser's cache. It measures time, so it is not one
// of the tests that run in parallel, which may last until the race detector runs beside them.
func TestSlowLine(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	// Moving grey bars would be drawn again all the time.
	still := emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}})
	slow := chromedp.Tasks{still, network.SetCacheDisabled(true), network.EmulateNetworkConditions(false, 400, 50_000, 50_000)}
	for _, page := range []string{"/entity?tenant=acme&dataset=trips&entity=berlin%2Fvan-1&" + fixed(tripsFrom, tripsFrom.Add(time.Hour)), "/fleet?tenant=acme&dataset=trips", "/health?tenant=acme"} {
		var first, chart float64
		var links, bars int
		step(t, ctx, page, chromedp.Navigate("about:blank"), slow, chromedp.ActionFunc(func(ctx context.Context) error {
			return chromedp.Evaluate(`location.href = "`+c.url+page+`"`, nil).Do(ctx)
		}), until(`location.pathname !== "blank" && performance.getEntriesByName("first-contentful-paint").length > 0 && document.querySelector("#nav a")`),
			chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &first), chromedp.Evaluate(`document.querySelectorAll("#nav a").length`, &links),
			chromedp.Evaluate(`document.querySelectorAll("main .bone").length`, &bars),
			until(`document.querySelector(".grid .row, .u-over, .report") !== null`), chromedp.Evaluate(`performance.now()`, &chart))
		t.Logf("%.20s has content after %.0f ms, and its data after %.0f ms", page, first, chart)
		if first > 2000 || links != 5 || bars == 0 {
			t.Errorf("%.20s has content after %.0f ms, with %d links and %d grey bars", page, first, links, bars)
		}
	}
	step(t, ctx, "a fast line", network.SetCacheDisabled(false), network.EmulateNetworkConditions(false, 0, -1, -1))
}

// TestProblemsGo: while the server fails, the page of a chart says so where the chart is, with a button, and keeps what
// it has; when the server works again, the problem disappears.
func TestProblemsGo(t *testing.T) {
	ctx := another(t)
	var failing atomic.Bool
	c := serveFailing(t, ctx, &failing)
	for i := range 20 {
		c.put(t, mine, "v", time.Now().Add(time.Duration(i-20)*time.Second), van{float64(i), "moving"})
	}
	address := c.url + "/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv"
	step(t, ctx, "the chart", loginWith(c.url, "token-of-acme"), chromedp.Navigate(address), read)
	failing.Store(true)
	var plots int
	step(t, ctx, "a failure", press("-"), until(`document.querySelector(".problem[role=alert] button")?.textContent === "Retry"`), chromedp.Evaluate(`document.querySelectorAll(".u-over").length`, &plots))
	if plots != 2 {
		t.Errorf("with a problem the page has %d plots, want those before it", plots)
	}
	failing.Store(false)
	step(t, ctx, "its end", until(`document.querySelector(".problem") === null`), read)
	failing.Store(true)
	step(t, ctx, "a page that fails", chromedp.Navigate(address), until(`document.querySelector("main .state.failed button")?.textContent === "Retry" && document.querySelector("h1").textContent === "berlin / v"`))
	failing.Store(false)
	step(t, ctx, "its end", read)
}

// serveFailing returns a console whose queries of a dataset fail while failing says so.
func serveFailing(t *testing.T, ctx context.Context, failing *atomic.Bool) *pages {
	t.Helper()
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(t.Context(), vans); err != nil {
		t.Fatal(err)
	}
	page, err := web.New(web.Config{Store: store, Tenant: func(token string) (tenant.ID, bool) { return mine, token == "token-of-acme" }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failing.Load() && strings.HasPrefix(r.URL.Path, "/api/acme/trucks/") {
			http.Error(w, `{"detail": "The table does not answer."}`, http.StatusBadGateway)
			return
		}
		page.ServeHTTP(w, r)
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

var axe = flag.String("axe", "", "axe.min.js of axe-core, with which TestAxe checks all pages")

// TestAxe runs all rules of axe-core on each page, in both themes and three widths.
func TestAxe(t *testing.T) {
	if *axe == "" {
		t.Skip("-axe names no file")
	}
	script, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	c := serveTrips(t, ctx)
	step(t, ctx, "the operator", chromedp.Navigate(c.url+"/login?add=1"), chromedp.SendKeys("#token", "operator\r"), until(`location.pathname === "/fleet" && document.querySelector("#nav a") !== null`))
	hour := "&" + fixed(tripsFrom, tripsFrom.Add(time.Hour))
	for _, page := range []struct{ name, query, ready string }{
		{"fleet", "", `document.querySelector(".grid .row") !== null`},
		{"entity", "&entity=berlin%2Fvan-1&at=2025-03-01T12:30:00Z&threshold=speed_kmh%3A30" + hour, `document.querySelector(".asof td")`},
		{"entity", "&entity=berlin%2Fvan-1&view=table" + hour, `document.querySelector(".below tbody tr")`},
		{"entity", "&entity=berlin%2Fnone", `document.querySelector(".state.empty")`},
		{"compare", "&entity=berlin%2Fvan-1&entity=berlin%2Fvan-2&field=speed_kmh" + hour, `document.querySelector("div.legend button")`},
		{"keys", "", `document.querySelectorAll(".report").length >= 2`},
		{"health", "", `document.querySelectorAll(".report").length >= 8`},
	} {
		step(t, ctx, page.name, chromedp.Navigate(c.url+"/"+page.name+"?tenant=acme&dataset=trips"+page.query), until(page.ready), chromedp.Evaluate(string(script), nil))
		for _, look := range []string{"light", "dark"} {
			for _, width := range []int64{390, 768, 1440} {
				var found []string
				step(t, ctx, page.name, theme(look), chromedp.EmulateViewport(width, 900), chromedp.Evaluate(drawn, nil, awaited),
					chromedp.Evaluate(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + " " + n.failureSummary.split("\n")[1])))`, &found, awaited))
				for _, one := range found {
					t.Errorf("%s%.30s, %s, %d pixels: %s", page.name, page.query, look, width, one)
				}
			}
		}
	}
	step(t, ctx, "the end", theme("light"), chromedp.EmulateViewport(1280, 900))
}
