package heatview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// TestLinesAreEqual: each line has as many entities as the others, except the last, so equal loads look equal.
func TestLinesAreEqual(t *testing.T) {
	r := newTestRecorder(time.Second)
	for i := range 1000 {
		r.note(writes, fmt.Sprintf("acme#readings#device-%04d#7443056836731319018", i), 1)
	}
	for _, most := range []int{1, 7, 300, 512, 999, 1000, 5000} {
		g := gridOf(r.recording(), byKey, most)
		total := 0
		for i, l := range g.lines {
			total += l.entities
			if l.entities != g.lines[0].entities && i < len(g.lines)-1 {
				t.Errorf("at most %d lines: line %d has %d entities, and the first %d", most, i, l.entities, g.lines[0].entities)
			}
		}
		if len(g.lines) > most || total != 1000 {
			t.Errorf("at most %d lines: %d with %d entities", most, len(g.lines), total)
		}
	}
}

// TestHTML: the page holds its data and nothing that loads anything, and a key cannot end the data.
func TestHTML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(time.Second)
		r.note(writes, "</script><script src=//example.com>", 1)
		for i := range 900 {
			r.note(writes, fmt.Sprintf("acme#readings#device-%04d#7443056836731319018", i), 1)
		}
		time.Sleep(time.Second)
		var out bytes.Buffer
		if err := WriteHTML(&out, r.recording()); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if strings.Count(text, "<script") != 2 || strings.Contains(text, "{{") || !strings.Contains(text, "default-src 'none'") {
			t.Error("the page has other scripts than its own, or no policy")
		}
		if found := regexp.MustCompile(`(?i)(https?:|\bsrc=|@import|url\(|fetch\(|XMLHttp|import\()[^\s]*`).FindAllString(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), -1); len(found) > 0 {
			t.Errorf("the page refers to %q", found)
		}
		from := strings.Index(text, `id="data">`) + len(`id="data">`)
		var d pageData
		if err := json.Unmarshal([]byte(text[from:from+strings.Index(text[from:], "</script>")]), &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Views) != 3 || len(d.Views[0].Lines) > finest || len(d.Views[2].Lines) != 2 {
			t.Errorf("the data have %d views", len(d.Views))
		}
	})
}

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	r, err := heatmap.NewRecorder(heatmap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Handler(r)
}

// TestServe: a recorder is shown as a page and as a file.
func TestServe(t *testing.T) {
	h := newHandler(t)
	for _, test := range []struct {
		query, kind string
		status      int
	}{
		{"", "text/html; charset=utf-8", 200},
		{"?format=recording", "application/octet-stream", 200},
		{"?format=x", "text/plain; charset=utf-8", 400},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/heatmap"+test.query, http.NoBody))
		if w.Code != test.status || w.Header().Get("Content-Type") != test.kind {
			t.Errorf("%q: %d %q", test.query, w.Code, w.Header().Get("Content-Type"))
		}
		if test.query == "?format=recording" {
			if _, err := heat.Read(w.Body); err != nil {
				t.Errorf("the served file: %v", err)
			}
		}
	}
}

// heldWriter is a client that takes its first bytes, then waits.
type heldWriter struct {
	http.ResponseWriter // hides other methods that write
	begun, end          chan struct{}
	once                sync.Once
}

func (w *heldWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.begun); <-w.end })
	return w.ResponseWriter.Write(p)
}

// TestServeIsBounded: a handler makes two pages at once, also for clients that read slowly, and others when these have
// ended.
func TestServeIsBounded(t *testing.T) {
	h := newHandler(t)
	get := httptest.NewRequest("GET", "/heatmap", http.NoBody)
	end := make(chan struct{})
	var slow sync.WaitGroup
	for range 2 {
		w := &heldWriter{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), end: end}
		slow.Go(func() { h.ServeHTTP(w, get) })
		<-w.begun
	}
	third := httptest.NewRecorder()
	h.ServeHTTP(third, get)
	if third.Code != http.StatusServiceUnavailable || third.Header().Get("Retry-After") == "" {
		t.Errorf("the third picture at once: status %d, Retry-After %q", third.Code, third.Header().Get("Retry-After"))
	}
	close(end)
	slow.Wait()
	later := httptest.NewRecorder()
	if h.ServeHTTP(later, get); later.Code != http.StatusOK {
		t.Errorf("a picture after the others: status %d", later.Code)
	}
}
