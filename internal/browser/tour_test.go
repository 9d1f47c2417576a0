package browser

import (
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/examples/fleet/tour"
)

// running is a tour in this process.
type running struct {
	links map[string]string // by who logs in
	stop  func() error
}

var invitation = regexp.MustCompile(`(?m)^  (\w+) +(http://\S+)$`)

// startTour runs a small tour with its built-in broker.
func startTour(t *testing.T, dir string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := tour.Run(ctx, []string{"-dir", dir, "-addr", "127.0.0.1:0", "-broker", "built-in", "-vehicles", "60", "-history", "1h"},
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

// watched turns on what watch collects.
func watched(ctx context.Context, seen *watch) chromedp.Action {
	chromedp.ListenTarget(ctx, seen.on)
	return chromedp.Tasks{network.Enable(), runtime.Enable(), log.Enable()}
}

func TestTour(t *testing.T) {
	ctx := browser(t)
	r := startTour(t, t.TempDir())
	var seen watch
	if err := chromedp.Run(ctx, watched(ctx, &seen), theme("light"), chromedp.Navigate(r.links["operator"]), chromedp.WaitVisible(`.grid .row`)); err != nil {
		t.Fatal(err)
	}
	shoot(t, ctx, "fleet")
	for _, page := range []string{"entity", "compare", "keys", "health"} {
		if err := chromedp.Run(ctx, chromedp.Click(`#nav a[href^="/`+page+`"]`), chromedp.Sleep(7*time.Second)); err != nil {
			t.Fatal(err)
		}
		shoot(t, ctx, page)
	}
	requests, errors := seen.take()
	t.Log(len(requests), errors)
}
