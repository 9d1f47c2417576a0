package browser

import (
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/examples/fleet/tour"
)

// running is a tour in this process.
type running struct {
	links map[string]string // by who logs in
	stop  func() error
}

var invitation = regexp.MustCompile(`(?m)^  (\w+) +(http://\S+)$`)

// startTour runs a small tour without a broker.
func startTour(t *testing.T, dir string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := tour.Run(ctx, []string{"-dir", dir, "-addr", "127.0.0.1:0", "-broker", "none", "-vehicles", "60", "-history", "1h"},
			tour.Streams{Out: write, Err: write, Release: func() {}})
		write.CloseWithError(io.EOF)
		ended <- err
	}()
	r := running{links: map[string]string{}, stop: sync.OnceValue(func() error { cancel(); return <-ended })}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	var text strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(text.String(), "Ctrl-C stops"); {
		n, err := read.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			t.Fatalf("the tour ended: %v, after\n%s", r.stop(), text.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	for _, m := range invitation.FindAllStringSubmatch(text.String(), -1) {
		r.links[m[1]] = m[2]
	}
	return r
}

// theme sets the theme of the reader's system.
func theme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// TestTour: the link that the tour prints logs in, the vehicles are on the page, and they move.
func TestTour(t *testing.T) {
	ctx := browser(t)
	r := startTour(t, t.TempDir())
	c := &pages{seen: &watch{}}
	c.url = r.links["operator"][:strings.Index(r.links["operator"], "/login")]
	const numbers = `[...document.querySelectorAll(".grid .row .value")].map((n) => n.textContent).join()`
	var before, address string
	if err := chromedp.Run(ctx, watched(ctx, c.seen), chromedp.Navigate(r.links["operator"]), until(`document.querySelectorAll(".grid .row").length > 5`),
		chromedp.Location(&address), chromedp.Evaluate(numbers, &before), until(numbers+" !== "+strconv.Quote(before))); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(address, "token") {
		t.Errorf("the address still has the token: %s", address)
	}
	shoot(t, ctx, "tour")
	c.quiet(t)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := chromedp.Run(ctx, until(`document.querySelector(".pill.live") === null`)); err != nil {
		t.Errorf("the page says that it is live when the tour has stopped: %v", err)
	}
}
