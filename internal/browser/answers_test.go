package browser

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// trip is what a van sends whose fields have units.
type trip struct {
	Speed   float64 `json:"speed_kmh"`
	Battery float64 `json:"battery_pct"`
	State   string  `json:"state"`
}

var tripsFrom = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// serveTrips returns a console with an hour of points of three vans, one each ten seconds.
func serveTrips(t *testing.T, ctx context.Context) *pages {
	t.Helper()
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	trips := tsdb.MustDefine("trips", tsdb.Key("site", "van"), codec.JSON[trip](), tsdb.SchemaOptions{})
	if err := c.store.Ensure(t.Context(), trips); err != nil {
		t.Fatal(err)
	}
	var points []tsdb.Point[trip]
	for i := range 360 {
		for van := range 3 {
			points = append(points, tsdb.Point[trip]{Entity: tsdb.NewEntity("berlin", fmt.Sprint("van-", van)), Time: tripsFrom.Add(time.Duration(i) * 10 * time.Second), Value: tripAt(van, i)})
		}
	}
	if _, err := trips.For(c.store, mine).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"), theme("light"), chromedp.EmulateViewport(1280, 900), emulation.SetTimezoneOverride("Europe/Berlin"), chromedp.Evaluate(`localStorage.setItem("zone", "utc")`, nil))
	return c
}

func tripAt(van, i int) trip {
	state := "moving"
	if i >= 90 && i < 120 {
		state = "charging"
	}
	return trip{float64(10*van) + float64(i*i%97)/3, 90 - float64(i)/10, state}
}

