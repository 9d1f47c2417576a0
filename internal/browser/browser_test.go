package browser

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are the programs that can open a page here.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// end stops the browser of all tests.
var end = func() {}

// start starts the browser of all tests that share one, on first use. It returns nil if none is installed.
var start = sync.OnceValues(func() (ctx context.Context, err error) {
	ctx, end, err = open()
	return ctx, err
})

// open starts a browser. It returns nil if none is installed.
func open() (_ context.Context, end func(), _ error) {
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		return nil, func() {}, nil
	}
	path, _ := exec.LookPath(names[i])
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900), chromedp.Flag("lang", "en"))...)
	ctx, stop := chromedp.NewContext(ctx)
	return ctx, func() { stop(); cancel() }, chromedp.Run(ctx)
}

func TestMain(m *testing.M) {
	code := m.Run()
	end()
	os.Exit(code)
}

// browser returns a tab without cookies, or skips the test. Tests that call it do not run at the same time.
func browser(t *testing.T) context.Context {
	t.Helper()
	all, err := start()
	return tab(t, all, err)
}

// another returns a tab of a browser of the test's own, or skips the test. It is for tests that mostly wait: they run
// in parallel.
func another(t *testing.T) context.Context {
	t.Helper()
	t.Parallel()
	all, end, err := open()
	t.Cleanup(end)
	return tab(t, all, err)
}

func tab(t *testing.T, all context.Context, err error) context.Context {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if all == nil {
		t.Skipf("no browser is installed here (%s): the page is not opened", strings.Join(names, ", "))
	}
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	// A tab in the background draws nothing.
	if err := chromedp.Run(ctx, network.ClearBrowserCookies(), page.BringToFront()); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// watch collects the addresses of all requests, and what the page reports as errors.
type watch struct {
	mu       sync.Mutex
	requests []string
	errors   []string
}

func (w *watch) on(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, event.Request.URL)
	case *runtime.EventExceptionThrown:
		w.errors = append(w.errors, event.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.APITypeError || event.Type == runtime.APITypeAssert {
			w.errors = append(w.errors, "console.error")
		}
	case *log.EventEntryAdded: // such as what the page's policy forbids
		if event.Entry.Level == log.LevelError {
			w.errors = append(w.errors, event.Entry.Text+" "+event.Entry.URL)
		}
	}
}

// take returns the requests and errors since the last call.
func (w *watch) take() (requests, errors []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests, errors = w.requests, w.errors
	w.requests, w.errors = nil, nil
	return requests, errors
}
