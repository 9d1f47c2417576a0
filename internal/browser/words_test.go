package browser

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestEmptyTimes: a page of an entity that is silent opens at its last points. A range without points says so, with the
// newest point and a way to it. An entity without any point is unknown.
func TestEmptyTimes(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	last := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	for i := range 30 {
		c.put(t, mine, "old", last.Add(time.Duration(-i)*time.Minute), van{float64(50 + i), "parked"})
	}
	open := func(query string) chromedp.Tasks {
		return chromedp.Tasks{chromedp.Navigate(c.url + "/entity?tenant=acme&dataset=trucks&" + query), until(`document.querySelector("main:not(.busy) .source, main > .state:not(.loading)") !== null`)}
	}
	var address, text string
	step(t, ctx, "a silent entity", loginWith(c.url, "token-of-acme"), chromedp.Evaluate(`localStorage.setItem("zone", "utc")`, nil),
		open("entity=berlin%2Fold"), read, chromedp.Location(&address), until(`document.querySelector('.panel [role="img"]').ariaLabel.includes("newest speed: 50")`))
	if !strings.Contains(address, "from=2026-01-01T01") {
		t.Errorf("it opens at %s", address)
	}
	var over int
	step(t, ctx, "a fixed time on a phone", chromedp.EmulateViewport(390, 900), chromedp.Evaluate(`document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth`, &over), chromedp.EmulateViewport(1280, 900))
	if over > 0 {
		t.Errorf("at 390 pixels the page is %d too wide", over)
	}
	for _, at := range []struct{ query, want string }{
		{"range=1h", "No points in this hour. Newest: 2026-01-01 02:00:00"},
		{fixed(last.AddDate(0, 0, 3), last.AddDate(0, 0, 4)), "No points in this day. Newest: 2026-01-01 02:00:00"},
	} {
		step(t, ctx, "an empty range", open("entity=berlin%2Fold&"+at.query), until(`document.querySelector(".nodata") !== null`), chromedp.Text(".nodata", &text), chromedp.Click(".nodata button"),
			until(`document.querySelector(".nodata") === null && document.querySelector('.panel [role="img"]').ariaLabel.includes("newest speed: 50")`), chromedp.Location(&address))
		if !strings.Contains(text, at.want) || !strings.Contains(address, "from=") {
			t.Errorf("the page says %q and leads to %s, want %q", text, address, at.want)
		}
	}
	step(t, ctx, "a new point", open("entity=berlin%2Fold&range=1h"), until(`document.querySelector(".nodata") !== null && document.querySelector(".pill.live") !== null`))
	c.put(t, mine, "old", time.Now(), van{7, "moving"})
	step(t, ctx, "the new point", until(`document.querySelector(".nodata") === null`))
	step(t, ctx, "an unknown entity", open("entity=berlin%2Fnone"), until(`document.querySelector("main > .state.empty") !== null`), chromedp.Text("main", &text))
	if !strings.Contains(text, "Unknown entity") || !strings.Contains(text, "berlin / none") {
		t.Errorf("of an unknown entity the page says %q", text)
	}
	c.quiet(t)
}

