package browser

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestTimeTexts: what users type for a time, in the zone of the page, also on days with 23 and 25 hours.
func TestTimeTexts(t *testing.T) {
	ctx := browser(t)
	serveTrips(t, ctx)
	var got [][]string
	step(t, ctx, "the times", chromedp.Evaluate(`import("/assets/time.js").then(({ parseTime }) => ["utc", "local"].map((zone) => {
		localStorage.setItem("zone", zone);
		const now = Date.parse("2026-03-29T10:30:00Z"); // Berlin's clocks went from 02:00 to 03:00 this night
		const all = ["now", "now-2d", "now - 90m", "3h ago", "today", "yesterday", "yesterday 14:05", "06:30", "2026-10-25", "2026-10-26", "2026-06-01 4:05:06", "2026-06-01T12:00:00Z",
			"2026-02-30", "25:00", "soon", "", "now-", "now-2x"].map((text) => parseTime(text, now)).map((ms) => (Number.isNaN(ms) ? "–" : new Date(ms).toISOString().slice(0, 19)));
		localStorage.setItem("zone", "utc");
		return all;
	}))`, &got, awaited))
	nothing := []string{"–", "–", "–", "–", "–", "–"}
	want := [][]string{
		append([]string{
			"2026-03-29T10:30:00", "2026-03-27T10:30:00", "2026-03-29T09:00:00", "2026-03-29T07:30:00", "2026-03-29T00:00:00", "2026-03-28T00:00:00", "2026-03-28T14:05:00",
			"2026-03-29T06:30:00", "2026-10-25T00:00:00", "2026-10-26T00:00:00", "2026-06-01T04:05:06", "2026-06-01T12:00:00",
		}, nothing...),
		append([]string{
			"2026-03-29T10:30:00", "2026-03-27T10:30:00", "2026-03-29T09:00:00", "2026-03-29T07:30:00", "2026-03-28T23:00:00", "2026-03-27T23:00:00", "2026-03-28T13:05:00",
			"2026-03-29T04:30:00", "2026-10-24T22:00:00", "2026-10-25T23:00:00", "2026-06-01T02:05:06", "2026-06-01T12:00:00",
		}, nothing...),
	}
	for i, zone := range []string{"UTC", "Berlin"} {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("in %s: %q\nwant %q", zone, got[i], want[i])
		}
	}
}

// TestTimeInputs: a relative time stays one in the address, a wrong one is refused with its text, and no input depends
// on the system's clock of 12 or 24 hours. A chart that is paused does not move, and one that is live does.
func TestTimeInputs(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	fill := func(from, to string) chromedp.Action {
		return chromedp.Evaluate(`(() => {
			const form = document.querySelector(".dates"), inputs = form.querySelectorAll("input");
			inputs[0].value = "`+from+`"; inputs[1].value = "`+to+`";
			form.requestSubmit();
		})()`, nil)
	}
	for range 20 {
		c.put(t, mine, "v", time.Now(), van{1, "moving"})
	}
	var note, from string
	var special int
	step(t, ctx, "the chart", chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv"), read, fill("yesterday", ""), until(`location.search.includes("from=yesterday") && !location.search.includes("to=")`), read,
		until(`document.querySelector(".pill.fixed")`), chromedp.Evaluate(`document.querySelectorAll('input[type="datetime-local"], input[type="time"], input[type="date"]').length`, &special))
	if special > 0 {
		t.Errorf("%d inputs have a clock of the system", special)
	}
	step(t, ctx, "an interval", fill("now-2d", "now-1d"), until(`location.search.includes("from=now-2d&to=now-1d")`), read, fill("noon", "now"), chromedp.Text(".dates [role=status]", &note, chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector(".dates [role=status]").textContent`, &note), fill("now-3h", "now"), until(`location.search.includes("range=3h") && !location.search.includes("from=")`), read,
		fill("2025-03-01 12:15", "2025-03-01 12:45"), until(`location.search.includes("from=2025-03-01T12%3A15%3A00.000Z&to=2025-03-01T12%3A45%3A00.000Z")`), read,
		chromedp.Evaluate(`document.querySelector(".dates input").value`, &from))
	if note != "“noon” is no time." || from != "2025-03-01 12:15:00" {
		t.Errorf("the note is %q, the input %q", note, from)
	}
	const view = `import("/assets/time.js").then(() => document.querySelector(".plot [role=img]").ariaLabel)`
	var before, after string
	step(t, ctx, "paused", chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trucks&entity=berlin%2Fv&refresh=off"), read, until(`document.querySelector(".pill.paused")`), chromedp.Evaluate(view, &before, awaited))
	c.put(t, mine, "v", time.Now(), van{77, "moving"})
	step(t, ctx, "a new point", chromedp.Sleep(1500*time.Millisecond), chromedp.Evaluate(view, &after, awaited))
	if before != after {
		t.Errorf("a paused chart goes from %q to %q", before, after)
	}
	step(t, ctx, "live again", chromedp.SetValue(`select[aria-label="Refresh"]`, ""), chromedp.Evaluate(`document.querySelector('select[aria-label="Refresh"]').dispatchEvent(new Event("change", { bubbles: true }))`, nil),
		until(`document.querySelector(".pill.live") && document.querySelector(".plot [role=img]").ariaLabel.includes("newest speed: 77")`))
	c.quiet(t)
}
