package lab

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": short, "nodes": nodes, "figure": figure, "size": size, "percent": func(x float64) string { return figure(x*100) + "%" },
	"heatmap": func(r *heatmap.Recording) (string, error) {
		var b strings.Builder
		err := r.WriteHTML(&b, heatmap.PictureOptions{})
		return b.String(), err
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
