package heatmap

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// shades of text, from nothing to the strongest.
var shades = []rune(" .:-=+*#%@")

const labelWidth = 36

// WriteText writes the picture for a terminal: a line for each range of keys, a character for each column, and the rate or
// latency of each line at its right. It contains row keys.
func (r *Recording) WriteText(w io.Writer, o PictureOptions) error {
	if err := o.check(w, r); err != nil {
		return err
	}
	buf := bufio.NewWriter(w)
	if len(r.list()) == 0 {
		_, _ = buf.WriteString("nothing was recorded\n") // buf reports errors at its end
		return buf.Flush()
	}
	g := r.grid(o.By, cmp.Or(o.Lines, 30))
	values := g.values(o.Metric)
	top := scaleOf(values)
	t := r.Totals()
	fmt.Fprintf(buf, "%s by %s, %s to %s; a column is %v\n", o.Metric, o.By, r.first.UTC().Format(time.DateTime), r.last.UTC().Format(time.TimeOnly), r.columns.width)
	fmt.Fprintf(buf, "%d reads, %d writes, %d failures, %s; the darkest is %s\n", t.Reads, t.Writes, t.Failures, shown(Bytes, float64(t.Bytes), false), shown(o.Metric, top.most, true))
	ids := r.columns.list
	for i, l := range g.lines {
		cells := []rune(strings.Repeat(" ", int(r.columns.span())))
		for n := range g.cells {
			cells[ids[n].id-ids[0].id] = shades[step(top.strength(values[n*len(g.lines)+i]), len(shades))]
		}
		f, seconds := g.total(i)
		fmt.Fprintf(buf, "%s |%s| %s\n", fit(l.label(o.By), labelWidth), string(cells), shown(o.Metric, f.value(o.Metric, seconds), true))
	}
	return buf.Flush()
}

// step returns the shade of a strength, of n. Only nothing has the first one.
func step(strength float64, n int) int {
	if strength == 0 {
		return 0
	}
	return 1 + int(strength*float64(n-2)+0.5)
}

// fit cuts or pads text to a width in characters.
func fit(s string, width int) string {
	out := []rune(readable(s))
	if len(out) > width {
		return string(out[:width-2]) + ".."
	}
	return string(out) + strings.Repeat(" ", width-len(out))
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

// shown returns a value of a metric with its unit.
func shown(m Metric, v float64, rate bool) string {
	per := ""
	if rate {
		per = "/s"
	}
	switch m {
	case Latency:
		return fmt.Sprintf("%.3g ms", v)
	case Bytes:
		for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
			if v < 1024 {
				return fmt.Sprintf("%.3g %s%s", v, unit, per)
			}
			v /= 1024
		}
		return fmt.Sprintf("%.4g TiB%s", v, per)
	}
	if v >= 1000 {
		return fmt.Sprintf("%.0f%s", v, per)
	}
	return fmt.Sprintf("%.3g%s", v, per)
}
