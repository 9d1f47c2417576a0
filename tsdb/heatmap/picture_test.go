package heatmap

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// twoTenants records 16 entities of two tenants in four columns, the second tenant with ten times the load, and one entity
// that is hotter than all others together.
func twoTenants(t *testing.T) *Recording {
	t.Helper()
	r := newTestRecorder(t, Options{Column: time.Second})
	for column := range 4 {
		for i := range 8 {
			r.note(writes, fmt.Sprintf("acme#readings#device-%d#7443056836731319018", i), 10)
			for range 10 {
				r.note(reads, fmt.Sprintf("umbrella#readings#device-%d#7443056836731319018", i), 100)
			}
		}
		for range 400 * min(column, 1) {
			r.note(writes, "umbrella#readings#gateway#7443056836731319018", 10)
		}
		r.note(failures, "acme#readings#device-0#7443056836731319018", 0)
		time.Sleep(time.Second)
	}
	return r.Recording()
}

// TestText: lines are entities, datasets or tenants, in the order of keys; weak loads are visible next to a hot entity, and
// the figures are rates.
func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := twoTenants(t)
		for _, test := range []struct {
			o    PictureOptions
			want []string // the lines behind the heading
		}{
			{PictureOptions{}, []string{
				"acme readings device-0               |----| 1/s", "acme readings device-1               |----| 1/s",
				"umbrella readings device-7           |####| 10/s", "umbrella readings gateway            | @@@| 300/s",
			}},
			{PictureOptions{By: ByTenant}, []string{"acme                                 |", "umbrella                             |"}},
			{PictureOptions{By: ByDataset, Metric: Bytes}, []string{"acme readings                        |", "B/s", "KiB/s"}},
			{PictureOptions{By: ByTenant, Metric: Failures}, []string{"|####| 1/s", "|    | 0/s"}},
			{PictureOptions{By: ByTenant, Metric: Latency}, []string{"| 1 ms"}},
			{PictureOptions{Metric: Writes, Lines: 4}, []string{"acme readings device-5"}},
		} {
			var out strings.Builder
			if err := r.WriteText(&out, test.o); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%+v: there is no %q in\n%s", test.o, want, out.String())
				}
			}
			if lines := strings.Count(out.String(), "|") / 2; test.o.Lines > 0 && lines > test.o.Lines {
				t.Errorf("%+v: %d lines", test.o, lines)
			}
		}
	})
}

// TestControlCharacters of keys do not reach a terminal.
func TestControlCharacters(t *testing.T) {
	r := newTestRecorder(t, Options{})
	r.note(writes, "a\x1b[31m\r\n\x00\xff", 1)
	var out strings.Builder
	if err := r.Recording().WriteText(&out, PictureOptions{}); err != nil || strings.ContainsAny(out.String(), "\x1b\r\x00") || strings.Contains(out.String(), "\xff") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v %q", err, out.String())
	}
}

// TestLinesAreEqual: each line has as many entities as the others, except the last, so equal loads look equal.
func TestLinesAreEqual(t *testing.T) {
	r := newTestRecorder(t, Options{})
	for i := range 1000 {
		r.note(writes, fmt.Sprintf("acme#readings#device-%04d#7443056836731319018", i), 1)
	}
	for _, most := range []int{1, 7, 300, 512, 999, 1000, 5000} {
		g := r.Recording().grid(ByKey, most)
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

// TestScale: one hot cell does not change the colours of the others by more than a quarter, and differs from them.
func TestScale(t *testing.T) {
	even := slices.Repeat([]float64{5}, 100)
	without, with := scaleOf(even), scaleOf(append(slices.Clone(even), 1e6))
	if a, b := without.strength(5), with.strength(5); a != b {
		t.Errorf("a hot cell changes the colour of the others from %v to %v", a, b)
	}
	if hot := with.strength(1e6); hot != 1 || with.strength(5) >= 0.9 || with.strength(0) != 0 || with.strength(1) >= with.strength(5) || with.strength(500) <= with.strength(5) {
		t.Errorf("strengths: %v %v %v %v %v", with.strength(0), with.strength(1), with.strength(5), with.strength(500), hot)
	}
}

// TestHTML: the page holds its data and nothing that loads anything, and a key cannot end the data.
func TestHTML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{})
		r.note(writes, "</script><script src=//example.com>", 1)
		for i := range 900 {
			r.note(writes, fmt.Sprintf("acme#readings#device-%04d#7443056836731319018", i), 1)
		}
		time.Sleep(time.Second)
		var out bytes.Buffer
		if err := r.Recording().WriteHTML(&out, PictureOptions{By: ByTenant, Metric: Latency}); err != nil {
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
		if d.By != int(ByTenant) || d.Metric != int(Latency) || len(d.Views) != 3 || len(d.Views[0].Lines) > finest || len(d.Views[2].Lines) != 2 {
			t.Errorf("the data are of view %d, metric %d, with %d views", d.By, d.Metric, len(d.Views))
		}
	})
}

