package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var acme, other = tenant.MustParse("acme"), tenant.MustParse("other")

// truck is what the trucks of a console under test send.
type truck struct {
	Speed float64 `json:"speed"`
	State string  `json:"state"`
}

var trucks = tsdb.MustDefine("trucks", tsdb.Key("depot", "truck"), codec.JSON[truck](), tsdb.SchemaOptions{})

const (
	fleetSize = 9_990 // a stream follows up to 10,000
	html      = "<img src=//example.com/x onerror=alert(1)>"
)

// console is a console in this process.
type console struct {
	t      *testing.T
	store  *tsdb.Store
	reader *metric.ManualReader
	url    string
	seen   *watch
}

// openConsole returns a console of two tenants. Acme has almost 10,000 trucks; 10 are silent, and one has an hour of
// points with a gap.
func openConsole(t *testing.T, ctx context.Context) *console {
	t.Helper()
	reader := metric.NewManualReader()
	store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Telemetry: tsdb.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, store: store, reader: reader, seen: &watch{}}
	pages, err := web.New(web.Config{Store: store, Tenant: func(token string) (tenant.ID, bool) {
		id, err := tenant.Parse(strings.TrimPrefix(token, "secret-of-"))
		return id, err == nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	c.url = server.URL
	t.Cleanup(func() {
		_ = pages.Close()
		server.CloseClientConnections()
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Ensure(t.Context(), trucks); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var points []tsdb.Point[truck]
	for i := range fleetSize {
		at := now
		if i%1000 == 500 {
			at = now.Add(-time.Hour * time.Duration(i/1000+1))
		}
		points = append(points, tsdb.Point[truck]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("truck-%04d", i)), Time: at, Value: truck{float64(i), "driving"}})
	}
	for s := range 360 {
		if s > 200 && s < 250 {
			continue
		}
		points = append(points, tsdb.Point[truck]{Entity: tsdb.NewEntity("hamburg", html), Time: now.Add(time.Duration(s-360) * 10 * time.Second), Value: truck{float64(s % 60), []string{"driving", "parked"}[s/40%2]}})
	}
	c.put(acme, points...)
	c.put(other, tsdb.Point[truck]{Entity: tsdb.NewEntity("paris", "secret-truck"), Time: now})
	if err := chromedp.Run(ctx, watched(ctx, c.seen), theme("light"), chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *console) put(id tenant.ID, points ...tsdb.Point[truck]) {
	c.t.Helper()
	for part := range slices.Chunk(points, 1000) {
		if _, err := trucks.For(c.store, id).PutMany(c.t.Context(), part); err != nil {
			c.t.Fatal(err)
		}
	}
}

// login fills in the form, and waits for the page that it leads to.
func (c *console) login(token string) chromedp.Action {
	return chromedp.Tasks{chromedp.Navigate(c.url + "/login?add=1"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+kb.Enter), until(`location.pathname === "/fleet"`)}
}

func (c *console) open(path string, pairs ...string) chromedp.Action {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return chromedp.Navigate(c.url + path + "?" + v.Encode())
}

// until waits for a condition of the page, also while another page is loaded.
func until(js string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, 45*time.Second, fmt.Errorf("never: %s", js))
		defer cancel()
		for wait := 10 * time.Millisecond; ; wait = min(wait*5/4, 100*time.Millisecond) { // each look costs the browser some milliseconds
			met := false
			if err := chromedp.Evaluate("(() => { try { return Boolean("+js+") } catch { return false } })()", &met).Do(ctx); err == nil && met {
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(wait):
			}
		}
	})
}

// awaited waits for the promise that a script returns.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func press(keys string) chromedp.Action { return chromedp.KeyEvent(keys) }

// step runs actions and names them if they fail.
func step(t *testing.T, ctx context.Context, what string, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var at, text string
		_ = chromedp.Run(ctx, chromedp.Location(&at), chromedp.Text("main", &text))
		t.Fatalf("%s: %v at %s:\n%.600s", what, err, at, text)
	}
}

