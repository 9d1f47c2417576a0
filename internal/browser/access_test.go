package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// drawn waits until the page is drawn as it is now, with charts that follow the size of the window.
const drawn = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`

// faults returns what a page lacks for people who read it with a screen reader, a keyboard or weak eyes: names of
// controls, parents of rows, texts of pictures, heads of tables, unique IDs, the contrast of text (4.5, or 3 for large
// text), and the part that is beyond the screen.
const faults = `(() => {
	const found = [];
	const visible = (n) => n.checkVisibility({ visibilityProperty: true, opacityProperty: true });
	const where = (n) => n.tagName.toLowerCase() + (n.id ? "#" + n.id : "") + (n.className && n.className.baseVal === undefined ? "." + String(n.className).replaceAll(" ", ".") : "");
	const name = (n) => {
		const by = (n.getAttribute("aria-labelledby") || "").split(" ").filter((x) => x).map((id) => document.getElementById(id)?.textContent || "").join(" ");
		const labels = [...(n.labels || [])].map((l) => l.textContent).join(" ");
		const inside = [n.innerText, ...[...n.querySelectorAll("img")].map((i) => i.alt)].join(" ");
		return [n.getAttribute("aria-label"), by, labels, n.title, ["INPUT", "SELECT", "TEXTAREA", "METER", "IFRAME"].includes(n.tagName) ? "" : inside].find((x) => x && x.trim());
	};
	for (const n of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, meter, iframe, summary, [role=grid], [role=button], [role=checkbox], [tabindex='0']")) {
		if (visible(n) && !name(n)) found.push("no name: " + where(n));
	}
	const owners = [...document.querySelectorAll("[aria-owns]")];
	for (const n of document.querySelectorAll("[role=row], [role=gridcell], [role=columnheader]")) {
		const parent = n.getAttribute("role") === "row" ? "[role=grid]" : "[role=row]";
		if (visible(n) && !n.closest(parent) && !owners.some((o) => o.matches(parent) && o.getAttribute("aria-owns").split(" ").includes(n.id))) found.push("without its parent: " + where(n));
	}
	for (const n of document.querySelectorAll("img:not([alt])")) found.push("no alt: " + where(n));
	for (const n of document.querySelectorAll("[tabindex]")) if (n.tabIndex > 0) found.push("its own tab order: " + where(n));
	for (const n of document.querySelectorAll("table")) if (!n.querySelector("th")) found.push("a table without heads: " + where(n));
	const ids = [...document.querySelectorAll("[id]")].map((n) => n.id);
	for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push("twice: #" + id);
	if (!document.documentElement.lang || !document.title || document.querySelectorAll("main").length !== 1) found.push("no language, title or main part");

	const rgb = (text) => {
		const m = /rgba?\(([^)]+)\)/.exec(text);
		if (!m) return null;
		const [r, g, b, a = 1] = m[1].split(/[ ,/]+/).map(Number);
		return { r, g, b, a };
	};
	const over = (top, below) => ({ r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1 });
	const behind = (n) => {
		const layers = [];
		for (; n; n = n.parentElement) {
			const c = rgb(getComputedStyle(n).backgroundColor);
			if (c && c.a > 0) layers.push(c);
			if (c && c.a === 1) break;
		}
		return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
	};
	const light = ({ r, g, b }) => [r, g, b].map((x) => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4).reduce((sum, x, i) => sum + x * [.2126, .7152, .0722][i], 0);
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const seen = new Set();
	for (let text; (text = walker.nextNode());) {
		const n = text.parentElement;
		if (!text.textContent.trim() || seen.has(n) || !visible(n) || n.closest("[disabled], .hidden, script, style, option")) continue;
		seen.add(n);
		const style = getComputedStyle(n), back = behind(n), ink = rgb(style.color);
		if (!ink) continue;
		const [a, b] = [light(over(ink, back)), light(back)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.6 && Number(style.fontWeight) >= 700;
		if (ratio < (large ? 3 : 4.5)) found.push("contrast " + ratio.toFixed(2) + ": " + where(n) + " " + text.textContent.trim().slice(0, 30));
	}
	if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the screen: " + document.documentElement.scrollWidth);
	for (const n of document.querySelectorAll("main *")) {
		if (visible(n) && !n.closest(".scroll, .sheet, .grid, nav, .hidden") && n.getBoundingClientRect().right > innerWidth + 1) found.push("beyond the screen: " + where(n));
	}
	return [...new Set(found)].slice(0, 10);
})()`

// checkLooks checks the page in both themes and at the width of a phone, and saves pictures of it where shoot does.
func checkLooks(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	backgrounds := map[string]bool{}
	for _, look := range []struct {
		theme string
		width int64
	}{{"dark", 1280}, {"light", 1280}, {"light", 360}} {
		var found []string
		var background string
		step(t, ctx, page, theme(look.theme), chromedp.EmulateViewport(look.width, 900),
			chromedp.Evaluate(drawn, nil, awaited), chromedp.Evaluate(faults, &found),
			chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &background))
		if len(found) > 0 {
			t.Errorf("%s, %s, %d pixels: %s", page, look.theme, look.width, strings.Join(found, "\n\t"))
		}
		backgrounds[background] = true
	}
	if len(backgrounds) != 2 {
		t.Errorf("%s has the same background in both themes", page)
	}
	step(t, ctx, page, chromedp.EmulateViewport(1280, 900))
	shoot(t, ctx, page)
}
