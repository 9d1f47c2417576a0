package heatview

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

//go:embed page.html
var page string

// finest is how many lines a page holds. It joins them into as many as its window shows, and shows more when it zooms.
const finest = 512

// The JSON of a page. Cells are flat numbers: column, line, reads, writes, failures, bytes, microseconds.
type (
	pageData struct {
		About    string        `json:"about"`
		From     int64         `json:"from"` // of the recording, in milliseconds
		To       int64         `json:"to"`
		Start    int64         `json:"start"` // of the first column, in milliseconds
		Width    float64       `json:"width"` // of a column, in milliseconds
		Columns  []pageColumn  `json:"columns"`
		Views    []pageView    `json:"views"`
		Findings []Finding     `json:"findings"`
		Palettes [2][][3]uint8 `json:"palettes"` // light and dark
		Clip     float64       `json:"clip"`
		Common   float64       `json:"common"`
	}
	pageColumn struct {
		At      int64      `json:"at"`
		Seconds float64    `json:"seconds"`
		Figures [5]float64 `json:"figures"`
	}
	pageView struct {
		Lines []pageLine `json:"lines"`
		Cells []int64    `json:"cells"`
	}
	pageLine struct {
		From     string `json:"from"`
		To       string `json:"to"`
		Tenant   string `json:"tenant"`
		Dataset  string `json:"dataset"`
		Fields   string `json:"fields"`
		Entities int    `json:"entities"`
		Entity   string `json:"entity,omitempty"` // the text of the only entity, which may begin with a salt
	}
)

// palettes are the colours from little to much: light and dark.
var palettes = [2][][3]uint8{
	{{229, 245, 204}, {179, 225, 175}, {65, 182, 196}, {34, 94, 168}, {8, 29, 88}},
	{{27, 17, 68}, {101, 21, 110}, {188, 55, 84}, {249, 142, 9}, {252, 255, 164}},
}

// Three quarters of the colours are for values up to a percentile of the cells that are not empty, so that one hot
// entity does not make the others invisible. The rest is for what exceeds it.
const (
	clip   = 0.95
	common = 0.75
)

// WriteHTML writes a recording as one HTML page with the findings. A reader can change what is shown, zoom into key
// ranges and see the figures of each cell. The page loads nothing. It contains row keys.
func WriteHTML(w io.Writer, r *heat.Recording) error {
	text, err := json.Marshal(Data(r)) // which escapes < and >
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Replace(page, "{{DATA}}", string(text), 1))
	return err
}

// Data returns what a page draws, as a value for JSON: the columns, the lines by key, dataset and tenant with their
// cells, the findings, and the colours. It contains row keys.
func Data(r *heat.Recording) any {
	d := pageData{
		Palettes: palettes, Clip: clip, Common: common,
		Columns: []pageColumn{}, Views: []pageView{}, Findings: []Finding{},
	}
	list := r.List()
	if len(list) == 0 {
		return d
	}
	d.About, d.From, d.To = about(r), r.First.UnixMilli(), r.Last.UnixMilli()
	d.Start, d.Width = r.Columns.Start(list[0].ID).UnixMilli(), float64(r.Columns.Width)/float64(time.Millisecond)
	for by := range views {
		g := gridOf(r, by, finest)
		d.Views = append(d.Views, g.page())
		if by != byKey {
			continue
		}
		for n, col := range list {
			d.Columns = append(d.Columns, pageColumn{col.ID, g.seconds[n], g.columns[n].flat()})
		}
	}
	for _, f := range Findings(r) {
		f.Key = readable(f.Key) // as the lines have it, which a click looks for
		d.Findings = append(d.Findings, f)
	}
	return d
}

// about describes what the recording counted.
func about(r *heat.Recording) string {
	t := r.Totals()
	size, unit := float64(t.Bytes), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	return fmt.Sprintf("columns of %v: %d reads, %d writes, %d failed, %.4g %s", r.Columns.Width, t.Reads, t.Writes, t.Failures, size, unit)
}

// readable returns a key as text, since keys hold any bytes. What a terminal could obey, or what is not seen, becomes a
// question mark.
func readable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
}

func (f figures) flat() [5]float64 {
	return [5]float64{f.reads, f.writes, f.failures, f.bytes, f.micros}
}

func (g *grid) page() pageView {
	v := pageView{Lines: make([]pageLine, len(g.lines)), Cells: []int64{}}
	for i, l := range g.lines {
		v.Lines[i] = pageLine{
			From: readable(l.first.entity), To: readable(l.last.entity), Tenant: readable(l.first.tenantName()), Dataset: readable(l.first.dataset),
			Fields: readable(strings.Join(l.first.fields(), delim)), Entities: l.entities,
		}
		if l.entities == 1 && l.first.tenant != "" {
			v.Lines[i].Entity = rowkey.Text(strings.Join(l.first.fields(), delim))
		}
	}
	for n, cells := range g.cells {
		for i, f := range cells {
			if f == (figures{}) {
				continue
			}
			v.Cells = append(v.Cells, int64(n), int64(i))
			for _, x := range f.flat() {
				v.Cells = append(v.Cells, int64(math.Round(x)))
			}
		}
	}
	return v
}

// mostPages is how many pages a handler makes at once.
const mostPages = 2

// Handler serves the page of what a recorder has recorded until now, and with ?format=recording the recording itself,
// for "tidectl heatmap". Both contain the keys of all tenants: serve them to operators only. It answers at most two
// requests at once, as each takes the memory of a recording. Others get status 503.
func Handler(r *heatmap.Recorder) http.Handler {
	var serving atomic.Int32
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer serving.Add(-1)
		if serving.Add(1) > mostPages {
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d pictures are being made; try again", mostPages), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch req.URL.Query().Get("format") {
		case "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_ = WriteHTML(w, Of(r)) // the client may have gone
		case "recording":
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", `attachment; filename="recording.heat"`)
			_ = r.Recording().Write(w)
		default:
			http.Error(w, "format is unknown; want recording or none", http.StatusBadRequest)
		}
	})
}
