package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// names of the entities in the order of the list, without the depot; and what a column has.
const (
	listed = `[...document.querySelectorAll(".grid .row:not([hidden])")].sort((a, b) => a.index - b.index).map((n) => n.querySelector(".name a").textContent.split("/").pop())`
	counts = `document.querySelector(".count").textContent`
)

var rovers = tsdb.MustDefine("rovers", tsdb.Key("depot", "rover"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})

// openRovers returns a console with twelve rovers: battery levels 5, 15, … 95, text, and none; each third one has a
// fault, and the last four are silent.
func openRovers(t *testing.T) (ctx context.Context, c *console, put func(n int, at time.Time, value map[string]any)) {
	t.Helper()
	ctx = browser(t)
	c = openConsole(t, ctx)
	if err := c.store.Ensure(t.Context(), rovers); err != nil {
		t.Fatal(err)
	}
	put = func(n int, at time.Time, value map[string]any) {
		t.Helper()
		if err := rovers.For(c.store, acme).Put(tenant.NewContext(t.Context(), acme), tsdb.NewEntity("mars", fmt.Sprintf("r%02d", n)), at, value); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 12 {
		at := time.Now()
		if n >= 8 {
			at = at.Add(-time.Duration(n) * time.Hour)
		}
		for i := range 20 {
			value := map[string]any{"battery_pct": 5 + 10*n + i%3, "fault": n%3 == 0, "state": []string{"parked", "driving", "charging", "two words"}[n%4]}
			if n == 11 {
				delete(value, "battery_pct")
			}
			put(n, at.Add(time.Duration(i-19)*time.Second), value)
		}
	}
	step(t, ctx, "the login", c.login("secret-of-acme"))
	return ctx, c, put
}

// TestFleetAnswers asks the page what a user asks: the lowest batteries, faults, silences, states.
func TestFleetAnswers(t *testing.T) {
	ctx, c, put := openRovers(t)
	open := func(pairs ...string) chromedp.Action {
		return chromedp.Tasks{c.open("/fleet", append([]string{"tenant", "acme", "dataset", "rovers"}, pairs...)...), until(`document.querySelector(".pill.live") && document.querySelector(".grid .row")`)}
	}
	for _, test := range []struct {
		pairs []string
		count string
		first string
	}{
		{nil, "4 silent of 12", "r11 r10 r09 r08 r00 r01"},
		{[]string{"sort", "battery_pct"}, "4 silent of 12", "r00 r01 r02 r03"},
		{[]string{"sort", "-battery_pct"}, "4 silent of 12", "r10 r09 r08"},
		{[]string{"sort", "-age"}, "4 silent of 12", "r11 r10 r09"},
		{[]string{"sort", "-name"}, "4 silent of 12", "r11 r10 r09"},
		{[]string{"q", "R0"}, "2 silent of 10", "r09 r08 r00"},
		{[]string{"where", "battery_pct < 20"}, "0 silent of 2 that match, of 12", "r00 r01"},
		{[]string{"where", "fault and not silent"}, "0 silent of 3 that match, of 12", "r00 r03 r06"},
		{[]string{"where", "silent for 9.5 h"}, "2 silent of 2 that match, of 12", "r11 r10"},
		{[]string{"where", "state = driving or state = 'two words'", "field", "battery_pct"}, "2 silent of 6 that match, of 12", "r11 r09 r01"},
		{[]string{"where", "rover = r03"}, "0 silent of 1 that match, of 12", "r03"},
	} {
		var names []string
		var count string
		step(t, ctx, fmt.Sprint(test.pairs), open(test.pairs...), until(counts+`.startsWith("`+test.count+`")`), chromedp.Evaluate(listed, &names), chromedp.Evaluate(counts, &count))
		if got := strings.Join(names, " "); count != test.count || !strings.HasPrefix(got, test.first) {
			t.Errorf("%q: %q %s, want %q %s", test.pairs, count, got, test.count, test.first)
		}
	}
	var text string
	step(t, ctx, "a wrong filter", c.open("/fleet", "tenant", "acme", "dataset", "rovers", "where", "battery_pct << 20"), until(`document.querySelector(".state.failed")`), chromedp.Text("main", &text))
	if !strings.Contains(text, `wrong at "<<"`) {
		t.Errorf("a wrong filter says %q", text)
	}
	if _, errors := c.seen.take(); len(errors) != 1 || !strings.Contains(errors[0], "status of 400") {
		t.Errorf("after a wrong filter the page reports %q", errors)
	}
	step(t, ctx, "its correction", chromedp.Evaluate(`document.querySelector(".filter").value = ""`, nil), chromedp.SendKeys(".filter", "battery_pct < 20 and batery"+kb.Enter), until(`document.querySelector(".notes")?.textContent.includes("No entity has a field batery.")`))
	checkLooks(t, ctx, "filter")
	// The states of the list, and what a click on one does.
	var states string
	step(t, ctx, "the states", open("field", "state"), until(`document.querySelectorAll(".states .chip").length === 4`), chromedp.Evaluate(`[...document.querySelectorAll(".states .chip")].map((n) => n.textContent).join()`, &states))
	if states != "charging3,driving3,parked3,two words3" {
		t.Errorf("the states are %q", states)
	}
	step(t, ctx, "a state", chromedp.Evaluate(`[...document.querySelectorAll(".states .chip")].find((n) => n.textContent.startsWith("two words")).click()`, nil),
		until(counts+`.startsWith("1 silent of 3 that match")`), until(`document.querySelector('.states .chip[aria-pressed="true"]').textContent === "two words3"`),
		chromedp.Click(`.states .chip[aria-pressed="true"]`), until(counts+` === "4 silent of 12"`))
	// Live: a rover comes to match, and another one no longer does.
	step(t, ctx, "the low ones", open("where", "battery_pct < 20", "sort", "battery_pct"), until(counts+`.startsWith("0 silent of 2")`))
	put(5, time.Now(), map[string]any{"battery_pct": 1})
	step(t, ctx, "one more", until(counts+`.startsWith("0 silent of 3")`), until(listed+`[0] === "r05"`))
	put(0, time.Now(), map[string]any{"battery_pct": 100})
	step(t, ctx, "one less", until(counts+`.startsWith("0 silent of 2")`), until(listed+`.join() === "r05,r01"`))
	step(t, ctx, "the top into compare", chromedp.SetValue(`[aria-label="Compare the first entities of the list"]`, "2"),
		until(`location.pathname === "/compare" && new URLSearchParams(location.search).getAll("entity").join() === "mars/r05,mars/r01" && new URLSearchParams(location.search).get("field") === "battery_pct"`))
	c.clean()
}

// TestFleetFits: each name and each number is whole, on narrow screens and beside the smallest line. A state whose
// entities have newer points without it says how many have it now, and its colour follows the theme.
func TestFleetFits(t *testing.T) {
	ctx, c, put := openRovers(t)
	for n := range 12 {
		put(n, time.Now().Add(time.Second), map[string]any{"battery_pct": 37.4, "fault": n > 3, "state": "brake pressure low", "total_km": 411012.34})
	}
	put(3, time.Now().Add(2*time.Second), map[string]any{"battery_pct": 37.4})
	open := c.open("/fleet", "tenant", "acme", "dataset", "rovers", "field", "battery_pct", "field", "state", "field", "fault", "field", "total_km")
	const clipped = `[...document.querySelectorAll(".grid .row .name, .grid .row .v0 span:last-child, .grid .spark + span, .head button")].filter((n) => n.offsetParent && n.scrollWidth > n.clientWidth + 1).map((n) => n.textContent)`
	for _, width := range []int64{390, 768, 1024} {
		var short []string
		step(t, ctx, "the fleet", chromedp.EmulateViewport(width, 900), open, until(`document.querySelectorAll(".grid .row").length > 5`), chromedp.Evaluate(drawn, nil, awaited), chromedp.Evaluate(clipped, &short))
		if len(short) > 0 {
			t.Errorf("at %d pixels %q are cut", width, short)
		}
	}
	var chip string
	var light, dark []string
	const marks = `[document.querySelector(".states .mark"), document.querySelector(".grid .row .v1 .mark")].map((n) => getComputedStyle(n).backgroundColor)`
	step(t, ctx, "the themes", chromedp.EmulateViewport(1280, 900), theme("light"), chromedp.Evaluate(`document.querySelector(".states .chip").textContent`, &chip), chromedp.Evaluate(marks, &light))
	step(t, ctx, "the dark theme", theme("dark"),
		until(`getComputedStyle(document.querySelector(".states .mark")).backgroundColor !== "`+light[0]+`"`), chromedp.Evaluate(marks, &dark), theme("light"))
	if chip != "brake pressure low12, 11 now" {
		t.Errorf("the state is %q", chip)
	}
	if light[0] != light[1] || dark[0] != dark[1] || light[0] == dark[0] {
		t.Errorf("the state has the colours %q and %q in its button and its row", light, dark)
	}
	c.clean()
}

// TestFleetAsksAtOnce: once a browser knows the columns, the page asks for the list before it has the fields.
func TestFleetAsksAtOnce(t *testing.T) {
	ctx, c, _ := openRovers(t)
	open := chromedp.Tasks{c.open("/fleet", "tenant", "acme", "dataset", "rovers"), until(`document.querySelector(".grid .row .name a")`)}
	// hold holds requests for the fields until one for the list is sent, or for 5 seconds.
	const hold = `(() => {
		const { fetch: send } = window;
		let listed;
		const list = new Promise((go) => { listed = go; });
		window.fetch = async (to, ...rest) => {
			const { pathname } = new URL(to.url ?? to, location.href);
			if (pathname.endsWith("/latest")) listed();
			if (pathname.endsWith("/fields")) await Promise.race([list, new Promise((go) => setTimeout(() => { window.waits = true; go(); }, 5000))]);
			return send(to, ...rest);
		};
	})()`
	var waits bool
	step(t, ctx, "the fleet", open, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(hold).Do(ctx)
		return err
	}), open, chromedp.Evaluate(`window.waits === true`, &waits))
	if waits {
		t.Error("the page waits for the fields")
	}
	c.clean()
}

