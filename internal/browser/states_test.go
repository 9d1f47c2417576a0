package browser

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestStateColours: a state has the same colour in each range of time and on the page of each entity, whichever state
// comes first there.
func TestStateColours(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	from := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	states := []string{"moving", "parked", "off", "charging", "fault"}
	var points []tsdb.Point[van]
	for n := range 6 * 60 {
		for i, name := range []string{"a", "b"} {
			points = append(points, tsdb.Point[van]{
				Entity: tsdb.NewEntity("berlin", name), Time: from.Add(time.Duration(n) * time.Minute), Value: van{State: states[(n/20+3*i)%len(states)]},
			})
		}
	}
	if _, err := vans.For(c.store, mine).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"), theme("light"))
	colours := map[string][]int{}
	for i, name := range []string{"a", "b"} {
		for _, length := range []time.Duration{6 * time.Hour, time.Hour} {
			begin := from.Add(6*time.Hour - length)
			step(t, ctx, "the chart", chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2F"+name+"&"+fixed(begin, from.Add(6*time.Hour))), read)
			for at := begin.Add(19 * time.Minute); at.Before(from.Add(6 * time.Hour)); at = at.Add(20 * time.Minute) {
				var got []int
				step(t, ctx, "the colour", pixel(1, at, .9, &got))
				state := states[(int(at.Sub(from)/time.Minute)/20+3*i)%len(states)]
				if colours[state] == nil {
					colours[state] = got
				} else if !slices.Equal(colours[state], got) {
					t.Errorf("%s over %v: %s has the colour %v, and %v before", name, length, state, got, colours[state])
				}
			}
		}
	}
	seen := map[string]string{}
	for state, rgb := range colours {
		if before, twice := seen[fmt.Sprint(rgb)]; twice {
			t.Errorf("%s and %s have the same colour", state, before)
		}
		seen[fmt.Sprint(rgb)] = state
	}
	if len(colours) != len(states) {
		t.Errorf("%d states are drawn, want %d", len(colours), len(states))
	}
	c.quiet(t)
}

// TestLongStates: a long state is whole on a tablet and on a phone, and numbers have the decimals of their
// column. The pages of charts also say that a tenant has no points.
func TestLongStates(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	step(t, ctx, "nothing", loginWith(c.url, "token-of-acme"), chromedp.Navigate(c.url+"/entity?tenant=acme&entity=berlin%2Fa"), until(`document.querySelector("main").innerText.includes("The tenant acme has no points.")`))
	for i, speed := range []float64{7, 7.5} {
		c.put(t, mine, fmt.Sprint("van-", i), time.Now(), van{speed, "charging, waits for a driver"})
	}
	const cut = `[...document.querySelectorAll(".grid .mark + span")].filter((n) => n.clientWidth && (n.scrollWidth > n.clientWidth || n.scrollHeight > n.clientHeight + 1)).map((n) => n.textContent)`
	for _, width := range []int64{390, 768} {
		var clipped, numbers []string
		step(t, ctx, "the fleet", chromedp.EmulateViewport(width, 900), chromedp.Navigate(c.url+"/fleet?tenant=acme&dataset=trucks"), until(`document.querySelectorAll(".grid .row .mark + span").length >= 2`), chromedp.Evaluate(drawn, nil, awaited),
			chromedp.Evaluate(cut, &clipped), chromedp.Evaluate(`[...document.querySelectorAll(".grid .spark + span")].map((n) => n.textContent).sort()`, &numbers))
		if len(clipped) > 0 || !slices.Equal(numbers, []string{"7.0", "7.5"}) {
			t.Errorf("at %d pixels %q are cut, and the numbers are %q", width, clipped, numbers)
		}
	}
	c.quiet(t)
}
