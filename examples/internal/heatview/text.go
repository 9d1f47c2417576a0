package heatview

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// TextOptions say how WriteText draws. The zero value draws 24 lines of keys without colours in 80 columns.
type TextOptions struct {
	// Width and Lines are the size of the picture, with its labels, in characters. Zero is 80 and 24.
	Width, Lines int
	// By is what a line is: "key", "dataset" or "tenant". Empty is "key".
	By string
	// Colour uses the colours of terminals with 24 bits.
	Colour bool
}

// Views are what a line of a picture can be, in the order of the views of a page.
var Views = []string{"key", "dataset", "tenant"}

// blocks are the shades from nothing to much. What is there at all has a shade.
var blocks = []rune(" ░▒▓█")

// WriteText draws a recording with blocks: time to the right, keys from top to bottom, the rate of rows as a shade. It
// contains row keys, with all characters replaced that a terminal could obey.
func WriteText(w io.Writer, r *heat.Recording, o TextOptions) error {
	if len(r.List()) == 0 {
		_, err := fmt.Fprintln(w, "Nothing was recorded.")
		return err
	}
	g := gridOf(r, view(max(0, slices.Index(Views, o.By))), max(1, orElse(o.Lines, 24)))
	labels := g.labels()
	margin := 0
	for _, label := range labels {
		margin = max(margin, utf8.RuneCountInString(label))
	}
	p := picture{columns: r.Columns.Span(), ids: idsOf(r), colour: o.Colour}
	margin = min(margin, orElse(o.Width, 80)/3)
	if p.width = max(8, orElse(o.Width, 80)-margin-2); int64(p.width) > p.columns {
		p.width -= p.width % int(p.columns) // each column has as many blocks
	}
	p.fill(g)
	var out strings.Builder
	for i := range g.lines {
		fmt.Fprintf(&out, "%s ▕%s\n", padded(labels[i], margin), p.line(i))
	}
	from, to := r.Columns.Start(p.ids[0]).Format("2006-01-02 15:04:05"), r.Columns.Start(p.ids[0]+p.columns).Format("15:04:05")
	fmt.Fprintf(&out, "%s  %s%s\n", strings.Repeat(" ", margin), from, fmt.Sprintf("%*s", max(len(to)+1, p.width-len(from)), to))
	fmt.Fprintf(&out, "UTC; a block is %v of one line. %s is up to %.3g rows a second, the strongest has %.3g.\n", max(r.Columns.Width, r.Columns.Width*time.Duration(p.columns)/time.Duration(p.width)), p.shade(common), p.usual, p.most)
	fmt.Fprintf(&out, "%s\n", about(r))
	_, err := io.WriteString(w, out.String())
	return err
}

func orElse(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

func idsOf(r *heat.Recording) (ids []int64) {
	for _, col := range r.List() {
		ids = append(ids, col.ID)
	}
	return ids
}

// labels name each line by what it has and the line before has not.
func (g *grid) labels() []string {
	all := make([]string, len(g.lines))
	var before line
	for i, l := range g.lines {
		parts := []string{l.first.tenantName(), l.first.dataset, strings.Join(l.first.fields(), delim)}
		switch {
		case i > 0 && l.first.tenant == before.first.tenant && l.first.dataset == before.first.dataset:
			parts = []string{"", "", parts[2]}
		case i > 0 && l.first.tenant == before.first.tenant:
			parts[0] = ""
		}
		all[i] = readable(strings.TrimSpace(strings.Join(parts, " ")))
		before = l
	}
	return all
}

func padded(text string, width int) string {
	all := []rune(text)
	if len(all) > width {
		return string(all[:max(0, width-1)]) + "…"
	}
	return text + strings.Repeat(" ", width-len(all))
}

// picture is a grid whose columns are joined, so that they fit a width.
type picture struct {
	width       int
	columns     int64
	ids         []int64
	rates       [][]float64 // by line, then by character
	usual, most float64
	colour      bool
}

// fill computes the rates, in rows a second.
func (p *picture) fill(g *grid) {
	seconds := make([]float64, p.width)
	p.rates = make([][]float64, len(g.lines))
	for i := range p.rates {
		p.rates[i] = make([]float64, p.width)
	}
	for n, id := range p.ids {
		at := int((id - p.ids[0]) * int64(p.width) / p.columns)
		for end := at + max(1, p.width/int(p.columns)); at < end; at++ {
			seconds[at] += g.seconds[n]
			for i, f := range g.cells[n] {
				p.rates[i][at] += f.reads + f.writes
			}
		}
	}
	var all []float64
	for _, rates := range p.rates {
		for at := range rates {
			if rates[at] > 0 && seconds[at] > 0 {
				rates[at] /= seconds[at]
				all = append(all, rates[at])
			}
		}
	}
	if slices.Sort(all); len(all) > 0 {
		p.usual, p.most = all[int(clip*float64(len(all)-1))], all[len(all)-1]
	}
}

func (p *picture) line(i int) string {
	var out strings.Builder
	for _, rate := range p.rates[i] {
		if rate <= 0 {
			out.WriteByte(' ')
			continue
		}
		out.WriteString(p.shade(p.strength(rate)))
	}
	return out.String()
}

// strength is the place of a rate among the colours, from 0 to 1, as in the page.
func (p *picture) strength(rate float64) float64 {
	if rate <= p.usual || p.most <= p.usual {
		return common * math.Sqrt(min(1, rate/p.usual))
	}
	return min(1, common+(1-common)*math.Log(rate/p.usual)/math.Log(p.most/p.usual))
}

// shade is the block of a strength.
func (p *picture) shade(strength float64) string {
	if !p.colour {
		return string(blocks[min(len(blocks)-1, 1+int(strength*0.999*float64(len(blocks)-1)))])
	}
	stops := palettes[1]
	x := strength * float64(len(stops)-1)
	i := min(int(x), len(stops)-2)
	mix := func(n int) int {
		a, b := float64(stops[i][n]), float64(stops[i+1][n])
		return int(a + (b-a)*(x-float64(i)))
	}
	return fmt.Sprintf("\x1b[38;2;%d;%d;%dm█\x1b[0m", mix(0), mix(1), mix(2))
}
