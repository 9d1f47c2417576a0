package browser

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestConsoleScrolls scrolls a list of almost 10,000 entities by some pixels each frame, and logs how long the frames take: also while
// 1,000 points arrive each second. On a busy machine frames are late, so only a page that hardly moves fails.
func TestConsoleScrolls(t *testing.T) {
	ctx := browser(t)
	c := openConsole(t, ctx)
	step(t, ctx, "the fleet", c.login("secret-of-acme"), until(`document.querySelector(".pill.live") && document.querySelector(".count").textContent.endsWith("of 9991")`))
	const scroll = `new Promise((done) => {
		const grid = document.querySelector(".grid"), all = [];
		let last = 0;
		const frame = (now) => {
			if (last) all.push(now - last);
			last = now;
			grid.scrollTop += %d;
			if (grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1) grid.scrollTop = 0;
			if (all.length < 500) requestAnimationFrame(frame);
			else done(all);
		};
		requestAnimationFrame(frame);
	})`
	for _, load := range []int{0, 1000} {
		stop, stopped := make(chan struct{}), sync.WaitGroup{}
		stopped.Go(func() {
			for tick := time.Tick(100 * time.Millisecond); load > 0; {
				select {
				case <-stop:
					return
				case now := <-tick:
					points := make([]tsdb.Point[truck], load/10)
					for i := range points {
						points[i] = tsdb.Point[truck]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("truck-%04d", (now.UnixMilli()/100*int64(len(points))+int64(i))%fleetSize)), Time: now, Value: truck{float64(i), "driving"}}
					}
					c.put(acme, points...)
				}
			}
		})
		for _, pixels := range []int{120, 2000} { // a wheel, and the bar drawn to another place
			var frames []float64
			step(t, ctx, "scrolling", chromedp.Evaluate(fmt.Sprintf(scroll, pixels), &frames, awaited))
			slices.Sort(frames)
			median, p99 := frames[len(frames)/2], frames[len(frames)*99/100]
			t.Logf("%d pixels a frame, %d points a second: %d frames, median %.1f ms, p99 %.1f ms", pixels, load, len(frames), median, p99)
			if median > 200 {
				t.Errorf("half of the frames take over %.0f ms", median)
			}
		}
		close(stop)
		stopped.Wait()
	}
	c.clean()
}
