package lab

import (
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

//go:embed page.html
var pageText string

// heatLines is how many lines a heatmap of the page has.
const heatLines = 60

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": short, "nodes": nodes, "figure": figure, "size": size, "assumed": assumed, "percent": func(x float64) string { return figure(x*100) + "%" },
	"heatmap": func(r *heat.Recording) (template.URL, error) {
		picture, err := heatview.Thumbnail(r, heatLines)
		return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)), err //nolint:gosec // our own picture
	},
}).Parse(pageText))

// WriteHTML writes the report as one page, with the heatmaps of each candidate. It loads nothing.
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
