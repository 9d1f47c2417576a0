package lab

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

//go:embed page.html
var pageText string

// heatLines is how many lines a heatmap of the page has. Few large cells make a picture of some kilobytes.
const heatLines = 60

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": short, "nodes": nodes, "figure": figure, "size": size, "percent": func(x float64) string { return figure(x*100) + "%" },
	"heatmap": func(r *heatmap.Recording) (template.URL, error) {
		var b bytes.Buffer
		err := r.WritePNG(&b, heatmap.PictureOptions{Lines: heatLines})
		return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), err //nolint:gosec // our own picture
	},
}).Parse(pageText))

// WriteHTML writes the report as one page, with the heatmaps of each candidate. It loads nothing. It shows row keys of the
// load, which are made up.
func (r *Report) WriteHTML(w io.Writer) error {
	if w == nil {
		return invalid.New(ErrInvalid, "writer", "nil", "an io.Writer")
	}
	if r == nil {
		r = new(Report)
	}
	var text strings.Builder
	if err := page.Execute(&text, struct {
		*Report
		Where, Unmet, Failures any
	}{r, r.where(), r.Unmet(), r.Failures()}); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}
