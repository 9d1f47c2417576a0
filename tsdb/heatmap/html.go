package heatmap

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
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
		By       int           `json:"by"`
		Metric   int           `json:"metric"`
		Start    int64         `json:"start"` // of the first column, in milliseconds
		Width    float64       `json:"width"` // of a column, in milliseconds
		Columns  []pageColumn  `json:"columns"`
		Views    []pageView    `json:"views"`
		Findings []Finding     `json:"findings"`
		Palettes [2][][3]uint8 `json:"palettes"` // light and dark
		Clip     float64       `json:"clip"`
		Common   float64       `json:"common"`
		Tablets  []pageTablet  `json:"tablets"`
	}
	// pageTablet is an outline: by view the first line and the one behind the last, then the same of columns.
	pageTablet struct {
		Text    string   `json:"text"`
		Lines   [][2]int `json:"lines"`
		Columns [2]int   `json:"columns"`
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
	}
)

// WriteHTML writes the picture as one HTML file with the findings. A reader can change view and metric, zoom into key
// ranges and see the figures of each cell. The file loads nothing. It contains row keys.
func (r *Recording) WriteHTML(w io.Writer, o PictureOptions) error {
	if err := o.check(w, r); err != nil {
		return err
	}
	d := pageData{
		By: int(o.By), Metric: int(o.Metric), Palettes: [2][][3]uint8{palettes[false], palettes[true]}, Clip: clip, Common: common,
		Columns: []pageColumn{}, Views: []pageView{}, Findings: []Finding{},
		Tablets: make([]pageTablet, len(o.Tablets)),
	}
	for i, t := range o.Tablets {
		d.Tablets[i] = pageTablet{Text: "hot tablet: " + t.String(), Lines: [][2]int{}}
	}
	if list := r.list(); len(list) > 0 {
		d.About, d.From, d.To = r.sums(), r.first.UnixMilli(), r.last.UnixMilli()
		d.Start, d.Width = r.columns.start(list[0].id).UnixMilli(), float64(r.columns.width)/float64(time.Millisecond)
		for by := range View(len(viewNames)) {
			g := r.grid(by, finest)
			d.Views = append(d.Views, g.page())
			for i, t := range o.Tablets {
				at, ok := r.outline(g, by, t)
				if ok {
					d.Tablets[i].Columns = [2]int{at.firstColumn, at.lastColumn}
				} else {
					at = outline{}
				}
				d.Tablets[i].Lines = append(d.Tablets[i].Lines, [2]int{at.firstLine, at.lastLine})
			}
			if by != ByKey {
				continue
			}
			for n, col := range list {
				d.Columns = append(d.Columns, pageColumn{col.id, g.seconds[n], g.columns[n].flat()})
			}
		}
		for _, f := range r.Findings() {
			f.Key = readable(f.Key) // as the lines have it, which a click looks for
			d.Findings = append(d.Findings, f)
		}
	}
	text, err := json.Marshal(d) // which escapes < and >
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Replace(page, "{{DATA}}", string(text), 1))
	return err
}

// about describes the recording in a sentence.
func (r *Recording) about() string {
	return fmt.Sprintf("%s to %s UTC, %s", r.first.UTC().Format(time.DateTime), r.last.UTC().Format(time.DateTime), r.sums())
}

// sums describes what the recording counted.
func (r *Recording) sums() string {
	t := r.Totals()
	return fmt.Sprintf("columns of %v: %d reads, %d writes, %d failures, %s", r.columns.width, t.Reads, t.Writes, t.Failures, shown(Bytes, float64(t.Bytes), false))
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

// mostPages is how many pictures a recorder makes at once.
const mostPages = 2

// ServeHTTP serves the picture of what was recorded until now, as HTML; with ?format=recording the recording itself, for
// Load and for "tidectl heatmap"; with ?format=text text. The parameters by and metric select as PictureOptions does.
// Pictures contain the keys of all tenants: serve them to operators only. It answers only GET and HEAD, and at most two
// requests at once: each takes the memory of a recording. Others get status 503.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if w == nil || req == nil {
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	var o PictureOptions
	query := req.URL.Query()
	if by := query.Get("by"); by != "" {
		if err := o.By.UnmarshalText([]byte(by)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if metric := query.Get("metric"); metric != "" {
		if err := o.Metric.UnmarshalText([]byte(metric)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if !r.off() {
		defer r.serving.Add(-1)
		if r.serving.Add(1) > mostPages {
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d pictures are being made; try again", mostPages), http.StatusServiceUnavailable)
			return
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	recording := r.Recording()
	switch format := query.Get("format"); format {
	case "", "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = recording.WriteHTML(w, o) // the client may have gone
	case "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = recording.WriteText(w, o)
	case "recording":
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="recording.heat"`)
		_ = recording.Write(w)
	default:
		http.Error(w, "format is unknown; want html, text or recording", http.StatusBadRequest)
	}
}
