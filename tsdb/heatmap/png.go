package heatmap

import (
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strings"
	"time"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// palettes are the colours from little to much: light, and with true dark.
var palettes = map[bool][][3]uint8{
	false: {{229, 245, 204}, {179, 225, 175}, {65, 182, 196}, {34, 94, 168}, {8, 29, 88}},
	true:  {{27, 17, 68}, {101, 21, 110}, {188, 55, 84}, {249, 142, 9}, {252, 255, 164}},
}

// colours of the rest of a picture.
type theme struct{ page, ink, soft, line, bar color.RGBA }

var themes = map[bool]theme{
	false: {color.RGBA{255, 255, 255, 255}, color.RGBA{28, 32, 36, 255}, color.RGBA{107, 114, 128, 255}, color.RGBA{216, 220, 226, 255}, color.RGBA{138, 164, 200, 255}},
	true:  {color.RGBA{17, 20, 24, 255}, color.RGBA{230, 232, 235, 255}, color.RGBA{154, 163, 173, 255}, color.RGBA{52, 58, 66, 255}, color.RGBA{91, 113, 144, 255}},
}

// Sizes in a PNG, in pixels.
const (
	pngLeft   = 330
	pngTop    = 84
	pngRight  = 104
	pngBottom = 30
	pngWidth  = 640 // of the cells, about
	pngHeight = 480 // of the cells, about
	pngText   = 13  // the height of a line of text
	glyph     = 7   // the width of a character
)

// WritePNG writes the picture as a PNG: time to the right, keys from top to bottom, the rates of each column above and
// those of each line at the right. It contains row keys.
func (r *Recording) WritePNG(w io.Writer, o PictureOptions) error {
	if err := o.check(w, r); err != nil {
		return err
	}
	g := r.grid(o.By, cmp.Or(o.Lines, 180))
	c := newCanvas(g, int(r.span()), o)
	c.text(12, 22, c.ink, "Heatmap of row keys: "+o.Metric.String()+" by "+o.By.String())
	if len(g.lines) == 0 {
		c.text(12, 40, c.soft, "nothing was recorded")
	} else {
		c.text(12, 40, c.soft, r.about())
		c.cells(g, r.columns.list)
		c.columnTotals(g, r.columns.list)
		for _, t := range o.Tablets {
			if at, ok := r.outline(g, o.By, t); ok {
				c.outline(at)
			}
		}
		c.lineTotals(g)
		c.times(&r.columns)
		c.names(g)
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, c.paletted())
}

func (r *Recording) span() int64 {
	if r == nil {
		return 0
	}
	return r.columns.span()
}

type canvas struct {
	theme
	img           *image.RGBA
	o             PictureOptions
	width, height int // of a cell
	right, bottom int // of the cells
}

func newCanvas(g *grid, span int, o PictureOptions) *canvas {
	c := &canvas{theme: themes[o.Dark], o: o}
	c.width = max(pngWidth/max(span, 1), 3)
	c.height = min(max(pngHeight/max(len(g.lines), 1), 2), 24)
	c.right, c.bottom = pngLeft+max(span*c.width, 300), pngTop+len(g.lines)*c.height
	c.img = image.NewRGBA(image.Rect(0, 0, c.right+pngRight, c.bottom+pngBottom))
	draw.Draw(c.img, c.img.Bounds(), image.NewUniform(c.page), image.Point{}, draw.Src)
	return c
}

func (c *canvas) fill(x, y, width, height int, with color.Color) {
	draw.Draw(c.img, image.Rect(x, y, x+width, y+height), image.NewUniform(with), image.Point{}, draw.Src)
}

func (c *canvas) text(x, y int, with color.Color, text string) {
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(with), Face: basicfont.Face7x13, Dot: fixed.P(x, y)}
	d.DrawString(text)
}

func (c *canvas) cells(g *grid, list []*column) {
	values := g.values(c.o.Metric)
	top := scaleOf(values)
	c.fill(pngLeft-1, pngTop-1, c.right-pngLeft+2, c.bottom-pngTop+2, c.line)
	c.fill(pngLeft, pngTop, c.right-pngLeft, c.bottom-pngTop, c.page)
	for n, col := range list {
		x := pngLeft + int(col.id-list[0].id)*c.width
		for i := range g.lines {
			if v := values[n*len(g.lines)+i]; v > 0 {
				c.fill(x, pngTop+i*c.height, c.width, c.height, c.colour(top.strength(v)))
			}
		}
	}
	for i := range 60 {
		c.fill(c.right-180+i, 12, 1, 10, c.colour(float64(i)/59))
	}
	c.text(c.right-112, 22, c.soft, "to "+shown(c.o.Metric, top.most, true))
}

