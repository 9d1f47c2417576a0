package browser

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/tsdb"
)

var shots = flag.String("shots", "", "folder for pictures of all pages, which TestShots makes")

// TestShots makes pictures of all pages, in both themes and three widths, of the tour, of vans that sent a year ago,
// and of an empty store. CONTRIBUTING.md has the command.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots names no folder")
	}
	ctx := browser(t)
	if err := os.MkdirAll(*shots, 0o700); err != nil {
		t.Fatal(err)
	}
	r := startTour(t, t.TempDir())
	tourURL := r.links["operator"][:strings.Index(r.links["operator"], "/login")]
	var id string
	step(t, ctx, "the tour", chromedp.Navigate(r.links["operator"]), until(`document.querySelectorAll(".grid .row").length > 5`),
		chromedp.Evaluate(`fetch("/api/acme/telemetry/latest").then((r) => r.json()).then((got) => got.rows.slice(0, 2).map((row) => "&entity=" + encodeURIComponent(row.id)).join(""))`, &id, awaited))
	shootAll(t, ctx, "tour", tourURL, "?tenant=acme&dataset=telemetry", id)
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	ctx = browser(t) // with a time of its own
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	operator := chromedp.Tasks{chromedp.Navigate(c.url + "/login"), chromedp.SendKeys("#token", "operator\r"), until(`location.pathname === "/fleet" && document.querySelector("#nav a") !== null`)}
	step(t, ctx, "the login", operator)
	shootAll(t, ctx, "empty", c.url, "?tenant=acme", "&entity=berlin%2Fvan-0")
	last := time.Now().AddDate(-1, 0, 0)
	for n := range 12 {
		var points []tsdb.Point[van]
		for i := range 720 {
			at := float64(i) / 40
			points = append(points, tsdb.Point[van]{
				Entity: tsdb.NewEntity("berlin", fmt.Sprint("van-", n)), Time: last.Add(time.Duration(i-720) * time.Minute),
				Value: van{math.Round(10*max(0, 60*math.Sin(at+float64(n)))) / 10, []string{"moving", "parked", "charging"}[i/90%3]},
			})
		}
		if _, err := vans.For(c.store, mine).PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second) // the console looks for new datasets each second
	shootAll(t, ctx, "year", c.url, "?tenant=acme&dataset=trucks", "&entity=berlin%2Fvan-0&entity=berlin%2Fvan-5")
}

func shootAll(t *testing.T, ctx context.Context, data, base, query, entities string) {
	t.Helper()
	for _, page := range []string{"fleet", "entity", "compare", "keys", "health", "nope"} {
		address := base + "/" + page + query
		if page == "entity" || page == "compare" {
			address += entities
		}
		pause := 2500 * time.Millisecond
		if page == "health" && data == "tour" {
			pause = 8 * time.Second // rates need two looks
		}
		step(t, ctx, page, chromedp.Navigate(address), chromedp.Sleep(pause))
		for _, look := range []string{"light", "dark"} {
			for _, width := range []int64{390, 768, 1440} {
				var picture []byte
				step(t, ctx, page, theme(look), chromedp.EmulateViewport(width, 900), chromedp.Evaluate(drawn, nil, awaited), chromedp.Sleep(500*time.Millisecond), chromedp.CaptureScreenshot(&picture))
				if err := os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%s-%s-%d.png", data, page, look, width)), picture, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		step(t, ctx, page, theme("light"), chromedp.EmulateViewport(1280, 900))
	}
}
