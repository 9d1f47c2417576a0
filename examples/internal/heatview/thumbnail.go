package heatview

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// Thumbnail returns a recording as a small PNG: time to the right, keys from top to bottom, in at most that many lines.
// A pixel is one column of a line; its colour is the rate of rows. It has no text, and so no row keys.
func Thumbnail(r *heat.Recording, lines int) ([]byte, error) {
	g := gridOf(r, byKey, lines)
	shades := color.Palette{color.Transparent}
	for i := range 255 {
		shades = append(shades, shade(float64(i)/254))
	}
	img := image.NewPaletted(image.Rect(0, 0, max(int(spanOfColumns(r)), 1), max(len(g.lines), 1)), shades)
	rates := make([][]float64, len(g.cells))
	var all []float64
	for n, cells := range g.cells {
		for _, f := range cells {
			rates[n] = append(rates[n], (f.reads+f.writes)/max(g.seconds[n], 1e-9))
		}
		all = append(all, rates[n]...)
	}
	all = slices.DeleteFunc(all, func(v float64) bool { return v <= 0 })
	slices.Sort(all)
	for n, col := range r.List() {
		for y, v := range rates[n] {
			if v > 0 {
				img.SetColorIndex(int(col.ID-r.Columns.List[0].ID), y, uint8(1+254*strength(v, all))) //nolint:gosec // at most 255
			}
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

func spanOfColumns(r *heat.Recording) int64 {
	if r == nil {
		return 0
	}
	return r.Columns.Span()
}

// strength returns the place of a rate among the colours, from 0 to 1, as the page does.
func strength(v float64, sorted []float64) float64 {
	usual, most := sorted[int(clip*float64(len(sorted)-1))], sorted[len(sorted)-1]
	if v <= usual {
		return common * math.Sqrt(v/usual)
	}
	return min(common+(1-common)*math.Log(v/usual)/math.Log(most/usual), 1)
}

// shade returns the colour of a strength.
func shade(v float64) color.Color {
	stops := palettes[0]
	x := v * float64(len(stops)-1)
	i := min(int(x), len(stops)-2)
	mix := func(n int) uint8 {
		a, b := float64(stops[i][n]), float64(stops[i+1][n])
		return uint8(a + (b-a)*(x-float64(i)) + 0.5)
	}
	return color.RGBA{mix(0), mix(1), mix(2), 255}
}