// tenth is a number as a chart shows it: with one decimal, unless it is whole.
func tenth(x float64) string {
	if x == math.Trunc(x) {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

const allTexts = `[...document.querySelectorAll(%q)].map((n) => n.textContent)`

// TestChartAnswers: the legend, the tooltip, the cursor by key and the table say what was stored, with units; the
// panels begin at the same place and use their card; no label is clipped.
func TestChartAnswers(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	address := c.url + "/entity?tenant=acme&dataset=trips&entity=berlin%2Fvan-1&" + fixed(tripsFrom, tripsFrom.Add(time.Hour))
	step(t, ctx, "the chart", chromedp.Navigate(address), read)
	low, high, sum := math.Inf(1), math.Inf(-1), 0.
	for i := range 360 {
		x := tripAt(1, i).Speed
		low, high, sum = min(low, x), max(high, x), sum+x
	}
	var legend, states, titles []string
	step(t, ctx, "its legend", chromedp.Evaluate(fmt.Sprintf(allTexts, ".panel:nth-of-type(2) .legend dd"), &legend), chromedp.Evaluate(fmt.Sprintf(allTexts, ".bands .legend div"), &states),
		chromedp.Evaluate(fmt.Sprintf(allTexts, ".panel-title"), &titles))
	want := []string{"360"}
	for i, x := range []float64{tripAt(1, 359).Speed, low, sum / 360, high} {
		want = slices.Insert(want, i, fmt.Sprintf("%.1f", x)) // all with the same decimals
	}
	if !slices.Equal(legend, want) {
		t.Errorf("the legend says %q, want %q", legend, want)
	}
	if !slices.Equal(titles, []string{"battery_pct %", "speed_kmh km/h", "state"}) {
		t.Errorf("the panels are %q", titles)
	}
	if len(states) != 2 || states[0] != "moving54m 50s" && states[0] != "moving55m" || states[1] != "charging5m" {
		t.Errorf("the states are %q; want moving for 55 minutes, up to the newest point, and charging for 5", states)
	}

	const hover = `(() => {
		const over = document.querySelectorAll(".u-over")[1], box = over.getBoundingClientRect();
		over.dispatchEvent(new MouseEvent("mouseenter", {}));
		over.dispatchEvent(new MouseEvent("mousemove", { clientX: box.left + box.width * 100.1 / 360, clientY: box.top + 20, bubbles: true }));
	})()`
	var tip, news string
	step(t, ctx, "the tooltip", chromedp.Evaluate(hover, nil), until(`!document.querySelector(".tip").hidden`), chromedp.Evaluate(drawn, nil, awaited), chromedp.Text(".tip", &tip))
	for _, part := range []string{"2025-03-01 12:16:", "80 %", tenth(tripAt(1, 100).Speed) + " km/h", "charging"} {
		if !strings.Contains(strings.ReplaceAll(tip, "\u00a0", " "), part) {
			t.Errorf("the tooltip lacks %q: %q", part, tip)
		}
	}
	step(t, ctx, "the cursor by key", chromedp.Evaluate(`document.querySelectorAll(".plot")[1].focus()`, nil), press(kb.Home), press(kb.ArrowRight), press(kb.ArrowRight), chromedp.Text("#news", &news))
	if !strings.HasPrefix(news, "2025-03-01 12:00:20: speed_kmh "+tenth(tripAt(1, 2).Speed)) {
		t.Errorf("the keys lead to %q", news)
	}
	step(t, ctx, "Enter", press(kb.Enter), until(`location.search.includes("at=2025-03-01T12%3A00%3A20")`), press(kb.Escape), until(`document.querySelector(".tip").hidden`))
	var rows, first []string
	step(t, ctx, "the table", chromedp.Click(".panel:nth-of-type(2) .drawn summary"), until(`document.querySelector(".panel:nth-of-type(2) .drawn tbody")`),
		chromedp.Evaluate(`[...document.querySelectorAll(".panel:nth-of-type(2) .drawn tbody tr")].map((n) => n.innerText)`, &rows))
	first = strings.Fields(strings.ReplaceAll(rows[0], "\u00a0", " "))
	if len(rows) != 360 || strings.Join(first, " ") != "2025-03-01 12:59:50 "+tenth(tripAt(1, 359).Speed)+" km/h" {
		t.Errorf("the table has %d rows, the first is %q", len(rows), first)
	}
	step(t, ctx, "the chart again", chromedp.Navigate(address), read)
	var lefts []float64
	var share float64
	step(t, ctx, "its places", chromedp.Evaluate(`[...document.querySelectorAll(".u-over")].map((n) => n.getBoundingClientRect().left)`, &lefts), chromedp.Evaluate(`(() => {
		const area = (n) => n.getBoundingClientRect().width * n.getBoundingClientRect().height;
		return [...document.querySelectorAll(".u-over")].reduce((sum, n) => sum + area(n), 0) / area(document.querySelector(".charts"));
	})()`, &share))
	if len(lefts) != 3 || lefts[0] != lefts[1] || lefts[1] != lefts[2] {
		t.Errorf("the panels begin at %v, want the same place", lefts)
	}
	t.Logf("the plots use %.0f %% of their card", 100*share)
	if share < .6 {
		t.Errorf("the plots use %.0f %% of their card", 100*share)
	}
	checkLooks(t, ctx, "answers")
	c.quiet(t)
}

// TestCompareLegend: a click on a name shows its line alone, the address keeps that, and colours stay when an entity
// goes.
func TestCompareLegend(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	ids := "&entity=berlin%2Fvan-0&entity=berlin%2Fvan-1&entity=berlin%2Fvan-2"
	const colours = `Object.fromEntries([...document.querySelectorAll("div.legend button")].map((n) => [n.textContent, getComputedStyle(n.querySelector(".swatch")).backgroundColor]))`
	var before, after map[string]string
	var inks [3]int
	at := tripsFrom.Add(30 * time.Minute)
	step(t, ctx, "the chart", chromedp.Navigate(c.url+"/compare?tenant=acme&dataset=trips&field=battery_pct"+ids+"&"+fixed(tripsFrom, tripsFrom.Add(time.Hour))), read, chromedp.Evaluate(colours, &before))
	step(t, ctx, "one alone", chromedp.Navigate(c.url+"/compare?tenant=acme&dataset=trips&field=speed_kmh"+ids+"&"+fixed(tripsFrom, tripsFrom.Add(time.Hour))), read,
		chromedp.Evaluate(`[...document.querySelectorAll("div.legend button")].find((n) => n.textContent === "berlin / van-2").click()`, nil), until(`location.search.includes("only=berlin%2Fvan-2")`),
		chromedp.Reload(), read, ink(0, "line 0", at, &inks[0]), ink(0, "line 1", at, &inks[1]), ink(0, "line 2", at, &inks[2]))
	if inks[0] != 0 || inks[1] != 0 || inks[2] == 0 {
		t.Errorf("with van-2 alone the lines have %v pixels", inks)
	}
	var means []string
	step(t, ctx, "the figures", chromedp.Evaluate(`[...document.querySelectorAll("div.legend tbody tr")].map((n) => n.cells[3].textContent)`, &means))
	for van := range 3 {
		sum := 0.
		for i := range 360 {
			sum += tripAt(van, i).Speed
		}
		if want := tenth(sum / 360); means[van] != want {
			t.Errorf("van-%d has the mean %s, want %s", van, means[van], want)
		}
	}
	step(t, ctx, "all again", chromedp.Click(`div.legend button[aria-pressed="true"]`), until(`!location.search.includes("only=")`),
		chromedp.Click(`button[aria-label="Remove berlin / van-0"]`), until(`document.querySelectorAll("div.legend button").length === 2`), chromedp.Evaluate(colours, &after))
	if len(before) != 3 || len(after) != 2 {
		t.Fatalf("the legends are %v and %v", before, after)
	}
	for name, colour := range after {
		if before[name] != colour {
			t.Errorf("%s was %s, and is %s when van-0 has gone", name, before[name], colour)
		}
	}
	c.quiet(t)
}

// TestMarks: thresholds and notes of the address are drawn; the menu adds and removes them.
func TestMarks(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	at := tripsFrom.Add(45 * time.Minute)
	var bad, note int
	step(t, ctx, "the chart", chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trips&entity=berlin%2Fvan-1&threshold=speed_kmh%3A80&note="+at.Format("2006-01-02T15:04:05Z")+"%20%3Cb%3Enew+pump&"+fixed(tripsFrom, tripsFrom.Add(time.Hour))), read,
		chromedp.Evaluate(fmt.Sprintf(`Math.max(...[0, 4, 8].map((s) => %s(1, "--bad", %d + 1000 * s)))`, inkOf, tripsFrom.Add(20*time.Minute).UnixMilli()), &bad), ink(0, "--accent", at, &note))
	if bad == 0 || note < 20 {
		t.Errorf("the threshold has %d pixels in a column, the note %d", bad, note)
	}
	var chips []string
	step(t, ctx, "the menu", chromedp.Evaluate(`document.querySelector(".marks").closest("details").open = true`, nil), chromedp.Evaluate(fmt.Sprintf(allTexts, ".marks .chip"), &chips))
	if len(chips) != 2 || chips[0] != "speed_kmh 80\u00a0km/h✕" || chips[1] != "2025-03-01 12:45:00 <b>new pump✕" {
		t.Errorf("the marks are %q", chips)
	}
	step(t, ctx, "one more, and one less", chromedp.Evaluate(`(() => {
		const form = document.querySelector(".marks form");
		form.querySelector("input").value = "20.5";
		form.requestSubmit();
	})()`, nil), until(`new URLSearchParams(location.search).getAll("threshold").join() === "speed_kmh:80,battery_pct:20.5"`),
		chromedp.Evaluate(`document.querySelector('.marks .chip button[aria-label="Remove speed_kmh:80"]').click()`, nil), until(`new URLSearchParams(location.search).getAll("threshold").join() === "battery_pct:20.5"`))
	c.quiet(t)
}

// TestChartByTouch: a finger that moves sideways shows the values below it, and two that part zoom in.
func TestChartByTouch(t *testing.T) {
	ctx := browser(t)
	c := serveTrips(t, ctx)
	step(t, ctx, "the chart", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), emulation.SetTouchEmulationEnabled(true).WithMaxTouchPoints(2),
		chromedp.Navigate(c.url+"/entity?tenant=acme&dataset=trips&entity=berlin%2Fvan-1&"+fixed(tripsFrom, tripsFrom.Add(time.Hour))), read)
	defer func() {
		step(t, ctx, "a mouse again", emulation.SetTouchEmulationEnabled(false), chromedp.EmulateViewport(1280, 900))
	}()
	var box struct{ Left, Top, Width float64 }
	step(t, ctx, "the plot", chromedp.Evaluate(`(() => { const b = document.querySelectorAll(".u-over")[1].getBoundingClientRect(); return { left: b.left, top: b.top + 30, width: b.width }; })()`, &box))
	at := func(parts ...float64) (points []*input.TouchPoint) {
		for i, part := range parts {
			points = append(points, &input.TouchPoint{X: box.Left + part*box.Width, Y: box.Top, ID: float64(i + 1)}) // an ID of 0 is left out
		}
		return points
	}
	var tip string
	step(t, ctx, "one finger", input.DispatchTouchEvent(input.TouchStart, at(.2)), input.DispatchTouchEvent(input.TouchMove, at(.3)), input.DispatchTouchEvent(input.TouchMove, at(.5)),
		until(`!document.querySelector(".tip").hidden && document.querySelector(".tip time").textContent.startsWith("2025-03-01 12:3") || document.querySelector(".tip time").textContent.startsWith("2025-03-01 12:29")`), chromedp.Text(".tip", &tip), input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
	if !strings.Contains(tip, "km/h") {
		t.Errorf("a finger shows %q", tip)
	}
	step(t, ctx, "two fingers", input.DispatchTouchEvent(input.TouchStart, at(.4, .6)), input.DispatchTouchEvent(input.TouchMove, at(.3, .7)), input.DispatchTouchEvent(input.TouchMove, at(.2, .8)),
		input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}), until(`(() => { const q = new URLSearchParams(location.search), minutes = (Date.parse(q.get("to")) - Date.parse(q.get("from"))) / 60000; return minutes > 15 && minutes < 25; })()`))
	c.quiet(t)
}

