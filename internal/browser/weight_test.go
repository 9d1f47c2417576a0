package browser

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// mostWeight is the largest number of bytes that a page loads before its data, compressed.
const mostWeight = 200_000

// TestWeight: each page loads at most 200 kB of HTML, styles and scripts, compressed. It logs when the page shows its
// data.
func TestWeight(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	for i := range 600 {
		c.put(t, mine, "v", time.Now().Add(time.Duration(i-600)*time.Second), van{float64(i % 50), "moving"})
	}
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"))
	const loaded = `(async () => { // as if nothing was in the browser's cache
	const parts = performance.getEntriesByType("resource").map((e) => e.name).filter((name) => !new URL(name).pathname.startsWith("/api/"));
	const names = [...new Set([location.href, ...parts])], sizes = new Map();
	await Promise.all(names.map(async (name) => (await fetch(name, { cache: "no-store" })).arrayBuffer()));
	await new Promise((done) => setTimeout(done, 200));
	for (const e of performance.getEntriesByType("resource")) sizes.set(e.name, Math.max(sizes.get(e.name) || 0, e.encodedBodySize));
	return names.reduce((sum, name) => sum + sizes.get(name), 0);
})()`
	for _, page := range []struct{ path, ready string }{
		{"fleet", `document.querySelector(".grid .row") !== null`},
		{"entity", `document.querySelector('.panel [role="img"]')?.ariaLabel.includes("newest speed: 49")`},
		{"compare", `document.querySelector('.panel [role="img"]')?.ariaLabel.includes("newest v: 49") || document.querySelector(".u-over") !== null`},
		{"keys", `document.querySelectorAll(".report").length >= 2`},
		{"health", `document.querySelectorAll(".report").length >= 3`},
	} {
		var size, at float64
		step(t, ctx, page.path, chromedp.Navigate(c.url+"/"+page.path+"?tenant=acme&dataset=trucks&entity=berlin%2Fv"), until(page.ready), chromedp.Evaluate(`performance.now()`, &at), chromedp.Evaluate(loaded, &size, awaited))
		t.Logf("%s loads %.0f bytes, and shows its data %.0f ms after its address was opened", page.path, size, at)
		if size < 50_000 || size > mostWeight {
			t.Errorf("%s loads %.0f bytes, want at most %d", page.path, size, mostWeight)
		}
	}
	c.quiet(t)
}

// TestIdlePages: a page that is only open reads few rows a second while 50 vans send each second.
func TestIdlePages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"fleet", "entity", "compare", "keys", "health"} {
		t.Run(page, func(t *testing.T) { idle(t, page) })
	}
}

func idle(t *testing.T, name string) {
	ctx := another(t)
	reader := metric.NewManualReader()
	store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Telemetry: tsdb.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), Tenants: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(t.Context(), vans); err != nil {
		t.Fatal(err)
	}
	page, err := web.New(web.Config{Store: store, Metrics: reader, Tenant: func(token string) (tenant.ID, bool) { return mine, token == "token-of-acme" }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page)
	t.Cleanup(func() {
		_ = page.Close()
		server.CloseClientConnections()
		server.Close()
	})
	c := &pages{url: server.URL, store: store, seen: &watch{}}
	const fleet, seconds = 50, 20
	send := func(at time.Time) {
		points := make([]tsdb.Point[van], fleet)
		for i := range points {
			points[i] = tsdb.Point[van]{Entity: tsdb.NewEntity("berlin", string(rune('a'+i%26))+string(rune('a'+i/26))), Time: at, Value: van{float64(i), "moving"}}
		}
		if _, err := vans.For(store, mine).PutMany(t.Context(), points); err != nil {
			t.Error(err)
		}
	}
	for i := range 90 {
		send(time.Now().Add(time.Duration(i-90) * time.Second))
	}
	sending, stop := context.WithCancel(t.Context())
	sends := make(chan struct{})
	go func() {
		defer close(sends)
		for tick := time.Tick(time.Second); ; {
			select {
			case <-sending.Done():
				return
			case now := <-tick:
				send(now)
			}
		}
	}()
	defer func() { stop(); <-sends }()
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"))
	step(t, ctx, name, chromedp.Navigate(c.url+"/"+name+"?tenant=acme&dataset=trucks&entity=berlin%2Faa&entity=berlin%2Fba"), chromedp.Sleep(3*time.Second))
	before := rowsRead(t, reader)
	step(t, ctx, name, chromedp.Sleep(seconds*time.Second))
	rate := (rowsRead(t, reader) - before) / seconds
	t.Logf("%s reads %.0f rows a second while %d vans send each second", name, rate, fleet)
	if rate > 12*fleet {
		t.Errorf("%s reads %.0f rows a second while %d vans send each second", name, rate, fleet)
	}
}

func rowsRead(t *testing.T, reader *metric.ManualReader) (rows float64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[int64]); ok && m.Name == "db.client.response.returned_rows" {
				for _, p := range h.DataPoints {
					rows += float64(p.Sum)
				}
			}
		}
	}
	return rows
}