// clean checks that the page asked only its own server, and reported no error.
func (c *console) clean() {
	c.t.Helper()
	requests, errors := c.seen.take()
	for _, r := range requests {
		if !strings.HasPrefix(r, c.url+"/") && !strings.HasPrefix(r, "data:") && r != "about:blank" {
			c.t.Errorf("the page requested %s", r)
		}
	}
	if len(errors) > 0 {
		c.t.Errorf("the page reported %q", errors)
	}
}

// TestConsoleFleet opens a fleet of almost 10,000 entities: the silent ones first, few rows in the page, a new point at
// once, search, keys.
func TestConsoleFleet(t *testing.T) {
	ctx := browser(t)
	c := openConsole(t, ctx)
	step(t, ctx, "the login", chromedp.Navigate(c.url+"/fleet?tenant=acme"), chromedp.WaitVisible("#token"))
	checkLooks(t, ctx, "login")
	step(t, ctx, "the fleet", c.login("secret-of-acme"), until(`document.querySelector(".pill.live") && document.querySelector(".count").textContent === "10 silent of 9991"`))
	var rows int
	var names []string
	step(t, ctx, "the rows", chromedp.Evaluate(`document.querySelectorAll(".grid .row").length`, &rows),
		chromedp.Evaluate(`[...document.querySelectorAll(".grid .row")].sort((a, b) => a.index - b.index).slice(0, 11).map((n) => n.querySelector(".name a").textContent)`, &names))
	if rows > 60 || len(names) != 11 || names[0] != "berlin/truck-9500" || names[9] != "berlin/truck-0500" || names[10] != "berlin/truck-0000" {
		t.Errorf("%d rows in the page, first %q; want those in view, the longest silence first", rows, names)
	}
	checkLooks(t, ctx, "fleet")

	began := time.Now() // the first row of those that are not silent stays where it is
	c.put(acme, tsdb.Point[truck]{Entity: tsdb.NewEntity("berlin", "truck-0000"), Time: began, Value: truck{777.25, "driving"}})
	step(t, ctx, "the new point", until(`[...document.querySelectorAll(".grid .row .v0")].some((n) => n.textContent === "777.25")`))
	t.Logf("a point is in the page %v after it was put", time.Since(began).Round(time.Millisecond))
	c.put(acme, tsdb.Point[truck]{Entity: tsdb.NewEntity("berlin", "truck-9500"), Time: time.Now(), Value: truck{1, "back"}})
	step(t, ctx, "one silent less", until(`document.querySelector(".count").textContent === "9 silent of 9991"`))
	c.put(acme, tsdb.Point[truck]{Entity: tsdb.NewEntity("zürich", "new"), Time: time.Now(), Value: truck{1, "new"}})
	step(t, ctx, "a new entity", until(`document.querySelector(".count").textContent === "9 silent of 9992"`))

	step(t, ctx, "the end of the list", chromedp.Evaluate(`document.querySelector(".grid").scrollTop = 1e9`, nil),
		until(`[...document.querySelectorAll(".grid .row:not([hidden]) .name a")].some((n) => n.textContent === "zürich/new")`),
		until(`document.querySelectorAll(".grid .row").length < 80`))
	step(t, ctx, "search", chromedp.Evaluate(`document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }))`, nil), until(`document.activeElement.type === "search"`), press("truck-123"),
		until(`document.querySelector(".count").textContent === "0 silent of 10" && location.search.includes("q=truck-123")`))
	step(t, ctx, "keys", press(kb.Enter), press("x"), press("j"), press("x"), until(`new URLSearchParams(location.search).getAll("pick").join() === "berlin/truck-1230,berlin/truck-1231"`))
	step(t, ctx, "compare", press("c"), until(`location.pathname === "/compare" && document.querySelectorAll(".chip").length === 2 && document.querySelector(".plot canvas")`))
	checkLooks(t, ctx, "compare")
	step(t, ctx, "back", chromedp.Evaluate(`history.back()`, nil), until(`location.pathname === "/fleet" && document.querySelectorAll('.grid .row[aria-selected="true"]').length === 2`))
	step(t, ctx, "the help", chromedp.Evaluate(`document.activeElement.blur()`, nil), press("?"), until(`document.querySelector("dialog[open] kbd")`), press(kb.Escape), until(`!document.querySelector("dialog")`))
	step(t, ctx, "another prefix on the server", c.open("/fleet", "tenant", "acme", "q", "hamburg/<img"), until(`document.querySelector(".count").textContent === "0 silent of 1"`))
	c.clean()
}