// TestFiltersAgree: the page chooses rows by a filter as the server does.
func TestFiltersAgree(t *testing.T) {
	ctx, _, _ := openRovers(t)
	var wrong []string
	step(t, ctx, "the filters", chromedp.Evaluate(`(async () => {
		const { matches } = await import("/assets/filter.js"), wrong = [];
		const read = (where) => fetch("/api/acme/rovers/latest?field=battery_pct&field=fault&field=state&where=" + encodeURIComponent(where)).then((r) => r.json());
		const all = await read("");
		for (const where of ["battery_pct < 20", "battery_pct >= 57", "not battery_pct", "battery_pct", "battery_pct != 6", "battery_pct = 6", "fault", "not fault", "fault = true", "fault = 1", "fault ~ ru", "fault = 'true'",
			"state = driving", "state != driving", "state ~ WORD", "state > 3", "state = 3", "silent", "silent < 3m", "silent for 9 h", "name ~ R0", "name = mars/r03", "rover = r03", "rover ~ 1", "depot", "none", "none < 3", "not none",
			"fault or battery_pct < 20 and state = driving", "(fault or battery_pct < 20) and not state = parked", "not (fault and silent)"]) {
			const found = await read(where), chosen = all.rows.filter((row) => matches(found.filter, { ...row, v: found.fields.map((f) => row.v[all.fields.indexOf(f)] ?? null) }, found.fields, found.now - row.t, true));
			if (found.rows.map((r) => r.id).join() !== chosen.map((r) => r.id).join()) wrong.push(where + ": " + found.rows.length + " and " + chosen.length);
			const known = all.rows.map((row) => matches(found.filter, { ...row, v: [] }, [], found.now - row.t, false));
			if (all.rows.some((row, i) => known[i] !== null && known[i] !== found.rows.some((r) => r.id === row.id))) wrong.push(where + ": without values");
		}
		return wrong;
	})()`, &wrong, awaited))
	if len(wrong) > 0 {
		t.Errorf("the page and the server choose different rows: %q", wrong)
	}
}

