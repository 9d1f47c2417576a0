package browser

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/tsdb"
)

var frames = flag.Int("frames", 60, "how many frames TestConsoleScrolls draws in each case")

// TestConsoleScrolls scrolls a list of almost 10,000 entities by some pixels each frame, and sorts it by each column in
// turn, also while 1,000 points arrive each second. Each frame must show rows. It logs how long the frames take, when
// the first rows and the first chart are there, and how many rows the list reads when nobody touches it; for figures
// worth telling, give it more frames on an idle machine.
func TestConsoleScrolls(t *testing.T) {
	ctx := browser(t)
	c := openConsole(t, ctx)
	step(t, ctx, "the fleet", c.login("secret-of-acme"), until(`document.querySelector(".pill.live") && document.querySelector(".count").textContent.endsWith("of 9991")`))
	// marks when a frame has rows or a chart.
	const marks = `(function look() { if (document.querySelector(".grid .row .name a")?.textContent || document.querySelector(".legend dd")?.textContent.match(/[0-9]/)) performance.mark("rows"); else requestAnimationFrame(look); })()`
	step(t, ctx, "the marks", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(marks).Do(ctx)
		return err
	}))
	for _, query := range []string{"", "&sort=-speed", "&where=speed%20%3C%205000%20and%20not%20silent&sort=speed"} {
		var first float64
		step(t, ctx, "the first rows", chromedp.Navigate(c.url+"/fleet?tenant=acme&dataset=trucks"+query), until(`document.querySelector(".pill.live")`), chromedp.Evaluate(`performance.getEntriesByName("rows")[0].startTime`, &first))
		t.Logf("the first rows of a list%s are there %.0f ms after its address was opened", query, first)
	}
	var chart float64
	step(t, ctx, "the first chart", c.open("/entity", "tenant", "acme", "dataset", "trucks", "entity", tsdb.NewEntity("hamburg", html).String()), until(`performance.getEntriesByName("rows")[0]`), chromedp.Evaluate(`performance.getEntriesByName("rows")[0].startTime`, &chart))
	t.Logf("the first chart is there %.0f ms after its address was opened", chart)
	step(t, ctx, "the fleet", chromedp.Navigate(c.url+"/fleet?tenant=acme&dataset=trucks"), until(`document.querySelector(".pill.live") && document.querySelector(".count").textContent.endsWith("of 9991")`))
	const scroll = `new Promise((done) => {
		const all = [];
		let last = 0;
		const frame = (now) => {
			const grid = document.querySelector(".grid");
			if (last) all.push(grid.querySelectorAll(".row:not(.head)").length ? now - last : -1);
			last = now;
			grid.scrollTop += %d;
			if (%t && all.length %% 10 === 5) document.querySelectorAll(".head button")[Math.floor(all.length / 10) %% 4].click();
			if (grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1) grid.scrollTop = 0;
			if (all.length < %d) requestAnimationFrame(frame);
			else done(all);
		};
		requestAnimationFrame(frame);
	})`
	for _, load := range []int{0, 1000} {
		stop := c.putEachSecond(load)
		for _, pixels := range []int{120, 2000, 0} { // a wheel, the bar drawn to another place, and none while it is sorted
			var took []float64
			step(t, ctx, "scrolling", chromedp.Evaluate(fmt.Sprintf(scroll, pixels, pixels == 0, *frames), &took, awaited))
			slices.Sort(took)
			t.Logf("%d pixels a frame, %d points a second: %d frames, median %.1f ms, p95 %.1f ms, p99 %.1f ms", pixels, load, len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)*99/100])
			if took[0] < 0 {
				t.Errorf("%d pixels a frame, %d points a second: a frame has no rows", pixels, load)
			}
		}
		before, seconds := rowsRead(t, c.reader), time.Duration(1+*frames/60)
		step(t, ctx, "an idle list", chromedp.Sleep(seconds*time.Second))
		t.Logf("%d points a second: an idle list reads %.0f rows a second", load, (rowsRead(t, c.reader)-before)/float64(seconds))
		stop()
	}
	c.clean()
}

// putEachSecond puts some points of the fleet each second, until stop is called or the test ends.
func (c *console) putEachSecond(load int) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for tick := time.Tick(100 * time.Millisecond); load > 0; {
			select {
			case <-ctx.Done():
				return
			case now := <-tick:
				points := make([]tsdb.Point[truck], load/10)
				for i := range points {
					points[i] = tsdb.Point[truck]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("truck-%04d", (now.UnixMilli()/100*int64(len(points))+int64(i))%fleetSize)), Time: now, Value: truck{float64(i), "driving"}}
				}
				if _, err := trucks.For(c.store, acme).PutMany(ctx, points); err != nil && ctx.Err() == nil {
					c.t.Error(err)
				}
			}
		}
	})
	stop = func() { cancel(); running.Wait() }
	c.t.Cleanup(stop)
	return stop
}
