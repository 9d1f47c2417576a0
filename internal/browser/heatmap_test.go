package browser

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

const (
	columns = 24
	width   = 10 * time.Millisecond
)

// timeFirst returns a page of writes whose keys begin with the time. The value of a key field is HTML.
func timeFirst(t *testing.T) (page []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)))
		recorder, err := heatmap.NewRecorder(heatmap.Options{Column: width})
		if err != nil {
			t.Fatal(err)
		}
		store, err := embedded.New(t.Context(), embedded.Options{DialOptions: recorder.DialOptions(), GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		schema := tsdb.MustDefine("readings", tsdb.Key("time", "device"), codec.Float64(), tsdb.SchemaOptions{})
		if err := store.Ensure(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
		for range columns {
			var points []tsdb.Point[float64]
			for i := range 200 {
				now := time.Now().Add(time.Duration(i/25) * time.Millisecond)
				points = append(points, tsdb.Point[float64]{
					Entity: tsdb.NewEntity(fmt.Sprint(now.UnixMilli()), fmt.Sprintf("<img src=//example.com/%d>", i)), Time: now, Value: 1,
				})
			}
			if _, err := schema.For(store, tenant.MustParse("acme")).PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
			time.Sleep(width)
		}
		page = heatmapOf(t, store, recorder)
	})
	return page
}

// heatmapOf returns the page of a recorder: what the console answers, in the page that tidectl writes.
func heatmapOf(t *testing.T, store *tsdb.Store, recorder *heatmap.Recorder) []byte {
	console, err := web.New(web.Config{
		Store: store, Keys: recorder,
		Tenant:   func(string) (id tenant.ID, ok bool) { return id, false },
		Operator: func(token string) bool { return token == "operator" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	login := httptest.NewRequest("POST", "/login", strings.NewReader("token=operator"))
	login.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	console.ServeHTTP(answer, login)
	request := httptest.NewRequest("GET", "/api/table/heatmap", http.NoBody)
	for _, cookie := range answer.Result().Cookies() {
		request.AddCookie(cookie)
	}
	answer = httptest.NewRecorder()
	console.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("the console answers with status %d", answer.Code)
	}
	page, err := os.ReadFile("../../examples/internal/heatview/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(page, []byte("{{DATA}}"), answer.Body.Bytes(), 1)
}

// strongest returns, for each column of the picture, the row with the darkest pixel in the light theme, or the
// brightest in the dark one; -1 for none.
const strongest = `(() => {
	const canvas = document.getElementById("cells"), g = canvas.getContext("2d"), dark = document.documentElement.dataset.theme === "dark";
	const rows = Number(canvas.dataset.rows), columns = Number(canvas.dataset.columns), out = [];
	for (let c = 0; c < columns; c++) {
		let best = -1, most = -1;
		for (let r = 0; r < rows; r++) {
			const p = g.getImageData(Math.floor((c + .5) * canvas.width / columns), Math.floor((r + .5) * canvas.height / rows), 1, 1).data;
			if (p[3] === 0) continue;
			const light = p[0] + p[1] + p[2], strength = dark ? light : 765 - light;
			if (strength > most) [best, most] = [r, strength];
		}
		out.push(best);
	}
	return out;
})()`

// mouse returns what moves or presses the mouse over the first column, at a part of the height.
func mouse(at float64, event, id string) string {
	return fmt.Sprintf(`(() => {
		const node = document.getElementById(%q), box = node.getBoundingClientRect();
		node.dispatchEvent(new MouseEvent(%q, { clientX: box.left + 3, clientY: box.top + %v * box.height, bubbles: true }));
	})()`, id, event, at)
}

// TestHeatmapPage opens the picture of keys that begin with the time: the strongest cell rises from column to column in
// both themes, hovering names the keys, zooming shows fewer of them, and nothing is loaded.
func TestHeatmapPage(t *testing.T) {
	ctx := browser(t)
	page := timeFirst(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	var seen watch
	chromedp.ListenTarget(ctx, seen.on)
	var light, dark, zoomed []int
	var about, findings, tip string
	var all, few, again, tenants int
	do := func(js string) chromedp.Action { return chromedp.Evaluate(js, nil) }
	text := func(id string, to *string) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf("document.getElementById(%q).innerText", id), to)
	}
	rows := func(to *int) chromedp.Action {
		return chromedp.Evaluate(`Number(document.getElementById("cells").dataset.rows)`, to)
	}
	err := chromedp.Run(ctx,
		network.Enable(), runtime.Enable(),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}),
		chromedp.Navigate(server.URL),
		chromedp.Evaluate(strongest, &light), rows(&all), text("about", &about), text("findings", &findings),
		do(mouse(0.01, "mousemove", "cells")), text("tip", &tip), // no text where it is hidden
		do(`document.getElementById("theme").click()`), chromedp.Evaluate(strongest, &dark),
		do(mouse(0.5, "mousedown", "cells")), do(mouse(0.7, "mousemove", "cells")), do(mouse(0.75, "mouseup", "cells")),
		rows(&few), chromedp.Evaluate(strongest, &zoomed),
		do(`window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }))`),
		do(`document.getElementById("prefix").value = "acme#readings#17803152000"; document.getElementById("prefix").dispatchEvent(new Event("input"))`),
		rows(&again),
		do(`document.getElementById("by").value = "2"; document.getElementById("by").dispatchEvent(new Event("change"))`),
		rows(&tenants),
	)
	if err != nil {
		t.Fatal(err)
	}
	for theme, got := range map[string][]int{"light": light, "dark": dark} {
		if len(got) != columns || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != columns || got[0] < 0 {
			t.Errorf("%s: the strongest cells are in rows %v, want them to rise in each of %d columns", theme, got, columns)
		}
	}
	if !strings.Contains(tip, "acme#readings#17803152000") || !strings.Contains(tip, "writes") || !strings.Contains(tip, "12:00:00.000") {
		t.Errorf("over the first cell the page says %q, want its keys, time and figures", tip)
	}
	if !strings.Contains(about, " writes") || !strings.Contains(findings, "sequential") {
		t.Errorf("the page says %q and finds %q", about, findings)
	}
	if used := slices.DeleteFunc(slices.Clone(zoomed), func(r int) bool { return r < 0 }); few >= all || len(used) < 4 || len(used) > 8 {
		t.Errorf("a quarter of the keys: %d of %d rows, strongest in %v, want about 6 columns", few, all, zoomed)
	}
	if again >= all || again == 0 || tenants < 1 || tenants > 2 {
		t.Errorf("with a prefix %d of %d rows, by tenant %d", again, all, tenants)
	}
	if want := []string{server.URL + "/", "data:,"}; slices.ContainsFunc(seen.requests, func(url string) bool { return !slices.Contains(want, url) }) || len(seen.errors) > 0 {
		t.Errorf("the page requested %q, want %q; errors: %q", seen.requests, want, seen.errors)
	}
}

