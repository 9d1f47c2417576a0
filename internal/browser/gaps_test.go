package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/tsdb"
)

// fixed is the part of an address that names a time.
func fixed(from, to time.Time) string {
	return url.Values{"from": {from.Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}}.Encode()
}

// TestGapsOfCompare: of two vans one sends nothing for some minutes, or for days. Its line breaks there, also where the
// other van has points, as it does on its own page.
func TestGapsOfCompare(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	c.put(t, mine, "first", time.Now(), van{})
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"))
	for i, length := range []time.Duration{time.Hour, 60 * 24 * time.Hour} {
		from := time.Date(2025, 3, 1+i, 0, 0, 0, 0, time.UTC)
		names := [2]string{fmt.Sprint("silent-", i), fmt.Sprint("other-", i)}
		var points []tsdb.Point[van]
		for n := range 360 {
			at := from.Add(length / 360 * time.Duration(n))
			if n < 100 || n >= 160 {
				points = append(points, tsdb.Point[van]{Entity: tsdb.NewEntity("berlin", names[0]), Time: at, Value: van{Speed: 10}})
			}
			points = append(points, tsdb.Point[van]{Entity: tsdb.NewEntity("berlin", names[1]), Time: at.Add(time.Second), Value: van{Speed: 20}})
		}
		if _, err := vans.For(c.store, mine).PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		var before, within, after, other int
		var place []float64
		at := func(n int) time.Time { return from.Add(length / 360 * time.Duration(n)) }
		step(t, ctx, "the chart",
			chromedp.Navigate(c.url+"/compare?tenant=acme&dataset=trucks&field=speed&entity=berlin%2F"+names[0]+"&entity=berlin%2F"+names[1]+"&"+fixed(from, from.Add(length))), read,
			ink(0, "line 0", at(50), &before), ink(0, "line 0", at(140), &within), ink(0, "line 0", at(200), &after), ink(0, "line 1", at(140), &other))
		var says string
		step(t, ctx, "the cursor in the gap", chromedp.Evaluate(`(() => { const over = document.querySelector(".u-over").getBoundingClientRect(); return [over.left + over.width * 140 / 360, over.top + 50]; })()`, &place),
			chromedp.ActionFunc(func(ctx context.Context) error {
				return input.DispatchMouseEvent(input.MouseMoved, place[0], place[1]).Do(ctx)
			}), until(`document.querySelector(".tip dd")`), chromedp.Evaluate(`[...document.querySelectorAll(".tip dd")].map((n) => n.textContent).join()`, &says))
		layout := []string{time.TimeOnly, time.DateTime}[i]
		if want := "no point from " + at(99).Format(layout) + " to " + at(160).Format(layout); !strings.Contains(says, want) {
			t.Errorf("%v: in the gap the page says %q, want %q", length, says, want)
		}
		if before == 0 || after == 0 || other == 0 {
			t.Errorf("%v: lines of %d, %d and %d pixels, want some of each", length, before, after, other)
		}
		if within != 0 {
			t.Errorf("%v: the line has %d pixels where the van sent nothing for %v", length, within, length/6)
		}
	}
	c.quiet(t)
}
