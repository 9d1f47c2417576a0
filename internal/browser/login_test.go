package browser

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestLinksOfOthers: somebody who has a token puts a link with it on another site. Following it adds no tenant to the
// reader's session, and logs nobody in.
func TestLinksOfOthers(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	const session = `fetch("/api/session").then((r) => r.json()).then((s) => s.tenants.join() + (s.operator ? " operator" : ""))`
	refused := until(`document.querySelector("#why:not([hidden])") !== null && document.querySelector("#why").textContent.includes("link")`)
	for _, start := range []struct {
		name, want string
		actions    []chromedp.Action
	}{
		{"no session", "", nil},
		{"a session of acme", "acme", []chromedp.Action{loginWith(c.url, "token-of-acme"), chromedp.Navigate("about:blank")}},
	} {
		step(t, ctx, start.name, start.actions...)
		var got, address, field string
		step(t, ctx, start.name+", the link", chromedp.Navigate(c.url+"/login#token=operator"), refused, chromedp.Evaluate(session, &got, awaited),
			chromedp.Location(&address), chromedp.Value("#token", &field))
		if got != start.want || field != "" {
			t.Errorf("%s: the link leads to a session of %q with %q in the form, want %q and nothing", start.name, got, field, start.want)
		}
		if strings.Contains(address, "#") {
			t.Errorf("%s: the address still has the token: %s", start.name, address)
		}
	}
	c.quiet(t)
}