// TestConsoleEntity opens the chart of an entity whose name is HTML: zoom and the back button change the request, the
// gap is a gap, the as-of cursor, table and file show its points.
func TestConsoleEntity(t *testing.T) {
	ctx := browser(t)
	c := openConsole(t, ctx)
	step(t, ctx, "the login", c.login("secret-of-acme"))
	id := tsdb.NewEntity("hamburg", html).String()
	step(t, ctx, "the entity", c.open("/entity", "tenant", "acme", "dataset", "trucks", "entity", id),
		until(`document.querySelectorAll(".panel").length === 2 && document.querySelector(".pill.live") && document.querySelector(".source").textContent.startsWith("Read from")`))
	var heading string
	step(t, ctx, "its name", chromedp.Text("h1", &heading))
	if heading != "hamburg / "+html {
		t.Errorf("the heading is %q, want the name as text", heading)
	}
	checkLooks(t, ctx, "entity")
	lines := func() (all []url.Values) {
		requests, errors := c.seen.take()
		if len(errors) > 0 {
			t.Errorf("the page reported %q", errors)
		}
		for _, r := range requests {
			if u, err := url.Parse(r); err == nil && strings.HasSuffix(u.Path, "/lines") {
				all = append(all, u.Query())
			}
		}
		return all
	}
	first := lines()
	width := func(q url.Values) time.Duration {
		from, _ := time.Parse(time.RFC3339Nano, q.Get("from"))
		to, _ := time.Parse(time.RFC3339Nano, q.Get("to"))
		return to.Sub(from)
	}
	if len(first) == 0 || width(first[0]) != time.Hour {
		t.Fatalf("the chart asked for %v, want an hour", first)
	}
	const drag = `(() => {
		const over = document.querySelector(".u-over"), box = over.getBoundingClientRect();
		const at = (type, part) => over.dispatchEvent(new MouseEvent(type, { clientX: box.left + part * box.width, clientY: box.top + 20, bubbles: true, button: 0, movementX: 9 }));
		at("mousemove", .25); at("mousedown", .25); at("mousemove", .5); at("mousemove", .75);
		document.dispatchEvent(new MouseEvent("mouseup", { clientX: box.left + .75 * box.width, clientY: box.top + 20, bubbles: true, button: 0 }));
	})()`
	quiet := until(`!document.querySelector("main").classList.contains("busy")`)
	step(t, ctx, "zoom", chromedp.Evaluate(drag, nil), until(`location.search.includes("from=")`), quiet)
	if zoomed := lines(); len(zoomed) == 0 || width(zoomed[len(zoomed)-1]) < 28*time.Minute || width(zoomed[len(zoomed)-1]) > 32*time.Minute {
		t.Errorf("after zooming to a half, the chart asked for %v", zoomed)
	}
	step(t, ctx, "zoom by key", chromedp.Evaluate(`document.activeElement.blur()`, nil), press("-"), quiet)
	if zoomed := lines(); len(zoomed) == 0 || width(zoomed[len(zoomed)-1]) < 40*time.Minute {
		t.Errorf("after zooming out, the chart asked for %v", zoomed)
	}
	step(t, ctx, "back twice", chromedp.Evaluate(`history.go(-2)`, nil), until(`!location.search.includes("from=")`), until(`document.querySelector(".pill.live")`), quiet)
	var broken int
	step(t, ctx, "the gap", chromedp.Evaluate(`fetch("/api/acme/trucks/lines?field=speed&columns=800&entity="+encodeURIComponent(`+fmt.Sprintf("%q", id)+`)+"&from="+new Date(Date.now()-36e5).toISOString()+"&to="+new Date().toISOString()).then((r) => r.json()).then((l) => l.lines[0].v.filter((v) => v === null).length)`,
		&broken, awaited))
	if broken != 1 {
		t.Errorf("%d gaps, want one", broken)
	}
	const click = `(() => {
		const over = document.querySelector(".u-over"), box = over.getBoundingClientRect();
		for (const type of ["mousemove", "mousedown", "mouseup", "click"]) over.dispatchEvent(new MouseEvent(type, { clientX: box.left + box.width / 4, clientY: box.top + 20, bubbles: true, button: 0 }));
	})()`
	step(t, ctx, "the as-of cursor", chromedp.Evaluate(click, nil), until(`location.search.includes("at=") && document.querySelector(".asof tbody td.value")`))
	began := time.Now()
	c.put(acme, tsdb.Point[truck]{Entity: tsdb.NewEntity("hamburg", html), Time: began, Value: truck{123.5, "arrived"}})
	step(t, ctx, "a new point", until(`document.querySelector('.panel [role="img"]').ariaLabel.includes("newest speed: 123.5") && document.querySelector('.bands [role="img"]').ariaLabel.includes("newest arrived")`))
	t.Logf("a point is in the chart %v after it was put", time.Since(began).Round(time.Millisecond))
	step(t, ctx, "the table", press("v"), until(`document.querySelectorAll(".below tbody tr").length === 100`))
	checkLooks(t, ctx, "table")
	step(t, ctx, "reload", chromedp.Reload(), until(`document.querySelectorAll(".below tbody tr").length === 100`))
	var file string
	step(t, ctx, "the file", chromedp.Evaluate(`fetch(document.querySelector("a[download]").href).then((r) => r.text())`, &file, awaited))
	if !strings.HasPrefix(file, "depot,truck,time,speed,state\nhamburg,"+html+",") {
		t.Errorf("the file begins %.120q", file)
	}
	c.clean()
}