// TestPNG: the picture has the colours of its theme, and the cells of the strongest entity are the strongest.
func TestPNG(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := twoTenants(t)
		for _, dark := range []bool{false, true} {
			var out bytes.Buffer
			if err := r.WritePNG(&out, PictureOptions{Dark: dark}); err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(&out)
			if err != nil {
				t.Fatal(err)
			}
			is := func(x, y int, want [3]uint8) bool {
				r, g, b, _ := img.At(x, y).RGBA()
				return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)} == want
			}
			page := themes[dark].page
			if !is(1, 1, [3]uint8{page.R, page.G, page.B}) {
				t.Errorf("dark %v: the background is %v", dark, img.At(1, 1))
			}
			strongest := palettes[dark][len(palettes[dark])-1]
			last := img.Bounds().Dy() - pngBottom - 5 // the gateway's
			if !is(pngLeft+pngWidth-20, last, strongest) || is(pngLeft+20, last, strongest) || is(pngLeft+pngWidth-20, pngTop+2, strongest) {
				t.Errorf("dark %v: the hot entity has %v, before %v, another %v", dark, img.At(pngLeft+pngWidth-20, last), img.At(pngLeft+20, last), img.At(pngLeft+pngWidth-20, pngTop+2))
			}
		}
	})
}

// TestPNGIsSmall: a picture of many different rates is still small, because it has a palette.
func TestPNGIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRecorder(t, Options{Column: time.Second})
		random := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			for i := range 60 {
				for range 20 + random.IntN(200) {
					r.note(writes, fmt.Sprintf("acme#readings#device-%02d#7443056836731319018", i), 10)
				}
			}
			time.Sleep(time.Second)
		}
		var out bytes.Buffer
		if err := r.Recording().WritePNG(&out, PictureOptions{Lines: 60}); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 18_000 {
			t.Errorf("the picture of 60 lines and 60 columns has %d bytes; want at most 18,000, so that a page of twenty has 500 kB", out.Len())
		}
	})
}

// TestEmptyPictures: every picture of nothing says so.
func TestEmptyPictures(t *testing.T) {
	for _, r := range []*Recording{nil, {}, newTestRecorder(t, Options{}).Recording(), new(Recorder).Recording()} {
		var text, page, picture bytes.Buffer
		if err := errors.Join(r.WriteText(&text, PictureOptions{}), r.WriteHTML(&page, PictureOptions{}), r.WritePNG(&picture, PictureOptions{})); err != nil {
			t.Fatal(err)
		}
		if text.String() != "nothing was recorded\n" || page.Len() == 0 || picture.Len() == 0 || len(r.Findings()) > 0 {
			t.Errorf("%q", text.String())
		}
	}
}

func TestPictureOptionsAreChecked(t *testing.T) {
	var out bytes.Buffer
	for _, o := range []PictureOptions{{By: 3}, {Metric: 6}, {Lines: -1}, {Lines: 1001}} {
		for _, err := range []error{(&Recording{}).WriteText(&out, o), (&Recording{}).WriteHTML(&out, o), (&Recording{}).WritePNG(&out, o)} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%+v: %v, want ErrInvalid", o, err)
			}
		}
	}
	for i, name := range metricNames {
		var m Metric
		if err := m.UnmarshalText([]byte(name)); err != nil || m != Metric(i) || m.String() != name {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	for _, unknown := range []encoding.TextMarshaler{View(len(viewNames)), Metric(255)} {
		if text, err := unknown.MarshalText(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%T %v: %q, %v; want ErrInvalid", unknown, unknown, text, err)
		}
	}
	if err := new(View).UnmarshalText([]byte("colour")); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "dataset") {
		t.Errorf("an unknown view: %v", err)
	}
}

// TestServe: the recorder shows itself as a page, as text and as a file, and refuses the rest.
func TestServe(t *testing.T) {
	r := newTestRecorder(t, Options{})
	r.note(writes, "acme#readings#device-1#7443056836731319018", 1)
	for _, test := range []struct {
		method, query, kind string
		status              int
	}{
		{"GET", "", "text/html; charset=utf-8", 200},
		{"GET", "?by=tenant&metric=latency", "text/html; charset=utf-8", 200},
		{"GET", "?format=text", "text/plain; charset=utf-8", 200},
		{"GET", "?format=recording", "application/octet-stream", 200},
		{"GET", "?by=x", "", 400},
		{"GET", "?metric=x", "", 400},
		{"GET", "?format=x", "", 400},
		{"POST", "", "", 405},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(test.method, "/heatmap"+test.query, http.NoBody))
		if w.Code != test.status || test.kind != "" && w.Header().Get("Content-Type") != test.kind {
			t.Errorf("%s %q: %d %q", test.method, test.query, w.Code, w.Header().Get("Content-Type"))
		}
		if test.query == "?format=recording" {
			if got, err := Read(w.Body); err != nil || got.Totals().Writes != 1 {
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

// TestServeIsBounded: a recorder makes two pictures at once, also for clients that read slowly, and others when these have ended.
func TestServeIsBounded(t *testing.T) {
	r := newTestRecorder(t, Options{})
	r.note(writes, "acme#readings#device-1#7443056836731319018", 1)
	get := httptest.NewRequest("GET", "/heatmap", http.NoBody)
	end := make(chan struct{})
	var slow sync.WaitGroup
	for range 2 {
		w := &heldWriter{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), end: end}
		slow.Go(func() { r.ServeHTTP(w, get) })
		<-w.begun
	}
	third := httptest.NewRecorder()
	r.ServeHTTP(third, get)
	if third.Code != http.StatusServiceUnavailable || third.Header().Get("Retry-After") == "" {
		t.Errorf("the third picture at once: status %d, Retry-After %q", third.Code, third.Header().Get("Retry-After"))
	}
	close(end)
	slow.Wait()
	later := httptest.NewRecorder()
	if r.ServeHTTP(later, get); later.Code != http.StatusOK {
		t.Errorf("a picture after the others: status %d", later.Code)
	}
	off := httptest.NewRecorder()
	if (*Recorder)(nil).ServeHTTP(off, get); off.Code != http.StatusOK {
		t.Errorf("a nil recorder: status %d", off.Code)
	}
}