// TestUnits: a unit comes from the last word of a field's name, and small numbers keep their digits.
func TestUnits(t *testing.T) {
	ctx := browser(t)
	serveTrips(t, ctx)
	var got []string
	step(t, ctx, "the units", chromedp.Evaluate(`import("/assets/units.js").then(({ unitOf, withUnit }) => [
		["temp_c", 21.456], ["batteryPct", 7], ["speed_kmh", 53.24], ["supply_v", 3.3014], ["latency_ms", .0312], ["points_per_s", 12.34567], ["gps.m", 1.23456789], ["c", 1.23456], ["constructor", 1.5], ["a_constructor", 1.5], ["temp_c", null], ["x_c", -0.04]]
		.map(([name, x]) => withUnit(x, unitOf(name)).replace("\u00a0", " ")))`, &got, awaited))
	var mean []string
	step(t, ctx, "the means", chromedp.Evaluate(`import("/assets/units.js").then(({ digits, meanUnit, unitOf }) => [["speed", { last: 0, min: 0, max: 21.5 }, 3.0945454], ["speed_kmh", { last: 0, min: 0, max: 3 }, 1.26], ["n", { last: 1, min: 1, max: 2 }, 1.51]]
		.map(([name, of, x]) => digits(x, meanUnit(of, unitOf(name)))))`, &mean, awaited))
	if want := []string{"3.09", "1.3", "1.5"}; !slices.Equal(mean, want) {
		t.Errorf("the means are %q, want %q", mean, want)
	}
	want := []string{"21.5 °C", "7 %", "53.2 km/h", "3.30 V", "0.0312 ms", "12.3457 /s", "1.23457", "1.23456", "1.5", "1.5", "–", "-0.04 °C"}
	if !slices.Equal(got, want) {
		t.Errorf("the numbers are %q, want %q", got, want)
	}
}