// TestSuggestedFilters: the server reads each filter that the page suggests, whatever the fields are called.
func TestSuggestedFilters(t *testing.T) {
	ctx, c, put := openRovers(t)
	put(0, time.Now(), map[string]any{" temp %": 21, "rover": "a field, and no key", "not": true})
	var wrong []string
	step(t, ctx, "the filters", c.open("/fleet", "tenant", "acme", "dataset", "rovers"), until(`document.querySelectorAll("#filter-names option").length > 5`), chromedp.Evaluate(`(async () => {
		const all = [...document.querySelectorAll("#filter-names option")].map((n) => n.value), wrong = [];
		for (const where of [...all, document.querySelector(".filter").placeholder.replace("Filter: ", "")]) {
			const found = await fetch("/api/acme/rovers/latest?where=" + encodeURIComponent(where)).then((r) => r.json());
			if (!found.filter || found.never || found.filter.of === "key") wrong.push(where);
		}
		return wrong;
	})()`, &wrong, awaited))
	if len(wrong) > 0 {
		t.Errorf("the page suggests %q", wrong)
	}
}

// TestColumnsAreRemembered: chosen columns come back, each with its own line and scale, and the address has them.
func TestColumnsAreRemembered(t *testing.T) {
	ctx, c, put := openRovers(t)
	for i := range 5 {
		put(0, time.Now().Add(time.Duration(i)*time.Millisecond), map[string]any{"battery_pct": 40 + i, "speed": 100 * i, "state": "parked", "fault": false})
	}
	var titles, again []string
	const scales = `(document.querySelector("#row-0").dispatchEvent(new Event("pointerover")), [...document.querySelectorAll("#row-0 .spark")].map((n) => n.title))`
	step(t, ctx, "the columns", c.open("/fleet", "tenant", "acme", "dataset", "rovers", "sort", "name"), until(`document.querySelector(".menu input[value=speed]")`),
		chromedp.Evaluate(`for (const n of document.querySelectorAll(".toolbar .menu input")) if (n.checked !== ["battery_pct", "speed"].includes(n.value)) n.click()`, nil),
		until(scales+`.filter(Boolean).length === 2`), chromedp.Evaluate(scales, &titles),
		c.open("/fleet", "tenant", "acme", "dataset", "rovers", "sort", "name"), until(scales+`.filter(Boolean).length === 2 && location.search.includes("field=speed")`), chromedp.Evaluate(scales, &again))
	if want := []string{"battery_pct: from 5 to 44", "speed: from 0 to 400"}; !slices.Equal(titles, want) || !slices.Equal(again, want) {
		t.Errorf("the lines are %q and then %q, want %q", titles, again, want)
	}
	var ink []bool
	step(t, ctx, "the lines", chromedp.Evaluate(drawn, nil, awaited), chromedp.Evaluate(`[...document.querySelectorAll("#row-0 canvas")].map((n) => n.getContext("2d").getImageData(0, 0, n.width, n.height).data.some((x) => x))`, &ink),
		chromedp.Evaluate(`localStorage.clear()`, nil))
	if !slices.Equal(ink, []bool{true, true}) {
		t.Errorf("the lines are drawn: %v", ink)
	}
	c.clean()
}

