package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// shoot saves pictures of the page in both themes and on a phone, in the folder that TIDEMARK_SCREENSHOTS names, if it
// does.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("TIDEMARK_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, look := range []struct {
		name, theme string
		width       int64
	}{{"light", "light", 1280}, {"dark", "dark", 1280}, {"phone", "light", 360}} {
		var picture []byte
		if err := chromedp.Run(ctx, theme(look.theme), chromedp.EmulateViewport(look.width, 900), chromedp.CaptureScreenshot(&picture)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+look.name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := chromedp.Run(ctx, theme("light"), chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
}