// TestConsoleTenants: a user sees nothing of another tenant, whatever the address says, and every such page has words
// for it.
func TestConsoleTenants(t *testing.T) {
	ctx := browser(t)
	c := openConsole(t, ctx)
	step(t, ctx, "the login", c.login("secret-of-acme"))
	for _, page := range []string{"/fleet", "/entity", "/compare", "/health"} {
		var text string
		step(t, ctx, page, c.open(page, "tenant", "other", "dataset", "trucks", "entity", "paris/secret-truck"), until(`document.querySelector(".state.forbidden")`), chromedp.Text("main", &text))
		if strings.Contains(text, "secret-truck") || !strings.Contains(text, "Not allowed") {
			t.Errorf("%s of another tenant shows %q", page, text)
		}
	}
	checkLooks(t, ctx, "forbidden")
	c.clean()
	step(t, ctx, "a tenant without data", c.login("secret-of-empty"), c.open("/fleet", "tenant", "empty"), until(`document.querySelector(".state.empty")`))
	checkLooks(t, ctx, "empty")
	c.put(tenant.MustParse("empty"), tsdb.Point[truck]{Entity: tsdb.NewEntity("a", "b"), Time: time.Now()})
	step(t, ctx, "the first point", until(`document.querySelector(".grid .row")`))
	step(t, ctx, "an unknown dataset", c.open("/fleet", "tenant", "acme", "dataset", "nothing"), until(`document.querySelector(".state.empty a.button")`))
	c.clean()
	step(t, ctx, "the log-out", chromedp.Submit(`form[action="/logout"]`), until(`location.pathname === "/login"`), c.open("/fleet", "tenant", "acme"), until(`location.pathname === "/login"`))
	c.clean()
}