// TestEntityPicker finds entities by a part of their names, with the keyboard, on the pages of charts.
func TestEntityPicker(t *testing.T) {
	ctx, c, _ := openRovers(t)
	box := `[role=combobox]`
	step(t, ctx, "an entity", c.open("/entity", "tenant", "acme", "dataset", "rovers"), chromedp.WaitVisible(box), chromedp.SendKeys(box, "R03"), until(`document.querySelectorAll("[role=option]").length === 1`))
	checkLooks(t, ctx, "picker")
	step(t, ctx, "the entity", chromedp.Focus(box), press(kb.Enter), until(`location.search.includes("entity=mars%2Fr03") && document.querySelector("h1").textContent === "mars / r03"`))
	step(t, ctx, "another one", chromedp.SendKeys(box, "mars/r0"), until(`document.querySelectorAll("[role=option]").length === 10`), press(kb.ArrowDown), press(kb.ArrowDown), press(kb.Enter),
		until(`document.querySelector("h1").textContent === "mars / r01"`))
	step(t, ctx, "compare", c.open("/compare", "tenant", "acme", "dataset", "rovers", "entity", "mars/r01"), chromedp.WaitVisible(box), chromedp.SendKeys(box, "r02"), until(`document.querySelectorAll("[role=option]").length === 1`),
		chromedp.Click(`[role=option]`), until(`document.querySelectorAll(".heading .chip, .chips .chip").length === 2 && location.search.includes("mars%2Fr02")`))
	c.clean()
}