// TestHeatmapOnAPhone: the picture fits the width of a phone.
func TestHeatmapOnAPhone(t *testing.T) {
	ctx := browser(t)
	page := timeFirst(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	for _, width := range []int64{1280, 390, 330} {
		var over, picture int
		step(t, ctx, "the picture", chromedp.EmulateViewport(width, 800), chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL),
			chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over), chromedp.Evaluate(`document.getElementById("cells").clientWidth`, &picture))
		if over > 0 || picture < int(width)/3 {
			t.Errorf("at %d pixels the page is %d too wide, and the picture has %d", width, over, picture)
		}
	}
	step(t, ctx, "the end", chromedp.EmulateViewport(1280, 900))
}

// TestKeysPicture opens the picture of keys in the console: it has a cell for each row that was written, its labels do
// not cross, also on a phone, brightness changes the colours and not the figures, and a cell leads to its tenant, its
// dataset and its entity.
func TestKeysPicture(t *testing.T) {
	ctx := browser(t)
	c := servePages(t, ctx)
	var about, details, before, after, entity string
	var over []string
	const inks = `(() => { const n = document.querySelector(".heat-cells"); return [...n.getContext("2d").getImageData(0, 0, n.width, n.height).data].reduce((sum, x) => (sum * 31 + x) % 1e9, 7).toString(); })()`
	const crossing = `[...document.querySelectorAll(".heat-labels > div")].flatMap((column) => [...column.children].map((n) => n.getBoundingClientRect()).sort((a, b) => a.top - b.top)
		.flatMap((box, i, all) => (i && box.top < all[i - 1].bottom - 1 ? [box.top + " under " + all[i - 1].bottom] : [])))`
	ready := until(`document.querySelector(".heat-cells")?.dataset.rows > 0`)
	step(t, ctx, "the keys", loginWith(c.url, "operator"), chromedp.Navigate(c.url+"/keys?tenant=acme"), ready, chromedp.Text(".heat-about", &about), chromedp.Evaluate(inks, &before))
	if !strings.Contains(about, " in columns of ") {
		t.Errorf("the picture says %q", about)
	}
	checkLooks(t, ctx, "heat")
	for _, width := range []int64{1440, 768, 390} {
		var wide, picture int
		step(t, ctx, "the labels", chromedp.EmulateViewport(width, 900), chromedp.Evaluate(drawn, nil, awaited), chromedp.Evaluate(crossing, &over), chromedp.Evaluate(`document.querySelector(".heat-cells").clientWidth`, &picture),
			chromedp.Evaluate(`document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth`, &wide))
		if len(over) > 0 || wide > 0 || picture < int(width)/2 {
			t.Errorf("at %d pixels labels cross: %v; the page is %d too wide, the picture has %d", width, over, wide, picture)
		}
	}
	step(t, ctx, "brightness", chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.url+"/keys?tenant=acme&light=4"), ready, chromedp.Evaluate(inks, &after))
	if before == after {
		t.Error("brightness does not change the picture")
	}
	// The entity of acme-2 has two rows in one column: its point, and its head if there is one.
	step(t, ctx, "a cell", chromedp.Navigate(c.url+"/keys?tenant=acme&key="+url.QueryEscape("acme#trucks#berlin#acme-2#")), ready, chromedp.Focus(".heat-cells"), press(kb.ArrowDown), until(`document.querySelector(".heat-details a[href*='/entity']")`),
		chromedp.Text(".heat-details", &details), chromedp.AttributeValue(".heat-details a[href*='/entity']", "href", &entity, nil))
	for _, part := range []string{"acme#trucks#berlin#acme-2", "1 entity", "Tenant acme", "Dataset trucks", "Entity berlin / acme-2", "writes"} {
		if !strings.Contains(details, part) {
			t.Errorf("the cell says %q, want %q in it", details, part)
		}
	}
	if address, err := url.Parse(entity); err != nil || address.Query().Get("entity") != "berlin/acme-2" || address.Query().Get("tenant") != "acme" || address.Query().Get("dataset") != "trucks" {
		t.Errorf("the cell leads to %s", entity)
	}
	step(t, ctx, "by tenant", chromedp.Navigate(c.url+"/keys?tenant=acme&by=tenant&of=writes"), ready, chromedp.Text(".heat-labels", &details))
	if !strings.Contains(details, "acme") || !strings.Contains(details, "globex") {
		t.Errorf("the tenants are %q", details)
	}
	c.quiet(t)
}

// TestKeysInOneZone: the picture of keys has the zone of the console.
func TestKeysInOneZone(t *testing.T) {
	ctx := browser(t)
	c := servePages(t, ctx)
	step(t, ctx, "the login", loginWith(c.url, "operator"))
	for zone, minutes := range map[string]int{"utc": 0, "local": 330} {
		var about string
		step(t, ctx, zone, emulation.SetTimezoneOverride("Asia/Kolkata"), chromedp.Evaluate(`localStorage.setItem("zone", "`+zone+`")`, nil), chromedp.Navigate(c.url+"/keys?tenant=acme"),
			until(`document.querySelector(".heat-about").textContent.includes(" to ")`), chromedp.Text(".heat-about", &about))
		want := time.Now().UTC().Add(time.Duration(minutes) * time.Minute)
		if hour := want.Format("2006-01-02 15:"); !strings.Contains(about, hour) && !strings.Contains(about, want.Add(-time.Minute).Format("2006-01-02 15:")) {
			t.Errorf("with the zone %s the picture is of %q; want the hour %s", zone, about, hour)
		}
	}
	step(t, ctx, "the end", emulation.SetTimezoneOverride(""))
}
