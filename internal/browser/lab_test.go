package browser

import (
	"bytes"
	"context"
	"encoding/base64"
	escaped "html"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// compared returns the page of two candidates that tidectl simulated. The name of one is HTML.
func compared(t *testing.T) []byte {
	t.Helper()
	load, page := filepath.Join(t.TempDir(), "load.yaml"), filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(load, []byte(`
name: trucks
duration: 10m
heavy: 1m
cluster: {nodes: 4}
datasets:
  - {name: positions, fields: [truck], entities: 20k, every: 1s, bytes: 100}
candidates:
  - {name: "<img src=//example.com/x>", key: time#truck}
  - {name: truck first, key: tenant#truck#~time}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	tidectl := exec.CommandContext(t.Context(), "go", "run", "../../examples/apps/tidectl", "lab", "simulate", "--html", page, load)
	tidectl.Env = append(os.Environ(), "GOWORK=") // tidectl is in the workspace
	if out, err := tidectl.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// colours returns how many colours a picture has inside of an edge.
func colours(t *testing.T, picture []byte, edge int) int {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	seen, inside := map[color.Color]bool{}, img.Bounds().Inset(edge)
	for y := inside.Min.Y; y < inside.Max.Y; y++ {
		for x := inside.Min.X; x < inside.Max.X; x++ {
			seen[img.At(x, y)] = true
		}
	}
	return len(seen)
}

// thumbnails returns how many colours the pictures have that the page of a comparison holds.
func thumbnails(t *testing.T, page []byte) (n []int) {
	t.Helper()
	for _, found := range regexp.MustCompile(`data:image/png;base64,([^"]*)`).FindAllSubmatch(page, -1) {
		picture, err := base64.StdEncoding.DecodeString(escaped.UnescapeString(string(found[1])))
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, colours(t, picture, 0))
	}
	return n
}

// TestLabPage opens the page of a comparison: the ranking, both heatmaps drawn in both themes, nothing wider than a
// phone, and nothing loaded.
func TestLabPage(t *testing.T) {
	ctx := browser(t)
	page := compared(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	var seen watch
	chromedp.ListenTarget(ctx, seen.on)
	var ranking, light, dark string
	var lightMap, darkMap, phoneMap int // colours
	var phone int
	background := func(to *string) chromedp.Action {
		return chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, to)
	}
	theme := func(name string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
	}
	pictures := thumbnails(t, page)
	if len(pictures) != 2 || slices.Min(pictures) < 2 {
		t.Fatalf("the pictures of the page have %d colours, want one of each candidate, and none of one colour", pictures)
	}
	want := pictures[1]
	const rounded = 10 // pixels of the frame's corners, which have colours of their own
	const frame = `.candidate:nth-of-type(2) img`
	if len(page) > 100_000 { // ten candidates, executed and simulated, take at most 500 kB
		t.Errorf("the page of two candidates has %d bytes", len(page))
	}
	const broken = `[...document.querySelectorAll("td, th")].filter((n) => n.clientHeight > 2 * parseFloat(getComputedStyle(n).fontSize) + 12).map((n) => n.textContent)`
	const first = `document.querySelector("h2").textContent`
	var words []string
	var heading string
	drawn := func(to *int) chromedp.Action { // a frame draws its picture some time after it is in sight
		return chromedp.ActionFunc(func(ctx context.Context) error {
			for range 100 {
				var picture []byte
				if err := chromedp.Screenshot(frame, &picture).Do(ctx); err != nil {
					return err
				}
				if *to = colours(t, picture, rounded); *to >= want {
					break
				}
			}
			return nil
		})
	}
	err := chromedp.Run(ctx,
		network.Enable(), runtime.Enable(), theme("light"), chromedp.Navigate(server.URL),
		chromedp.Text("ol", &ranking), background(&light), chromedp.EmulateViewport(1440, 900), chromedp.Evaluate(broken, &words), chromedp.Evaluate(first, &heading),
		chromedp.ScrollIntoView(frame), drawn(&lightMap), theme("dark"), background(&dark), drawn(&darkMap),
		chromedp.EmulateViewport(360, 800), chromedp.Evaluate(`document.documentElement.scrollWidth`, &phone), drawn(&phoneMap),
	)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(ranking), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "truck first") || !strings.HasPrefix(lines[1], "<img src=//example.com/x>") {
		t.Errorf("the ranking is %q, want truck first before the other one", lines)
	}
	if len(words) > 0 || heading != "Ranking" {
		t.Errorf("at 1440 pixels these cells have several lines: %q; the page begins with %q, want the ranking", words, heading)
	}
	if light == dark {
		t.Errorf("the background is %s in both themes", light)
	}
	for name, n := range map[string]int{"light": lightMap, "dark": darkMap, "phone": phoneMap} {
		if n < want {
			t.Errorf("%s: the heatmap is drawn in %d colours, want at least %d", name, n, want)
		}
	}
	if phone > 360 {
		t.Errorf("the page is %d pixels wide on a phone of 360", phone)
	}
	own := func(url string) bool {
		return url == server.URL+"/" || strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "about:")
	}
	if slices.ContainsFunc(seen.requests, func(url string) bool { return !own(url) }) || len(seen.errors) > 0 {
		t.Errorf("the page requested %q; errors: %q", seen.requests, seen.errors)
	}
}
