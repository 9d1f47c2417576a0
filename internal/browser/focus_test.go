package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestHeaderOfPhones: at 390 pixels the header is one line with all pages, and the rest of it opens from a button.
func TestHeaderOfPhones(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	var header, cut float64
	var shown, opened bool
	const visible = `document.querySelector("#tools").checkVisibility()`
	step(t, ctx, "the fleet", chromedp.EmulateViewport(390, 844), chromedp.Navigate(c.url+"/fleet?tenant=acme&dataset=trips"), until(`document.querySelector(".grid .row")`),
		chromedp.Evaluate(`document.querySelector("header.bar").offsetHeight`, &header), chromedp.Evaluate(`document.querySelector("#nav").scrollWidth - document.querySelector("#nav").clientWidth`, &cut),
		chromedp.Evaluate(visible, &shown), chromedp.Click(".more"), chromedp.Evaluate(visible, &opened), chromedp.EmulateViewport(1280, 900))
	if header > 52 || cut > 0 || shown || !opened {
		t.Errorf("the header is %v pixels high, %v of the pages are hidden; its tools are shown: %v, and %v after a click", header, cut, shown, opened)
	}
	c.quiet(t)
}

// TestFocus: after a change of the page the heading has the focus, so that a screen reader reads it and Tab goes on
// from there. The first page leaves the focus to the browser, and the first stop of Tab is the link that skips the
// header.
func TestFocus(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	heading := func(text string) chromedp.Action {
		return until(`document.activeElement.tagName === "H1" && document.activeElement.textContent === "` + text + `"`)
	}
	var skip string
	step(t, ctx, "the first page", emulation.SetFocusEmulationEnabled(true), chromedp.Navigate(c.url+"/health?tenant=acme&dataset=trips"), until(`document.querySelectorAll(".report").length >= 3`),
		press("\t"), chromedp.Evaluate(`document.activeElement.getAttribute("href")`, &skip))
	if skip != "#page" {
		t.Errorf("the first stop of Tab is %q", skip)
	}
	step(t, ctx, "other pages", press("gk"), heading("Keys"), press("gf"), heading("Fleet"), until(`document.querySelector(".grid .row")`), press("j"), press("\r"), until(`location.pathname === "/entity"`), heading("berlin / van-0"),
		until(`document.querySelector(".u-over")`), heading("berlin / van-0"), press("gc"), heading("Compare"))
	c.quiet(t)
}