// TestDatasetWithoutPoints: a dataset without points of the tenant says so, on the fleet and on the page of an entity,
// and shows the first point when it comes. It is no failure.
func TestDatasetWithoutPoints(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	c.put(t, mine, "old", time.Now(), van{1, "parked"})
	fresh := tsdb.MustDefine("boats", tsdb.Key("harbour", "boat"), codec.JSON[van](), tsdb.SchemaOptions{})
	if err := c.store.Ensure(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"))
	for _, page := range []string{"/entity?tenant=acme&dataset=boats&entity=kiel%2Fb1", "/fleet?tenant=acme&dataset=boats"} {
		var text string
		var alerts int
		step(t, ctx, page, chromedp.Navigate(c.url+page), until(`document.querySelector("main > .state:not(.loading)") !== null`), chromedp.Text("main", &text),
			chromedp.Evaluate(`document.querySelectorAll("main [role=alert]").length`, &alerts))
		if !strings.Contains(text, "No points yet") || !strings.Contains(text, "boats") || alerts > 0 {
			t.Errorf("%s says %q, with %d alerts; want that there are no points yet", page, text, alerts)
		}
	}
	if err := fresh.For(c.store, mine).Put(t.Context(), tsdb.NewEntity("kiel", "b1"), time.Now(), van{7, "sailing"}); err != nil {
		t.Fatal(err)
	}
	step(t, ctx, "the first point", until(`[...document.querySelectorAll(".grid .row .value")].some((n) => n.textContent === "7")`))
}

// scrollers are the parts of a page that have a vertical scroll bar of their own.
const scrollers = `[...document.querySelectorAll("main *")].filter((n) => /auto|scroll/.test(getComputedStyle(n).overflowY) && n.scrollHeight > n.clientHeight + 1).map((n) => n.className)`

// TestProcessWithoutFigures: a console that neither records keys nor measures says so, once and without promises.
func TestProcessWithoutFigures(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	for i := range 60 {
		c.put(t, mine, "v"+string(rune('a'+i%26)), time.Now(), van{1, "moving"})
	}
	var text string
	var frames int
	var bars []string
	step(t, ctx, "the keys", chromedp.Navigate(c.url+"/login"), chromedp.SendKeys("#token", "operator\r"), until(`location.pathname === "/fleet" && document.querySelector("#nav a") !== null`),
		chromedp.Navigate(c.url+"/keys?tenant=acme"), until(`document.querySelectorAll(".report").length >= 2`), chromedp.Evaluate(drawn, nil, awaited), chromedp.Text("main", &text), chromedp.Evaluate(`document.querySelectorAll(".heat").length`, &frames))
	if !strings.Contains(text, "does not record") || frames > 0 {
		t.Errorf("without a recording the page says %q and has %d pictures", text, frames)
	}
	step(t, ctx, "the health", chromedp.Navigate(c.url+"/health?tenant=acme"), until(`document.querySelectorAll(".report").length >= 8`), chromedp.Text("main", &text), chromedp.Evaluate(scrollers, &bars))
	if strings.Contains(text, "yet in this process") || strings.Contains(text, "a few seconds") || !strings.Contains(text, "does not measure") {
		t.Errorf("without metrics the page says %q", text)
	}
	if len(bars) > 0 {
		t.Errorf("the page has scroll bars within it: %v", bars)
	}
	c.quiet(t)
}

// TestRowsOfTheFleet: a row has each field once, the line of a number is next to it with its scale, and text cannot
// turn the direction of what follows.
func TestRowsOfTheFleet(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	for i := range 20 {
		c.put(t, mine, "v", time.Now().Add(time.Duration(i-20)*time.Second), van{float64(10 + i), "a\u202egnp.exe"})
	}
	var heads []string
	var text, scale string
	step(t, ctx, "the fleet", loginWith(c.url, "token-of-acme"), until(`document.querySelector(".grid .row .v0")?.textContent === "29" && (document.querySelector(".grid .row").dispatchEvent(new Event("pointerover")), document.querySelector(".grid .row .spark").title !== "")`),
		chromedp.Evaluate(`[...document.querySelectorAll(".head .cell")].map((n) => n.textContent).filter((x) => x)`, &heads), chromedp.Text(".grid .row", &text),
		chromedp.Evaluate(`document.querySelector(".grid .row .spark").title`, &scale))
	if strings.Count(strings.Join(heads, "|"), "speed") != 1 {
		t.Errorf("the columns are %q", heads)
	}
	if scale != "speed: from 10 to 29" {
		t.Errorf("the line has the scale %q", scale)
	}
	if strings.Contains(text, "\u202e") {
		t.Errorf("the row has a character that turns text: %q", text)
	}
	c.quiet(t)
}