// tabletInk is seen on all colours of both palettes.
var tabletInk = color.RGBA{224, 49, 49, 255}

// outline draws the frame of a tablet.
func (c *canvas) outline(o outline) {
	const line = 2
	x, y := pngLeft+o.firstColumn*c.width, pngTop+o.firstLine*c.height
	w, h := (o.lastColumn-o.firstColumn)*c.width, (o.lastLine-o.firstLine)*c.height
	c.fill(x, y, w, line, tabletInk)
	c.fill(x, y+h-line, w, line, tabletInk)
	c.fill(x, y, line, h, tabletInk)
	c.fill(x+w-line, y, line, h, tabletInk)
}

// levels is how many colours the cells have. With those of the rest they fit a palette, which makes the file half as long.
const levels = 200

// paletted returns the picture with a palette.
func (c *canvas) paletted() image.Image {
	out := image.NewPaletted(c.img.Bounds(), nil)
	indexes := map[[4]uint8]uint8{}
	for i := range out.Pix {
		of := [4]uint8(c.img.Pix[4*i:])
		index, known := indexes[of]
		if !known {
			if len(out.Palette) == 256 {
				return c.img
			}
			index = uint8(len(out.Palette)) //nolint:gosec // below 256
			indexes[of], out.Palette = index, append(out.Palette, color.RGBA{of[0], of[1], of[2], of[3]})
		}
		out.Pix[i] = index
	}
	return out
}

// colour returns the colour of a strength.
func (c *canvas) colour(v float64) color.RGBA {
	stops := palettes[c.o.Dark]
	v = math.Round(v*(levels-1)) / (levels - 1)
	x := v * float64(len(stops)-1)
	i := min(int(x), len(stops)-2)
	mix := func(n int) uint8 {
		a, b := float64(stops[i][n]), float64(stops[i+1][n])
		return uint8(a + (b-a)*(x-float64(i)) + 0.5)
	}
	return color.RGBA{mix(0), mix(1), mix(2), 255}
}

func (c *canvas) columnTotals(g *grid, list []*column) {
	most := 1e-9
	for n, f := range g.columns {
		most = max(most, f.value(c.o.Metric, g.seconds[n]))
	}
	for n, f := range g.columns {
		size := int(30 * f.value(c.o.Metric, g.seconds[n]) / most)
		c.fill(pngLeft+int(list[n].id-list[0].id)*c.width, pngTop-4-size, max(c.width-1, 1), size, c.bar)
	}
	c.text(c.right+6, pngTop-22, c.soft, shown(c.o.Metric, most, true))
}

func (c *canvas) lineTotals(g *grid) {
	values, most := make([]float64, len(g.lines)), 1e-9
	for i := range g.lines {
		f, seconds := g.total(i)
		values[i] = f.value(c.o.Metric, seconds)
		most = max(most, values[i])
	}
	for i, v := range values {
		c.fill(c.right+4, pngTop+i*c.height, int(70*v/most), max(c.height-1, 1), c.bar)
	}
	c.text(c.right+6, c.bottom+16, c.soft, shown(c.o.Metric, most, true))
}

func (c *canvas) times(of *columns) {
	layout := time.TimeOnly
	if of.width < time.Second {
		layout = "15:04:05.000"
	}
	span := int(of.span())
	for i := range 4 {
		n := i * span / 4
		x := pngLeft + n*c.width
		c.fill(x, c.bottom+1, 1, 4, c.soft)
		c.text(x, c.bottom+18, c.soft, of.start(of.list[0].id+int64(n)).Format(layout))
	}
}

// names writes tenants and datasets at their first lines, and the fields of keys between them.
func (c *canvas) names(g *grid) {
	columns := []struct {
		x, width int
		of       func(line) string
	}{
		{12, 96, func(l line) string { return l.first.tenantName() }},
		{112, 96, func(l line) string { return l.first.dataset }},
		{212, pngLeft - 218, func(l line) string { return strings.Join(l.first.fields(), delim) }},
	}[:map[View]int{ByKey: 3, ByDataset: 2, ByTenant: 1}[c.o.By]]
	for n, column := range columns {
		free, before := pngTop, ""
		for i, l := range g.lines {
			y, text := pngTop+i*c.height, column.of(l)
			under := text
			if n > 0 {
				under = l.first.tenantName() + delim + l.first.dataset + delim + text
			}
			if under == before || y < free {
				continue
			}
			if n < 2 && i > 0 {
				c.fill(column.x, y, pngLeft-column.x-2, 1, c.line)
			}
			ink := c.ink
			if n == 2 {
				ink = c.soft
			}
			c.text(column.x, y+pngText-2, ink, fit(text, column.width/glyph))
			free, before = y+pngText, under
		}
	}
}
